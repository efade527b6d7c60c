// The tables that may be asked, with their columns: a click puts a name at the cursor.

import { element, plain } from "/page/dom.js";

export const quoted = (name) =>
  name.split(".").map((part) => (/^[a-z_][a-z0-9_]*$/.test(part) ? part : `"${part.replaceAll('"', '""')}"`)).join(".");

const column = (one, insert) =>
  element("li", {},
    element("button", { type: "button", class: "column", title: plain(one.said || one.type), onclick: () => insert(quoted(one.name)) },
      element("span", { class: "name" }, plain(one.name)), element("span", { class: "type" }, plain(one.type))));

/** Return statements to begin with, over the tables that may be asked. */
export const examples = (tables) => {
  const found = [];
  for (const table of tables) {
    const from = quoted(table.name);
    const listed = table.columns.find((one) => one.values.length > 1 && one.values.length <= 20);
    const number = table.columns.find((one) => /^(numeric|double|real)/.test(one.type)) ?? null;
    if (listed) found.push(`SELECT ${quoted(listed.name)}, COUNT(*) AS n FROM ${from} GROUP BY ${quoted(listed.name)}`);
    if (listed && number) found.push(`SELECT ${quoted(listed.name)}, AVG(${quoted(number.name)}) AS mean FROM ${from} GROUP BY ${quoted(listed.name)}`);
    if (!listed) found.push(`SELECT COUNT(*) AS n FROM ${from}`);
  }
  return found.slice(0, 4);
};

/** Return the panel; `names`: a promise of the tables. */
export const tablesPanel = (names, insert) => {
  const list = element("div", { class: "tables" }, element("p", { class: "quiet" }, "…"));
  const wide = window.matchMedia("(min-width: 1000px)");
  const panel = element("details", { class: "schema", open: wide.matches },
    element("summary", {}, "Tables"), list);
  wide.addEventListener("change", () => { panel.open = wide.matches; });
  names.then((found) => {
    list.replaceChildren(...found.tables.map((table, place) =>
      element("details", { class: "table", open: place === 0 },
        element("summary", {}, plain(table.name)),
        element("p", { class: "about" }, plain(table.said)),
        element("ul", {}, ...table.columns.map((one) => column(one, insert))))));
  }, (failure) => list.replaceChildren(element("p", { role: "alert" }, failure.message)));
  return panel;
};
