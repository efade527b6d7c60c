// A number of an answer with its error bars: bars for each row, or points along an axis of numbers or of time.

import { axisBottom, axisLeft, extent, line, scaleLinear, scaleUtc, select } from "/page/vendor/vendor.js";
import { drawn, element, plain } from "/page/dom.js";

const ROW = 30, MOST_ROWS = 40, HIGH = 300;
const CAP = 6;

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** A whisker between two places, upright or lying, with its caps. */
const whisker = (low, high, at, isUpright) => {
  const path = isUpright
    ? `M${at} ${low}V${high}M${at - CAP} ${low}h${2 * CAP}M${at - CAP} ${high}h${2 * CAP}`
    : `M${low} ${at}H${high}M${low} ${at - CAP}v${2 * CAP}M${high} ${at - CAP}v${2 * CAP}`;
  return drawn("path", { class: "whisker", d: path });
};

const spread = (picture, room) => {
  const [low, high] = picture.range;
  const wide = high - low || Math.abs(high) || 1;
  return scaleLinear()
    .domain(picture.is_from_zero ? [low, high] : [low - 0.06 * wide, high + 0.06 * wide])
    .range(room).nice(6);
};

const ticks = (axis, place) => {
  const group = drawn("g", { class: "axis", transform: place });
  select(group).call(axis);
  group.removeAttribute("font-family");
  group.removeAttribute("font-size");
  return group;
};

/** Rows: a label, a bar from zero or a point, its whisker, and the number in words. */
const lying = (picture, width) => {
  const rows = Math.min(picture.points.length, MOST_ROWS);
  const texts = picture.told ?? picture.bars, isNarrow = width < 460;
  const letters = isNarrow ? 14 : 26;
  const labels = picture.labels.slice(0, rows).map((label) => short(plain(label), letters));
  const left = Math.max(30, 12 + 7.2 * Math.max(...labels.map((label) => label.length)));
  const right = isNarrow ? 28 : 28 + 7.2 * Math.max(...texts.slice(0, rows).map((text) => text.length));
  const top = 6, height = top + rows * ROW + 30;
  const x = spread(picture, [left, Math.max(left + 60, width - right)]);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
  svg.append(ticks(axisBottom(x).ticks(Math.max(2, Math.floor((width - left - right) / 90))).tickSize(-rows * ROW).tickPadding(8), `translate(0 ${top + rows * ROW})`));
  for (let row = 0; row < rows; row += 1) {
    const middle = top + row * ROW + ROW / 2, point = picture.points[row];
    const group = drawn("g", { class: "row" }, drawn("title", {}, `${plain(picture.labels[row])}: ${texts[row]}`));
    if (labels[row]) group.append(drawn("text", { class: "label", x: left - 10, y: middle, dy: "0.35em", "text-anchor": "end" }, labels[row]));
    if (point) {
      const [value, low, high] = point;
      if (picture.is_from_zero) {
        const [from, to] = [x(0), x(value)].sort((a, b) => a - b);
        group.append(drawn("rect", { class: "bar", x: from, y: middle - 8, width: Math.max(0.5, to - from), height: 16, rx: 2 }));
      }
      if (high > low) group.append(whisker(x(low), x(high), middle, false));
      if (!picture.is_from_zero) group.append(drawn("circle", { class: "point", cx: x(value), cy: middle, r: 3.5 }));
      if (!isNarrow) group.append(drawn("text", { class: "number", x: width - 2, y: middle, dy: "0.35em", "text-anchor": "end" }, texts[row]));
    }
    svg.append(group);
  }
  return svg;
};

const seriesOf = (picture) => (picture.series ? [...new Set(picture.series)] : [""]);

/** Which colour is which. */
const legend = (picture) => (picture.series
  ? element("ul", { class: "legend" }, ...seriesOf(picture).map((name, number) =>
      element("li", {}, element("i", { class: `of-${number}`, "aria-hidden": "true" }), plain(name))))
  : null);

/** Points along an axis of numbers or of time, with whiskers, joined by a line where they are in order. */
const along = (picture, width) => {
  const shown = picture.points.map((point, place) => [picture.places[place], point, place])
    .filter(([place, point]) => point && place !== null).sort((one, other) => one[0] - other[0]);
  const y = spread(picture, [HIGH - 34, 10]);
  const letters = Math.max(...y.ticks(5).map(y.tickFormat(5)).map((one) => one.length));
  const margin = { top: 10, right: 16, bottom: 34, left: 16 + 7.4 * letters };
  const ends = extent(shown, (one) => one[0]);
  const pad = (ends[1] - ends[0]) * 0.03 || 1;
  const x = (picture.axis === "time" ? scaleUtc() : scaleLinear())
    .domain([ends[0] - pad, ends[1] + pad]).range([margin.left, width - margin.right]);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${HIGH}`, width, height: HIGH });
  const room = width - margin.left - margin.right;
  const below = axisBottom(x).ticks(Math.max(2, Math.floor(room / 90))).tickSizeOuter(0);
  if (picture.axis === "number" && shown.every(([place]) => Number.isInteger(place))) {
    const whole = x.ticks(Math.max(2, Math.floor(room / 90))).filter(Number.isInteger);
    below.tickValues(whole).tickFormat((one) => (Math.abs(one) >= 10000 ? one.toLocaleString("en") : String(one)));
  }
  svg.append(
    ticks(axisLeft(y).ticks(5).tickSize(-room).tickPadding(8), `translate(${margin.left} 0)`),
    ticks(below, `translate(0 ${HIGH - margin.bottom})`),
  );
  const names = seriesOf(picture), aside = names.length > 1 ? Math.min(5, room / (shown.length + 1) / names.length) : 0;
  if (names.length > 1) svg.setAttribute("class", "many");
  names.forEach((name, number) => {
    const own = shown.filter(([, , row]) => !picture.series || picture.series[row] === name);
    const move = (number - (names.length - 1) / 2) * aside;
    if (own.length > 1) {
      svg.append(drawn("path", { class: `series of-${number}`, d: line((one) => x(one[0]) + move, (one) => y(one[1][0]))(own) }));
    }
  });
  for (const [place, [value, low, high], row] of shown) {
    const number = picture.series ? names.indexOf(picture.series[row]) : 0;
    const move = (number - (names.length - 1) / 2) * aside;
    const group = drawn("g", { class: `row of-${number}` }, drawn("title", {}, `${plain(picture.labels[row])}: ${picture.bars[row]}`));
    if (high > low) group.append(whisker(y(low), y(high), x(place) + move, true));
    group.append(drawn("circle", { class: "point", cx: x(place) + move, cy: y(value), r: shown.length > 60 ? 2 : 3.5 }));
    svg.append(group);
  }
  return svg;
};

/** One number is drawn near itself, so that its bar is seen. */
const near = (picture) => {
  const [value, low, high] = picture.points[0];
  const far = 3 * Math.max(value - low, high - value) || Math.abs(value) || 1;
  return { ...picture, is_from_zero: false, range: [value - far, value + far], told: [""] };
};

/** Return a figure that is drawn anew as wide as its place is. */
export const chart = (picture) => {
  const isAlone = picture.points.length === 1 && !picture.by.length;
  if (isAlone) picture = near(picture);
  const isAlong = picture.axis && picture.points.length > 2;
  const title = picture.by.length ? `${plain(picture.title)} by ${picture.by.map(plain).join(", ")}` : plain(picture.title);
  const place = element("div", { class: "drawing" });
  const left = picture.count - (isAlong ? picture.points.length : Math.min(picture.points.length, MOST_ROWS));
  const draw = () => {
    const width = Math.floor(place.clientWidth);
    if (width < 40) return;
    const svg = isAlong ? along(picture, width) : lying(picture, width);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${title}, with error bars; the table has the same numbers`);
    place.replaceChildren(svg);
  };
  new ResizeObserver(draw).observe(place);
  return element("figure", { class: isAlone ? "chart alone" : "chart" },
    element("figcaption", {}, title, left > 0 ? element("span", { class: "quiet" }, `, ${left} more in the table`) : null),
    isAlone ? element("p", { class: "single" }, picture.bars[0]) : null, isAlong ? legend(picture) : null, place);
};
