"use strict";
(() => {
  const facts = JSON.parse(document.getElementById("bench-data").textContent);
  const at = (id) => document.getElementById(id);
  const form = at("bench-form");
  if (!facts.statements.length) return;
  const NS = "http://www.w3.org/2000/svg";
  const plain = (value) => {
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(size >= 100 ? 3 : 4)));
  };
  const choice = () => facts.statements[Number(at("statement").value)];
  const range = (input, values, wanted) => {
    const place = values.indexOf(wanted);
    input.max = String(values.length - 1);
    input.value = String(place < 0 ? 0 : place);
  };
  const element = (name, attributes, words) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    if (words !== undefined) made.textContent = words;
    return made;
  };

  // The axis is as wide as the answer where the bar is small, in steps, so that noise is seen beside what it hides.
  const reach = (truth, bar) => {
    let half = Math.abs(truth) || 1;
    for (const step of [1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]) {
      if (Math.abs(truth) * step >= 2 * bar) half = Math.abs(truth) * step;
    }
    return Math.max(half, 2 * bar);
  };

  const draw = (truth, noise, label) => {
    const width = at("drawing").clientWidth < 560 ? 360 : 720;
    const [left, right, top, high] = [12, 12, 30, 190];
    const half = reach(truth, noise.bar);
    const low = truth - half, most = truth + half;
    const x = (value) => left + ((width - left - right) * (value - low)) / (most - low);
    const height = (value) => {
      const z = (value - truth) / noise.scale;
      return noise.family.includes("auss") ? Math.exp((-z * z) / 2) : Math.exp(-Math.abs(z));
    };
    const shape = (start, stop) => {
      const points = [];
      for (let step = 0; step <= 200; step += 1) points.push(start + ((stop - start) * step) / 200);
      const line = points.map((value) => `L${x(value).toFixed(1)} ${(top + high * (1 - height(value))).toFixed(1)}`);
      return `M${x(start).toFixed(1)} ${top + high}${line.join("")}L${x(stop).toFixed(1)} ${top + high}Z`;
    };
    const svg = element("svg", {
      viewBox: `0 0 ${width} ${top + high + 28}`, role: "img", "aria-label": label,
    });
    svg.append(
      element("text", { class: "title", x: left, y: 14 }, "How likely each answer is (shaded: 95 in 100)"),
      element("path", { class: "area", d: shape(low, most) }),
      element("path", { class: "bar", d: shape(truth - noise.bar, truth + noise.bar) }),
      element("path", { class: "truth", d: `M${x(truth)} ${top}V${top + high}` }),
      element("path", { class: "rule", d: `M${left} ${top + high}H${width - right}` }),
    );
    [[low, "start"], [truth, "middle"], [most, "end"]].forEach(([value, anchor]) => {
      svg.append(element("text", { class: "tick", "text-anchor": anchor, x: x(value), y: top + high + 18 }, plain(value)));
    });
    at("drawing").replaceChildren(svg);
  };

  const show = () => {
    const asked = choice();
    const epsilonAt = Number(at("epsilon").value), rowsAt = Number(at("rows").value);
    const epsilon = asked.epsilons[epsilonAt];
    const rows = asked.max_rows.length ? asked.max_rows[rowsAt] : null;
    const [family, scale, bar] = asked.noises[rows === null ? 0 : rowsAt][epsilonAt];
    const people = Math.max(1, Math.min(1e9, Math.round(Number(at("people").value)) || 1));
    const truth = people * asked.one;
    at("epsilon-now").textContent = epsilon;
    at("epsilon").setAttribute("aria-valuetext", `epsilon ${epsilon}`);
    at("rows-now").textContent = rows === null ? "one row a person" : plain(rows);
    at("rows").setAttribute("aria-valuetext", rows === null ? "one row a person" : `${rows} rows`);
    at("rows").disabled = rows === null;
    const share = truth ? (100 * bar) / Math.abs(truth) : Infinity;
    const part = share > 100 ? "more than the answer itself" : `${Number(share.toPrecision(2))} % of it`;
    at("said").textContent = `${plain(truth)} ± ${plain(bar)}: the bar is ${part}.`;
    at("assumed").textContent = asked.one === 1
      ? `Drawn for ${plain(people)} people who count with one row each; the noise is the same for any number.`
      : `Drawn for ${plain(people)} people with one row of ${plain(asked.one)} each, the middle of the bounds; ` +
        "the noise is the same for any number.";
    at("law").textContent = `The noise: the discrete ${family.replace("discrete ", "")} law of scale ${plain(scale)}.`;
    let cut = "Each person has one row in this table, which always counts.";
    if (rows !== null) {
      const known = (facts.people[asked.table] || []).find((one) => one.max_rows === rows);
      cut = known
        ? known.said
        : `Never measured: how many people have more than ${rows} rows in ${asked.table}. ` +
          `dpsql bounds ${asked.table} measures it, once, for a charge.`;
    }
    at("cut").textContent = cut;
    draw(truth, { family, scale, bar }, `${plain(truth)} plus or minus ${plain(bar)}`);
  };

  const choose = () => {
    const asked = choice();
    range(at("epsilon"), asked.epsilons, facts.usual);
    if (asked.max_rows.length) range(at("rows"), asked.max_rows, asked.declared);
    show();
  };
  facts.statements.forEach((one, place) => {
    const option = document.createElement("option");
    option.value = String(place);
    option.textContent = one.sql;
    at("statement").append(option);
  });
  form.addEventListener("input", (event) => (event.target.id === "statement" ? choose() : show()));
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", show);
  form.hidden = false;
  choose();
})();
