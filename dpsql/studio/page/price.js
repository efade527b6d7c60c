// The price of a statement, as it is told below the editor.

import { element, plain } from "/page/dom.js";

const figure = (title, value, below) =>
  element("div", { class: "figure" },
    element("dt", {}, title), element("dd", {}, value), below ? element("dd", { class: "below" }, below) : null);

const costOf = (found) => {
  if (found.now === "0") return ["free", found.stored.length || found.charge.epsilon !== "0" ? "it is stored" : "nothing private is asked"];
  const delta = found.delta ? ` · δ ${found.delta}` : "";
  return [`ε ${plain(found.now)}`, (found.charge.rho ? `ρ ${plain(found.charge.rho)}` : "once; stored after") + delta];
};

const width = (one) => {
  const level = / at (\d+ %)$/.exec(one.expected);
  return element("div", { class: "width" },
    element("dt", {}, element("code", {}, plain(one.name))),
    element("dd", {}, plain(level ? one.expected.slice(0, level.index) : one.expected),
      level ? element("span", { class: "quiet" }, ` ${level[1]}`) : null));
};

const notes = (said) => (said.length
  ? element("details", { class: "notes" },
      element("summary", {}, `${said.length} ${said.length === 1 ? "note" : "notes"}`),
      element("ul", {}, ...said.map((one) => element("li", {}, plain(one)))))
  : null);

const MOST = 8;

const priced = (found) => {
  const [cost, below] = costOf(found);
  const more = found.columns.length - MOST;
  return [
    element("dl", { class: "figures" },
      figure("Cost", cost, below),
      figure("Budget", plain(found.left), found.now === "0" ? "stays as it is"
        : found.fits ? "enough for it" : "53V01: not enough for it")),
    found.columns.length ? element("dl", { class: "widths", "aria-label": "How far off each number may be" },
      ...found.columns.slice(0, MOST).map(width),
      more > 0 ? element("div", { class: "width quiet" }, element("dt", {}, `and ${more} more`)) : null) : null,
    found.columns.some((one) => one.expected.includes("/ n"))
      ? element("p", { class: "quiet small" }, "n: how many rows the group has, which nobody knows before it is asked") : null,
    notes([...found.stored, ...found.notes]),
  ];
};

const refused = (found) => [
  element("p", { class: "refusal" },
    element("code", { class: "code" }, found.refusal.code), " ", plain(found.refusal.message)),
  found.refusal.hint ? element("p", { class: "hint" }, plain(found.refusal.hint)) : null,
];

const plainLines = (text) => text.split("\n").map(plain).join("\n");

/** Return the same in one line, for who listens. */
export const saidOf = (found) => {
  if (found.state === "priced") {
    const widths = found.columns.slice(0, 3).map((one) => `${plain(one.name)} ${plain(one.expected)}`);
    return [found.now === "0" ? "free" : `costs epsilon ${found.now}`, ...widths].join("; ");
  }
  if (found.state === "refused") return `refused, ${found.refusal.code}: ${plain(found.refusal.message)}`;
  return found.said ?? "";
};

/** Show what the server has said of the statement at the cursor. */
export const showPrice = (place, found) => {
  place.dataset.state = found.state;
  const lines = {
    priced: () => priced(found),
    refused: () => refused(found),
    empty: () => [element("p", { class: "quiet" }, "Type a statement. What it would cost, and how far off it would be, shows here: free, and no row is read.")],
  };
  const made = (lines[found.state] ?? (() => [element("p", { class: "quiet" }, plain(found.said))]))();
  place.replaceChildren(...made.filter(Boolean));
};

/** Show below a refusal the statement that works; `take(sql)`: it is wanted. */
export const showFix = (place, fix, take) => {
  place.append(element("div", { class: "fix" },
    element("p", {}, element("strong", {}, "This works"), `, ${plain(fix.said)}: `, element("span", { class: "quiet" }, plain(fix.cost))),
    element("pre", {}, plainLines(fix.sql)),
    element("button", { type: "button", onclick: () => take(fix.sql) }, "Take this statement")));
};
