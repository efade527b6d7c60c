// The owner's policy, tried: what another text of it does to the errors and prices of statements. Nothing is written.

import { ask } from "/page/api.js";
import { element, plain } from "/page/dom.js";

const SETTLED = 150;

const widths = (found) => found.columns.map((one) => `${one.name} ${one.expected}`);

const said = (found) => {
  if (!found) return { price: "", lines: [], isRefused: false };
  if (found.state === "priced") return { price: `ε ${found.now}${found.delta ? `, δ ${found.delta}` : ""}`, lines: widths(found), isRefused: false };
  if (found.state === "refused") return { price: "refused", lines: [`${found.refusal.code}: ${found.refusal.message}`], isRefused: true };
  return { price: "", lines: [found.state === "unread" ? "not known without reading rows" : ""], isRefused: false };
};

const cell = (found, other) => {
  const one = said(found), before = other && said(other);
  const isMoved = before && (before.price !== one.price || before.lines.join() !== one.lines.join());
  return element("td", { class: `${one.isRefused ? "is-refused" : ""}${isMoved ? " moved" : ""}` },
    element("p", { class: "price-said" }, one.price), ...one.lines.map((line) => element("p", { class: "small" }, plain(line))));
};

const KINDS = [["---", "quiet"], ["+++", "quiet"], ["@@", "quiet"], ["+", "plus"], ["-", "minus"]];
const lineOf = (text) => element("span", { class: KINDS.find(([mark]) => text.startsWith(mark))?.[1] ?? "" }, `${text}\n`);

export const policyView = {
  name: "policy",
  title: "Policy",
  isOwners: true,
  mount(place, room) {
    const text = element("textarea", { class: "toml", id: "toml", spellcheck: "false", rows: 24, "aria-describedby": "wrong" });
    const statements = element("textarea", { class: "toml", id: "examples", spellcheck: "false", rows: 6 });
    const wrong = element("p", { class: "refusal", id: "wrong", role: "status" });
    const table = element("div", { class: "scroll-x" });
    const difference = element("pre", { class: "difference" });
    const back = element("button", { type: "button", onclick: () => { text.value = written; changed(); } }, "As it is in the file");
    let written = "", timer = 0, isAsked = false, isWaiting = false;
    const examples = () => statements.value.split(";").map((one) => one.trim()).filter(Boolean).slice(0, 30);
    const draw = (asked, found) => {
      wrong.replaceChildren(...(found.wrong ? [plain(found.wrong.message), found.wrong.hint ? element("span", { class: "hint" }, ` ${plain(found.wrong.hint)}`) : ""] : []));
      difference.replaceChildren(...(found.difference.length ? found.difference.map((line) => lineOf(line.split("\n").map(plain).join(""))) : [element("span", { class: "quiet" }, "No difference from the file.")]));
      table.replaceChildren(element("table", {},
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Statement"), element("th", { scope: "col" }, "As it is"), element("th", { scope: "col" }, "As it would be"))),
        element("tbody", {}, ...asked.map((sql, row) => element("tr", {}, element("td", {}, element("pre", { class: "sql" }, plain(sql.replace(/\s+/g, " ")))),
          cell(found.before[row]), found.after ? cell(found.after[row], found.before[row]) : element("td", { class: "quiet" }, "—"))))));
    };
    const settle = async () => {
      if (isAsked) { isWaiting = true; return; }
      isAsked = true;
      do {
        isWaiting = false;
        const asked = examples();
        try {
          draw(asked, await ask("try_policy", { text: text.value, statements: asked }));
        } catch (failure) {
          wrong.replaceChildren(failure.message);
        }
      } while (isWaiting);
      isAsked = false;
    };
    const changed = () => { clearTimeout(timer); timer = setTimeout(settle, SETTLED); };
    for (const one of [text, statements]) one.addEventListener("input", changed);
    place.append(
      element("section", { class: "card half" },
        element("div", { class: "with-button" }, element("h2", {}, element("label", { for: "toml" }, "The policy, to try")), back),
        text, wrong,
        element("p", { class: "quiet small" }, "Nothing is written: what you like, put into the file, and run dpsql check.")),
      element("div", { class: "half rest" },
        element("section", { class: "card" },
          element("h2", {}, element("label", { for: "examples" }, "Your statements, apart by ;")), statements, table,
          element("p", { class: "quiet small" }, "From declared numbers and stored sums alone: no row is read. Prices are those of a first answer.")),
        element("section", { class: "card" }, element("h2", {}, "Difference from the file"), difference)),
    );
    const begin = async () => {
      const found = await ask("policy");
      written = found.text;
      text.value = written;
      statements.value = found.statements.join(";\n");
      await settle();
    };
    begin().catch((failure) => wrong.replaceChildren(failure.message));
    return { show() {} };
  },
};
