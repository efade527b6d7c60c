// What is on every page: whose it is, what is left, and the views. A view is a file in views/, and a line here.

import { ask, desk, goTo } from "/page/api.js";
import { element, plain } from "/page/dom.js";
import { askView } from "/page/views/ask.js";
import { historyView } from "/page/views/history.js";
import { policyView } from "/page/views/policy.js";
import { spendingView } from "/page/views/spending.js";

/** Each view: its name in the address, its title, whether it is the owner's alone, and what shows it. */
const VIEWS = [askView, historyView, spendingView, policyView];

const at = (id) => document.getElementById(id);
const shown = new Map();

/** What views share: who asks, and how what is left is told. */
const room = {
  about: null,
  showLeft(left) {
    const share = Math.max(0, Math.min(1, left.share));
    const meter = element("meter", { min: 0, max: 1, low: 0.1, optimum: 1, value: share, "aria-hidden": "true" });
    at("left").replaceChildren(element("span", {}, left.said), meter);
  },
  go(name, given) {
    history.pushState(null, "", `#${name}`);
    show(given);
  },
};

const own = () => VIEWS.filter((view) => room.about.is_owner || !view.isOwners);

const show = (given) => {
  const wanted = own().find((view) => `#${view.name}` === location.hash) ?? own()[0];
  for (const link of at("views").children) {
    if (link.dataset.view === wanted.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!shown.has(wanted.name)) {
    const place = element("div", { class: `view view-${wanted.name}` });
    at("view").append(place);
    shown.set(wanted.name, { place, view: wanted.mount(place, room) });
  }
  for (const [name, one] of shown) one.place.hidden = name !== wanted.name;
  shown.get(wanted.name).view?.show?.(given);
  document.title = `${wanted.title} · ${plain(room.about.dataset)} · dpsql studio`;
};

/** The policy's name; of several, what chooses another. */
const whoseName = ({ dataset, datasets }) => (datasets.length < 2
  ? element("span", { class: "name" }, plain(dataset))
  : element("select", { class: "name", "aria-label": "Policy", onchange: (event) => goTo(event.target.value) },
      ...datasets.map((name, number) => element("option", { value: number, selected: String(number) === desk() }, plain(name)))));

const begin = async () => {
  room.about = await ask("about");
  at("whose").replaceChildren(
    whoseName(room.about),
    element("span", { class: "quiet" }, ` as ${plain(room.about.analyst)}`),
  );
  at("views").replaceChildren(
    ...own().map((view) => element("a", { href: `#${view.name}`, "data-view": view.name }, view.title)),
  );
  room.showLeft(room.about.left);
  if (!room.about.is_owner) {
    const leave = async () => {
      await fetch("/door/logout", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
      location.replace("/");
    };
    at("whose").append(" ", element("button", { type: "button", class: "leave", onclick: leave }, "Log out"));
  }
  window.addEventListener("hashchange", () => show());
  window.addEventListener("popstate", () => show());
  show();
};

begin().catch((failure) => {
  at("view").replaceChildren(element("p", { class: "panel", role: "alert" }, failure.message));
});
