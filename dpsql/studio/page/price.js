// The price of a statement, as it is told below the editor.

import { element, plain } from "/page/dom.js";

const priced = (found) => [
  element("p", { class: "cost" },
    element("strong", {}, found.now === "0" ? "free" : `ε ${found.now}`), " ",
    element("span", { class: "quiet" }, found.charge.said)),
  element("ul", { class: "widths" }, ...found.columns.map((one) =>
    element("li", {}, element("code", {}, plain(one.name)), " ", plain(one.expected)))),
];

const refused = (found) => [
  element("p", { class: "refusal" }, element("strong", {}, found.refusal.code), " ", plain(found.refusal.message)),
  found.refusal.hint ? element("p", { class: "hint" }, plain(found.refusal.hint)) : null,
];

/** Show what the server has said of the statement at the cursor. */
export const showPrice = (place, found, editor) => {
  place.dataset.state = found.state;
  const lines = {
    priced: () => priced(found),
    refused: () => refused(found),
    empty: () => [element("p", { class: "quiet" }, "Type a statement: its price shows here, free.")],
  };
  const made = (lines[found.state] ?? (() => [element("p", { class: "quiet" }, plain(found.said))]))();
  place.replaceChildren(...made.filter(Boolean));
};
