// Draws the panels of a trace. All share one axis: `view` is the part of it that is shown.
const edges = D.edges, count = edges.length - 1, everything = [edges[0], edges[count]];
let view = everything.slice(), at = -1, parts = [];
const SVG = "http://www.w3.org/2000/svg";
const draw = (tag, attributes, text) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const time = (ns) => ns < 1e3 ? Math.round(ns) + " ns" : ns < 1e6 ? Number((ns / 1e3).toPrecision(4)) + " µs" : ns < 1e9 ? Number((ns / 1e6).toPrecision(4)) + " ms" : Number((ns / 1e9).toPrecision(5)) + " s";
const place = (x) => D.unit === "nanoseconds" ? time(x) : brief(Math.round(x));
// What a record added for one interval of it: a longer record is scaled, and a short last one is taken as it is.
const rate = (metric, n) => metric.values[n] === null ? null : metric.values[n] * D.interval / Math.max(D.interval, edges[n + 1] - edges[n]);
const rates = D.metrics.map((metric) => Array.from({ length: count }, (_, n) => rate(metric, n)));
// What a metric added for each interval of the time of some records. One that the end of the program cut short is left out where there are others.
const mean = (m, first, last) => {
  let [sum, time] = [0, 0];
  for (let n = first; n <= last; n += 1) {
    const length = edges[n + 1] - edges[n];
    if (D.metrics[m].values[n] === null || (length < D.interval && first < last)) continue;
    sum += D.metrics[m].values[n];
    time += Math.max(D.interval, length);
  }
  return time > 0 ? sum / time * D.interval : null;
};
const shownNumber = (v) => v === null || v === undefined ? "–" : brief(Math.round(v));

// The record at a place.
function find(x) {
  let low = 0, high = count;
  while (high - low > 1) { const middle = (low + high) >> 1; if (edges[middle] <= x) low = middle; else high = middle; }
  return low;
}

const HEIGHT = 76, LEFT = 8, RIGHT = 8;
let X = (x) => x, back = (pixel) => pixel;

function drawPanels() {
  const box = $("panels"), width = Math.max(260, box.clientWidth || 900);
  X = (x) => LEFT + (x - view[0]) / (view[1] - view[0] || 1) * (width - LEFT - RIGHT);
  back = (pixel) => Math.min(view[1], Math.max(view[0], view[0] + (pixel - LEFT) / (width - LEFT - RIGHT) * (view[1] - view[0])));
  const first = find(view[0]), last = Math.min(count - 1, find(view[1]));
  parts = D.metrics.map((metric, m) => {
    const svg = draw("svg", { viewBox: "0 0 " + width + " " + HEIGHT, height: HEIGHT, "aria-hidden": "true" });
    D.phases.forEach((phase, n) => {
      const from = Math.max(phase.start, view[0]), to = Math.min(phase.end, view[1]);
      if (to <= from) return;
      if (n % 2) svg.append(draw("rect", { class: "band", x: X(from).toFixed(1), y: 0, width: (X(to) - X(from)).toFixed(1), height: HEIGHT }));
      if (m === 0 && D.phases.length > 1 && X(to) - X(from) > 14) svg.append(draw("text", { x: ((X(from) + X(to)) / 2).toFixed(1), y: 11, "text-anchor": "middle" }, String(phase.number)));
    });
    const top = rates[m].slice(first, last + 1).reduce((most, v) => v > most ? v : most, 0) || 1;
    const Y = (v) => HEIGHT - 2 - v / top * (HEIGHT - 18);
    const colour = "var(--c" + m % 6 + ")";
    // Records narrower than a pixel are drawn as the least and the largest of that pixel.
    let points = [];
    const flush = () => {
      if (points.length) {
        svg.append(draw("polygon", { class: "area", fill: colour, points: points[0][0].toFixed(1) + "," + (HEIGHT - 2) + " " + points.map((p) => p[0].toFixed(1) + "," + p[1].toFixed(1)).join(" ") + " " + points[points.length - 1][0].toFixed(1) + "," + (HEIGHT - 2) }));
        svg.append(draw("polyline", { class: "line", stroke: colour, points: points.map((p) => p[0].toFixed(1) + "," + p[1].toFixed(1)).join(" ") }));
      }
      points = [];
    };
    for (let n = first; n <= last;) {
      if (rates[m][n] === null) { flush(); n += 1; continue; }
      const from = X(Math.max(edges[n], view[0]));
      let [low, high, next] = [rates[m][n], rates[m][n], n + 1];
      while (next <= last && rates[m][next] !== null && X(edges[next + 1]) - from < 1) { low = Math.min(low, rates[m][next]); high = Math.max(high, rates[m][next]); next += 1; }
      const to = X(Math.min(edges[next], view[1]));
      points.push([from, Y(low)]);
      if (high > low) points.push([from, Y(high)]);
      points.push([to, Y(high)]);
      n = next;
    }
    flush();
    svg.append(draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: HEIGHT - 2, y2: HEIGHT - 2 }));
    const cursor = draw("line", { class: "cursor", y1: 0, y2: HEIGHT, x1: -9, x2: -9 });
    const chosen = draw("rect", { class: "chosen", y: 0, height: HEIGHT, x: -9, width: 0 });
    svg.append(chosen, cursor);
    const value = make("span");
    const name = make("b", {}, metric.name);
    const node = make("div", { className: "panel" }, make("header", {}, name, value), svg);
    name.style.color = colour;
    return { node, cursor, chosen, value, top };
  });
  const axis = draw("svg", { viewBox: "0 0 " + width + " 22", height: 22, "aria-hidden": "true" });
  const step = roundUp((view[1] - view[0]) / (width < 600 ? 3 : 7) || 1);
  for (let x = Math.ceil(view[0] / step) * step; x <= view[1]; x += step) {
    const end = X(x) > width - 40 ? "end" : X(x) < 30 ? "start" : "middle";
    axis.append(draw("text", { x: X(x).toFixed(1), y: 14, "text-anchor": end }, place(x)));
  }
  $("panels").replaceChildren(...parts.map((part) => part.node), axis, make("p", { className: "faint", textContent: D.unit === "nanoseconds" ? "time" : D.unit }));
  $("all").hidden = view[0] === everything[0] && view[1] === everything[1];
  point(at);
}

function roundUp(x) {
  const unit = 10 ** Math.floor(Math.log10(x));
  return [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= x * 0.9999);
}

// Shows the numbers of record `n`; of none where it is -1.
function point(n) {
  at = n;
  const inside = n >= 0 && edges[n] < view[1] && edges[n + 1] > view[0];
  const x = inside ? X((Math.max(edges[n], view[0]) + Math.min(edges[n + 1], view[1])) / 2).toFixed(1) : -9;
  parts.forEach((part, m) => {
    part.cursor.setAttribute("x1", x);
    part.cursor.setAttribute("x2", x);
    const value = D.metrics[m].values[n];
    part.value.textContent = inside ? (value === null ? "not counted" : whole(value)) : "to " + shownNumber(part.top);
  });
  const phase = inside && D.phases.find((p) => p.start <= edges[n] && edges[n] < p.end);
  $("now").textContent = inside ? "record " + whole(n) + ", " + place(edges[n]) + " to " + place(edges[n + 1]) + (phase ? ", phase " + phase.number : "") : "";
  const row = inside && D.functions ? D.functions.rows[n] : [];
  const all = inside && D.functions ? D.functions.all[n] : 0;
  $("tops").replaceChildren(...row.map(([f, executed]) => make("div", { textContent: percent(executed, all) + "  " + D.functions.names[f] })));
}

const pixel = (event) => event.clientX - $("panels").getBoundingClientRect().left;
let from = null;
const panels = $("panels");
panels.addEventListener("pointerdown", (event) => { if (event.pointerType !== "touch" && event.button === 0) { from = pixel(event); panels.setPointerCapture(event.pointerId); } });
panels.addEventListener("pointermove", (event) => {
  point(find(back(pixel(event))));
  if (from !== null) parts.forEach((part) => {
    part.chosen.setAttribute("x", Math.min(from, pixel(event)));
    part.chosen.setAttribute("width", Math.abs(pixel(event) - from));
  });
});
panels.addEventListener("pointerup", (event) => {
  if (from !== null && Math.abs(pixel(event) - from) > 6) {
    const ends = [back(from), back(pixel(event))].sort((a, b) => a - b);
    const chosen = [edges[find(ends[0])], edges[find(ends[1]) + 1]];
    show(chosen);
  }
  from = null;
});
panels.addEventListener("pointerleave", () => { if (from === null) point(-1); });
panels.addEventListener("dblclick", () => show(everything));
panels.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
  if (event.key === "Escape") show(everything);
  if (!step) return;
  event.preventDefault();
  point(Math.min(count - 1, Math.max(0, at < 0 ? find(view[0]) : at + step)));
});
$("all").addEventListener("click", () => show(everything));

function show(range) {
  view = range.slice();
  drawPanels();
}

function drawPhases() {
  if (D.phases.length < 2 && !D.functions) { $("phases-section").hidden = true; return; }
  const cell = (tag, textContent, className) => make(tag, { textContent, className });
  // A metric that counts the unit itself says nothing here.
  const told = D.metrics.map((metric, m) => ({ metric, m })).filter(({ metric }) => metric.name !== D.unit);
  const head = [cell("th", "phase", ""), cell("th", "from", ""), cell("th", "to", "wide"), cell("th", "records", "wide")];
  if (D.functions) head.push(cell("th", "most instructions", "name"));
  // A narrow page has room for one metric.
  head.push(...told.map(({ metric }, n) => cell("th", metric.name, n ? "wide" : "")));
  const body = D.phases.map((phase) => {
    const first = find(phase.start), last = find(phase.end - 1);
    const row = make("tr", { className: "link", tabIndex: 0 }, cell("td", phase.number, ""), cell("td", phase.from, ""), cell("td", phase.to, "wide"), cell("td", whole(phase.records), "wide"));
    if (D.functions) row.append(make("td", { className: "name" }, ...phase.functions.slice(0, 2).map((top) => make("div", { textContent: percent(top.share, 1) + "  " + top.name }))));
    row.append(...told.map(({ m }, n) => cell("td", shownNumber(mean(m, first, last)), n ? "wide" : "")));
    pressed(row, () => { show([phase.start, phase.end]); $("time-section").scrollIntoView({ block: "start" }); });
    return row;
  });
  $("phases").replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
}

// Room for functions under the pointer, so that nothing moves when they appear.
if (D.functions) $("tops").style.minHeight = "9em";
drawPanels();
drawPhases();
let drawnWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; requestAnimationFrame(drawPanels); } });
document.documentElement.dataset.ready = "yes";
