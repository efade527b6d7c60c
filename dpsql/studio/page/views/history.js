// What this analyst has asked: statements, when, at which price.

import { element } from "/page/dom.js";

export const historyView = {
  name: "history",
  title: "History",
  mount(place) {
    place.append(element("p", { class: "panel" }, "Nothing was asked yet."));
    return {};
  },
};
