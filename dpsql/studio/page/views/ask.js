// The analyst's view: a statement, what it would cost while it is typed, and its answer.

import { answerCard, refusedCard } from "/page/answer.js";
import { ask } from "/page/api.js";
import { completer } from "/page/complete.js";
import { element, plain } from "/page/dom.js";
import { makeEditor } from "/page/editor.js";
import { saidOf, showFix, showPrice } from "/page/price.js";
import { examples, tablesPanel } from "/page/tables.js";

const SETTLED = 20;
const PAUSED = 180;
const SPOKEN = 900;
const FIRST = "-- What does it cost? It says so below, while you type.\n";
const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);

export const askView = {
  name: "ask",
  title: "Ask",
  mount(place, room) {
    const price = element("div", { class: "price", id: "price" });
    const spoken = element("p", { class: "unseen", role: "status", "aria-live": "polite" });
    const field = element("div", { class: "field" });
    const answers = element("div", { class: "answers", "aria-live": "off" });
    const epsilon = element("input", {
      id: "epsilon", type: "text", inputmode: "decimal", autocomplete: "off", size: 6, placeholder: room.about.epsilon,
      title: `What the statement may spend, at most ${room.about.max_epsilon}`,
    });
    const runButton = element("button", { class: "run", type: "button", onclick: () => run() },
      element("span", {}, "Run"), element("kbd", {}, isMac ? "⌘ ↵" : "Ctrl ↵"));
    const stopButton = element("button", { class: "stop", type: "button", hidden: true, onclick: () => ask("cancel") }, "Stop");
    const names = ask("names");
    const panel = tablesPanel(names, (written) => editor.insert(written));
    place.append(
      panel,
      element("div", { class: "work" },
        element("section", { class: "card statement", "aria-label": "Statement" },
          field,
          element("div", { class: "tools" },
            runButton, stopButton,
            element("label", { class: "control", for: "epsilon" }, "epsilon", epsilon)),
          price, spoken),
        answers),
    );

    const controls = () => ({ epsilon: epsilon.value.trim() });
    let waiting = null, isAsked = false, timer = 0, speaking = 0, fixing = 0;
    const offer = async (sent) => {
      const found = await ask("fix", sent).catch(() => ({ fix: null }));
      const isSame = !waiting && editor.text === sent.text && editor.cursor === sent.cursor;
      if (!found.fix || !isSame || price.dataset.state !== "refused") return;
      showFix(price, found.fix, (sql) => { editor.replace(sql, found.start, found.end); changed(); });
      spoken.textContent += `; this works: ${found.fix.said}`;
    };
    const settle = async () => {
      if (isAsked) return;
      isAsked = true;
      while (waiting) {
        const sent = waiting;
        waiting = null;
        let found;
        try {
          found = await ask("price", sent);
        } catch (failure) {
          found = { state: "lost", said: failure.message };
        }
        if (!waiting && found.state === "overtaken") setTimeout(changed, PAUSED); // by the same analyst's other page
        if (waiting || found.state === "overtaken") continue;
        showPrice(price, found);
        clearTimeout(fixing);
        if (found.state === "refused") fixing = setTimeout(() => offer(sent), PAUSED);
        editor.mark(found.refusal?.offset, found.refusal?.message ?? "");
        clearTimeout(speaking);
        speaking = setTimeout(() => { spoken.textContent = saidOf(found); }, SPOKEN);
      }
      isAsked = false;
    };
    const changed = () => {
      waiting = { text: editor.text, cursor: editor.cursor, controls: controls() };
      clearTimeout(timer);
      timer = setTimeout(settle, SETTLED);
    };
    epsilon.addEventListener("input", () => changed());
    epsilon.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); run(); }
    });

    let isRunning = false;
    const run = async () => {
      if (isRunning) return;
      isRunning = true;
      runButton.disabled = true;
      stopButton.hidden = false;
      place.dataset.running = "";
      try {
        const found = await ask("run", { text: editor.text, cursor: editor.cursor, controls: controls() });
        if (found.left) room.showLeft(found.left);
        if (found.state === "answered") answers.replaceChildren(answerCard(found));
        if (found.state === "refused") answers.replaceChildren(refusedCard(found));
      } catch (failure) {
        answers.replaceChildren(refusedCard({ sql: "", refusal: failure.refusal ?? { code: "", message: failure.message } }));
      }
      isRunning = false;
      runButton.disabled = false;
      stopButton.hidden = true;
      delete place.dataset.running;
      changed();
    };
    const editor = makeEditor(field, {
      text: FIRST,
      onChange: changed,
      onRun: () => run(),
      onEscape: () => (isRunning ? ask("cancel") : runButton.focus()),
      complete: completer(names),
    });
    names.then((found) => {
      const offered = examples(found.tables);
      if (answers.children.length || !offered.length) return;
      answers.replaceChildren(element("section", { class: "first", "aria-label": "To begin with" },
        element("h2", {}, "To begin with"),
        element("ul", {}, ...offered.map((sql) => element("li", {},
          element("button", { type: "button", onclick: () => editor.replace(sql) }, plain(sql)))))));
    }, () => {});
    changed();
    return {
      show(given) {
        if (given?.sql !== undefined) editor.replace(given.sql);
        if (given?.answer) answers.replaceChildren(answerCard(given.answer));
        editor.focus();
      },
    };
  },
};
