// Elements, from text that is other people's: it is put there as text, never as markup.

const NS = "http://www.w3.org/2000/svg";

const fill = (made, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
};

/** Return an element: `element("p", { class: "quiet" }, "words", other)`; `onclick` and its like are listeners. */
export const element = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

/** Return an element of a drawing. */
export const drawn = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(NS, name), attributes, children);

const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Return a name or a value on one line, with every character spelled out that moves, hides or reorders text. */
export const plain = (text) =>
  String(text).replace(UNSAFE, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

/** Let the browser keep a text as a file. */
export const keep = (name, type, text) => {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
};

/** Return a place in characters as one in a string of JavaScript's, and the other way round. */
export const unitsOf = (text, characters) => [...text].slice(0, characters).join("").length;
export const charactersOf = (text, units) => [...text.slice(0, units)].length;
