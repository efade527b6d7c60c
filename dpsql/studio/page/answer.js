// An answer: what it cost, its chart and its table, and what goes with it.

import { ask } from "/page/api.js";
import { chart } from "/page/chart.js";
import { element, keep, plain } from "/page/dom.js";

const cell = (one, column) => {
  const attributes = { class: column.is_number ? "n" : "t" };
  if (one === null) return element("td", attributes, element("span", { class: "null" }, "NULL"));
  const [text, bar] = one;
  return element("td", attributes, element("span", { class: "value" }, plain(text)),
    bar ? element("span", { class: "bar" }, ` ${bar}`) : null);
};

const table = (found) => {
  const head = element("tr", {}, ...found.columns.map((one) =>
    element("th", { scope: "col", class: one.is_number ? "n" : "t" }, plain(one.name))));
  const rows = found.rows.map((row) => element("tr", {}, ...row.map((one, place) => cell(one, found.columns[place]))));
  const more = found.count - found.rows.length;
  const said = more > 0 ? `the first ${found.rows.length.toLocaleString("en")} of ${found.count.toLocaleString("en")} rows; all are in the CSV`
    : `${found.count.toLocaleString("en")} ${found.count === 1 ? "row" : "rows"}`;
  return element("div", { class: "rows" },
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows" },
      element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    element("p", { class: "quiet count" }, said));
};

const save = async (number) => {
  const { csv } = await ask("csv", { number });
  keep(`answer-${number}.csv`, "text/csv", csv);
};

const copied = async (button, sql) => {
  await navigator.clipboard?.writeText(sql);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy SQL"; }, 1500);
};

/** Return the card of an answer. */
export const answerCard = (found) => {
  const receipt = found.receipt;
  const copy = element("button", { type: "button", onclick: () => copied(copy, found.sql) }, "Copy SQL");
  const head = element("header", {},
    element("h2", {}, receipt ? plain(receipt.said) : plain(found.command)),
    element("pre", { class: "sql" }, found.sql.split("\n").map(plain).join("\n")),
    element("div", { class: "buttons" },
      found.columns.length ? element("button", { type: "button", onclick: () => save(found.number) }, "Save CSV") : null, copy));
  const charts = found.pictures.filter((one) => one.points.some(Boolean)).map((one) => chart(one));
  return element("section", { class: "card answer", "aria-label": "Answer" },
    head,
    found.command === "EXPLAIN" ? element("pre", { class: "plan" }, found.rows.map((row) => plain(row[0]?.[0] ?? "")).join("\n"))
    : found.columns.length ? element("div", { class: charts.length ? "both" : "one" },
      charts.length ? element("div", { class: "charts" }, ...charts) : null, table(found)) : null,
    receipt?.notes.length ? element("ul", { class: "notes-list" }, ...receipt.notes.map((one) => element("li", {}, plain(one)))) : null);
};

/** Return the card of a statement that was not answered. */
export const refusedCard = (found) =>
  element("section", { class: "card answer refused", role: "alert", "aria-label": "Not answered" },
    element("p", { class: "refusal" },
      found.refusal.code ? element("code", { class: "code" }, found.refusal.code) : null, " ", plain(found.refusal.message)),
    found.refusal.cost ? element("p", {}, plain(found.refusal.cost)) : null,
    found.refusal.hint ? element("p", { class: "hint" }, plain(found.refusal.hint)) : null);
