// What this analyst has asked: statements, when, how far off the numbers are, and at which price.

import { ask } from "/page/api.js";
import { element, plain } from "/page/dom.js";

const when = (at) => {
  const moment = new Date(at);
  const isToday = moment.toDateString() === new Date().toDateString();
  return isToday ? moment.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })
    : moment.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
};

const row = (one, room, open) =>
  element("li", { class: "asked" },
    element("time", { datetime: one.at }, when(one.at)),
    element("pre", { class: "sql" }, one.sql.split("\n").map(plain).join("\n")),
    element("p", { class: "widths-said" }, ...(one.widths ?? []).map((width) => element("span", {}, plain(width)))),
    element("p", { class: one.cost === "free" ? "cost free" : "cost" }, plain(one.cost)),
    element("div", { class: "buttons" },
      open ? element("button", { type: "button", onclick: open }, "See answer") : null,
      element("button", { type: "button", onclick: () => room.go("ask", { sql: one.sql }) }, "Ask again")));

export const historyView = {
  name: "history",
  title: "History",
  mount(place, room) {
    const reopen = (one) => async () => room.go("ask", { sql: one.sql, answer: await ask("again", { number: one.number }) });
    const list = (title, rows, open) => (rows.length
      ? element("section", { class: "card past" }, element("h2", {}, title),
          element("ol", {}, ...rows.map((one) => row(one, room, open?.(one)))))
      : null);
    return {
      async show() {
        try {
          const found = await ask("history");
          room.showLeft(found.left);
          const made = [list("In this session", found.here, reopen), list("Before, by the ledger", found.before, null)].filter(Boolean);
          place.replaceChildren(...(made.length ? made : [element("p", { class: "panel quiet" }, "Nothing was asked yet. What you run shows here, with its error bars and its price.")]));
        } catch (failure) {
          place.replaceChildren(element("p", { class: "panel", role: "alert" }, failure.message));
        }
      },
    };
  },
};
