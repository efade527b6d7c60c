// The owner's: what is spent, by whom, on what and until when it lasts; each charge, and what was refused.

import { area, axisBottom, axisLeft, scaleLinear, scaleUtc, select } from "/page/vendor/vendor.js";
import { ask } from "/page/api.js";
import { drawn, element, keep, plain } from "/page/dom.js";

const HIGH = 240, LOW = 6, DAY = 86400000, SHOWN = 100;
const date = (text) => new Date(`${text}T00:00:00Z`);
const dayOf = (at) => at.slice(0, 10);
const percent = (share) => `${(100 * share).toLocaleString("en", { maximumFractionDigits: 1 })} %`;
const keepReport = async () => keep("report.html", "text/html", (await ask("report")).page);
const moment = (at) => `${dayOf(at)} ${at.slice(11, 16)}`;

const dayText = (day) => day.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** Days between two, not many more than `most`, as far apart as each other. */
const daysOf = ([first, end], most) => {
  const step = DAY * Math.ceil((end - first) / DAY / most);
  return Array.from({ length: Math.floor((end - first) / step) + 1 }, (_, place) => new Date(first.getTime() + place * step));
};

const axis = (made, place) => {
  const group = drawn("g", { class: "axis", transform: place });
  select(group).call(made);
  return group;
};

/** What was left at the end of each day, as steps; its forecast, dashed; the days' charges as bars to choose. */
const burnDown = (found, width, chosen, choose) => {
  const margin = { top: 12, right: 30, bottom: 30, left: 52 };
  const first = found.days.length ? date(found.days[0].day) : date(found.today);
  const today = date(found.today);
  const far = found.forecast.ends ? date(found.forecast.ends) : null;
  const end = new Date(Math.max(today.getTime() + 2 * DAY, Math.min(far?.getTime() ?? 0, today.getTime() + 2 * Math.max(today - first, 14 * DAY))));
  const x = scaleUtc().domain([new Date(first.getTime() - DAY), end]).range([margin.left, width - margin.right]);
  const y = scaleLinear().domain([0, 1]).range([HIGH - margin.bottom, margin.top]);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${HIGH}`, width, height: HIGH });
  const room = width - margin.left - margin.right;
  svg.append(
    axis(axisLeft(y).ticks(5, "%").tickSize(-room).tickPadding(8), `translate(${margin.left} 0)`),
    axis(axisBottom(x).tickValues(daysOf(x.domain(), Math.max(2, Math.floor(room / 100)))).tickFormat(dayText).tickSizeOuter(0),
      `translate(0 ${HIGH - margin.bottom})`),
  );
  const steps = [[x.domain()[0], 1]];
  for (const one of found.days) {
    steps.push([date(one.day), steps.at(-1)[1]], [date(one.day), one.left]);
  }
  steps.push([new Date(today.getTime() + DAY), steps.at(-1)[1]]);
  svg.append(drawn("path", { class: "left-area", d: area((one) => x(one[0]), y(0), (one) => y(one[1]))(steps) }));
  if (far) {
    const last = steps.at(-1);
    const until = new Date(Math.min(far, end)), share = (until - last[0]) / (far - last[0]);
    svg.append(drawn("line", { class: "forecast", x1: x(last[0]), y1: y(last[1]), x2: x(until), y2: y(last[1] * (1 - share)) }));
  }
  const wide = Math.max(4, Math.min(18, x(new Date(first.getTime() + DAY)) - x(first) - 2));
  for (const one of found.days) {
    const spent = Object.values(one.spent).reduce((sum, part) => sum + part, 0);
    const pick = () => choose("day", one.day);
    const bar = drawn("rect", {
      class: `day${chosen === one.day ? " chosen" : ""}`, x: x(date(one.day)) - wide / 2, width: wide,
      y: Math.min(y(spent), y(0) - LOW), height: Math.max(LOW, y(0) - y(spent)), tabindex: 0, role: "button",
      "aria-pressed": String(chosen === one.day), "aria-label": `${one.day}: ${percent(spent)} of the budget`,
      onclick: pick, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(); } },
    }, drawn("title", {}, `${one.day}: ${percent(spent)}`));
    svg.append(bar);
  }
  svg.setAttribute("aria-label", "What was left of the budget, day by day");
  return svg;
};

const meter = (share, label) =>
  element("meter", { min: 0, max: 1, value: Math.min(1, share), "aria-label": label });

/** A list of what was spent by something, each line a button that chooses it. */
const byWhat = (title, kind, rows, chosen, choose, unit) => element("section", { class: "card by" },
  element("h2", {}, title),
  rows.length ? element("ul", {}, ...rows.map((one) => element("li", {},
    element("button", { type: "button", class: "line", "aria-pressed": String(chosen === one.name), onclick: () => choose(kind, one.name) },
      element("span", { class: "name" }, plain(one.name)),
      element("span", { class: "amount" }, `${unit} ${one.spent}${one.cap ? ` of ${one.cap}` : ""}`),
      meter(one.share, `${plain(one.name)}: ${percent(one.share)}`)))))
    : element("p", { class: "quiet small" }, "Nothing yet."));

const errorsOf = async (statement, place) => {
  place.replaceChildren(element("span", { class: "quiet" }, "…"));
  const found = await ask("errors", { statement });
  const texts = { priced: () => found.columns.map((one) => `${plain(one.name)} ${plain(one.expected)}`), refused: () => [`refused today: ${plain(found.refusal.message)}`] };
  place.replaceChildren(...(texts[found.state] ?? (() => ["not known without reading rows"]))().map((text) => element("span", {}, text)));
};

const charge = (one, unit) => {
  const errors = element("div", { class: "widths-said" });
  const button = element("button", { type: "button", onclick: () => errorsOf(one.statement, errors).catch((failure) => errors.replaceChildren(failure.message)) }, "± today");
  return element("li", { class: "asked" },
    element("time", { datetime: one.at }, moment(one.at)),
    element("div", {}, element("pre", { class: "sql" }, one.statement.split("\n").map(plain).join("\n")),
      element("p", { class: "quiet small" }, `${plain(one.analyst)} · ${plain(one.note)}${one.state === "committed" ? "" : ` · ${one.state}`}`)),
    errors,
    element("p", { class: "cost" }, `${unit} ${one.spent}`),
    element("div", { class: "buttons" }, button));
};

const refused = (one) => element("li", { class: "asked refused-line" },
  element("time", { datetime: one.at }, moment(one.at)),
  element("div", {}, element("p", {}, element("strong", { class: "code" }, one.code), ` ${plain(one.message || one.means)}`),
    one.statement ? element("pre", { class: "sql" }, plain(one.statement)) : null,
    element("p", { class: "quiet small" }, plain(one.analyst))),
  element("p", {}), element("p", { class: "cost" }, one.is_of_budget ? "budget spent" : ""), element("div", {}));

const KEPT = {
  codes: "Codes alone are kept. With refusals = \"shapes\" under [server] of the policy, statements are kept too, without literals.",
  shapes: "Statements are kept without literals, and without names that the policy does not know.",
  texts: "Statements are kept as they were sent.",
};

export const spendingView = {
  name: "spending",
  title: "Spending",
  isOwners: true,
  mount(place) {
    const chosen = { analyst: null, table: null, day: null };
    let found = null;
    const wanted = (one) => (!chosen.analyst || one.analyst === chosen.analyst) && (!chosen.day || dayOf(one.at) === chosen.day);
    const choose = (kind, name) => { chosen[kind] = chosen[kind] === name ? null : name; draw(); };
    const draw = () => {
      const focused = document.activeElement?.getAttribute?.("aria-label") ?? document.activeElement?.querySelector?.(".name")?.textContent;
      const drawing = element("div", { class: "drawing" });
      const ends = found.forecast.ends ? `at the pace of the last ${found.forecast.days} days it ends on ${found.forecast.ends}`
        : "too early to say until when it lasts";
      const figure = (title, text, below) => element("div", { class: "figure" }, element("dt", {}, title), element("dd", {}, text), below ? element("dd", { class: "below" }, below) : null);
      const charges = found.entries.filter((one) => wanted(one) && (!chosen.table || one.tables.includes(chosen.table)));
      const refusals = chosen.table ? [] : found.refusals.filter(wanted);
      const picked = Object.entries(chosen).filter(([, name]) => name);
      place.replaceChildren(...[
        element("section", { class: "card burn", "aria-label": "The budget" },
          element("dl", { class: "figures" },
            figure("Spent", `${found.unit} ${found.spent}`, `of ${found.cap}, ${percent(found.share)}`),
            figure("Left", found.left, found.as_epsilon),
            figure("Lasts", found.forecast.ends ?? "—", ends),
            figure("Delta", found.delta)),
          found.rations.length ? element("ul", { class: "notes-list" }, ...found.rations.map((one) => element("li", {}, plain(one)))) : null,
          found.periods ? null : drawing,
          element("div", { class: "buttons" }, element("button", {
            type: "button", title: "What is spent and on what, the policy in sentences, a bench for other settings: one file, for an auditor",
            onclick: () => keepReport().catch((failure) => place.replaceChildren(element("p", { class: "panel", role: "alert" }, failure.message))),
          }, "Keep as a report"))),
        element("div", { class: "three" },
          byWhat("By analyst", "analyst", found.spenders, chosen.analyst, choose, found.unit),
          byWhat("By table that it reads", "table", found.tables, chosen.table, choose, found.unit),
          found.periods ? byWhat("By period of the data", "period", found.periods, null, () => {}, found.unit) : null),
        picked.length ? element("p", { class: "picked" }, "Shown: ", ...picked.map(([kind, name]) =>
          element("button", { type: "button", onclick: () => choose(kind, name) }, `${kind} ${plain(name)} ×`))) : null,
        element("section", { class: "card past" }, element("h2", {}, `Charges (${charges.length}${found.is_cut ? " of the newest" : ""})`),
          charges.length ? element("ol", {}, ...charges.slice(0, SHOWN).map((one) => charge(one, found.unit))) : element("p", { class: "quiet small" }, "None.")),
        element("section", { class: "card past" }, element("h2", {}, `Refused (${refusals.length})`),
          element("p", { class: "quiet small" }, KEPT[found.refusals_hold]),
          refusals.length ? element("ol", {}, ...refusals.slice(0, SHOWN).map(refused)) : null),
      ].filter(Boolean));
      if (!found.periods) {
        const width = Math.floor(drawing.clientWidth);
        if (width > 60) drawing.replaceChildren(burnDown(found, width, chosen.day, choose));
      }
      if (focused) {
        [...place.querySelectorAll("[aria-label], .line")].find((one) => (one.getAttribute("aria-label") ?? one.querySelector(".name")?.textContent) === focused)?.focus();
      }
    };
    new ResizeObserver(() => { if (found && place.clientWidth) draw(); }).observe(place);
    return {
      async show() {
        try {
          found = await ask("spending");
          draw();
        } catch (failure) {
          place.replaceChildren(element("p", { class: "panel", role: "alert" }, failure.message));
        }
      },
    };
  },
};
