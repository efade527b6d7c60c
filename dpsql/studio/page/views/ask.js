// The analyst's view: a statement, what it would cost while it is typed, and its answer.

import { ask } from "/page/api.js";
import { element, plain } from "/page/dom.js";
import { makeEditor } from "/page/editor.js";
import { completer } from "/page/complete.js";
import { showPrice } from "/page/price.js";

const SETTLED = 25;

export const askView = {
  name: "ask",
  title: "Ask",
  mount(place, room) {
    const price = element("div", { class: "price", id: "price", role: "status", "aria-live": "polite" });
    const field = element("div", { class: "field" });
    place.append(element("section", { class: "card", "aria-label": "Statement" }, field, price));

    let waiting = null, isAsked = false;
    const settle = async () => {
      if (isAsked) return;
      isAsked = true;
      while (waiting) {
        const sent = waiting;
        waiting = null;
        try {
          const found = await ask("price", sent);
          if (!waiting && found.state !== "overtaken") {
            showPrice(price, found, editor);
            editor.mark(found.refusal?.offset, found.refusal?.message ?? "");
          }
        } catch (failure) {
          showPrice(price, { state: "lost", said: failure.message }, editor);
        }
      }
      isAsked = false;
    };
    let timer = 0;
    const changed = (text, cursor) => {
      waiting = { text, cursor, controls: {} };
      clearTimeout(timer);
      timer = setTimeout(settle, SETTLED);
    };
    const names = ask("names");
    const editor = makeEditor(field, {
      text: "",
      onChange: changed,
      onRun() {},
      onEscape() {},
      complete: completer(names),
    });
    return { show() { editor.focus(); } };
  },
};
