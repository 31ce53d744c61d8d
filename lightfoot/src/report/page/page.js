// Draws the report from the data in the page. Rows are made as they are asked for, so that a large profile opens at once.
let column = D.column; // What shares and heat are of.

// --- functions

const functions = D.functions.map((f, index) => ({ index, name: f[0], library: D.libraries[f[1]], file: f[2], line: f[3], own: f[4], all: f[5] || null }));
let order = { key: column, up: false, inclusive: false };
let shown = 40;

function functionRows() {
  const wanted = $("filter").value.toLowerCase();
  const rows = functions.filter((f) => f.own && (!wanted || f.name.toLowerCase().includes(wanted) || f.library.toLowerCase().includes(wanted)));
  const value = (f) => order.key === "name" ? f.name : ((order.inclusive ? f.all : f.own) || f.own)[order.key];
  rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const sign = x < y ? -1 : x > y ? 1 : a.index - b.index;
    return order.up ? sign : -sign;
  });
  return rows;
}

// A narrow page has room for one number a row.
const numberClass = (index) => index === column ? "" : "wide";

function drawFunctions() {
  const rows = functionRows();
  const head = make("tr");
  const heading = (label, key, inclusive, title) => {
    const th = make("th", { textContent: label, tabIndex: 0, title });
    if (order.key === key && order.inclusive === inclusive && label !== "share") th.setAttribute("aria-sort", order.up ? "ascending" : "descending");
    pressed(th, () => {
      const same = order.key === key && order.inclusive === inclusive;
      order = { key, inclusive, up: same ? !order.up : key === "name" };
      if (key !== "name") column = key;
      drawAll();
    });
    head.append(th);
    return th;
  };
  heading("share", column, false, "Share of " + D.columns[column].label);
  if (D.calls) heading("with calls", column, true, "Share with everything it called");
  D.columns.forEach((c, index) => { heading(c.short, index, false, c.label).className = numberClass(index); });
  heading("function", "name", false, "").className = "name";
  const body = make("tbody");
  for (const f of rows.slice(0, shown)) {
    const row = make("tr", { className: "link", tabIndex: 0 });
    const heat = make("td", { textContent: percent(f.own[column], D.totals[column]) });
    heat.style.background = shade(f.own[column] / (D.totals[column] || 1));
    row.append(heat);
    if (D.calls) row.append(make("td", { textContent: f.all ? percent(f.all[column], D.totals[column]) : "–" }));
    f.own.forEach((n, index) => row.append(make("td", { textContent: brief(n), title: whole(n), className: numberClass(index) })));
    const place = f.file ? base(D.files[f.file]) + ":" + f.line : base(f.library);
    row.append(make("td", { className: "name" }, f.name + " ", make("small", { textContent: "[" + place + "]", title: f.library })));
    pressed(row, () => showSource(f.file, f.line));
    body.append(row);
  }
  $("functions").replaceChildren(make("thead", {}, head), body);
  const rest = rows.length - Math.min(shown, rows.length);
  $("more").hidden = rest === 0;
  $("more").textContent = "Show " + whole(Math.min(rest, 400)) + " more of " + whole(rest);
}

const shade = (share) => share > 0.0005 ? "rgba(var(--heat)," + Math.min(0.75, 0.06 + Math.sqrt(share) * 0.7).toFixed(3) + ")" : "";

// --- source

const weightOf = (file) => (D.lines[file] || []).reduce((sum, line) => sum + line[1][column], 0);

function drawFiles() {
  const files = Object.keys(D.lines).map(Number).filter((file) => file > 0);
  const weights = new Map(files.map((file) => [file, weightOf(file)]));
  files.sort((a, b) => weights.get(b) - weights.get(a));
  const select = $("file"), before = Number(select.value);
  select.replaceChildren(...files.slice(0, 300).map((file) => make("option", { value: file, textContent: percent(weights.get(file), D.totals[column]) + "  " + D.files[file] })));
  if (files.length === 0) { $("source-section").hidden = true; return; }
  // At first, the heaviest file whose text is in the page.
  const readable = files.find((file) => D.sources[file] && D.sources[file].text !== undefined && weights.get(file) > 0);
  select.value = String(before > 0 && weights.has(before) ? before : readable || files[0]);
}

// Lines that are made at once, and what waits for the others to come into view.
const PIECE = 120;
let sourceWatch = null;

function drawSource(at) {
  const file = Number($("file").value);
  const lines = D.lines[file] || [];
  const costs = new Map(lines.map((line) => [line[0], line[1]]));
  // What lines did together with the code that was inlined there.
  const inlined = new Map(lines.filter((line) => line[2]).map((line) => [line[0], line[2]]));
  const heat = (line) => (inlined.get(line) || costs.get(line) || [])[column] || 0;
  const source = D.sources[file];
  const text = source && source.text !== undefined ? source.text.split("\n") : null;
  $("source-note").textContent = source && source.note ? source.note : text ? "" : "The source is not in this page: only lines with costs are shown.";
  const last = text ? text.length : 0;
  const numbers = text ? Array.from({ length: last }, (_, index) => index + 1) : [...costs.keys()].sort((a, b) => a - b);
  const beyond = text ? [...costs.keys()].filter((line) => line > last).sort((a, b) => a - b) : [];
  // A long file shows what is near its costs; the rest folds.
  const near = new Set();
  if (numbers.length > 1500) for (const line of costs.keys()) for (let n = line - 6; n <= line + 6; n += 1) near.add(n);
  const used = D.columns.map((c, index) => ({ ...c, index })).filter((c) => [...costs.values()].some((cost) => cost[c.index] > 0));
  const most = [...costs.keys()].reduce((max, line) => Math.max(max, heat(line)), 1);
  const items = []; // Lines, and 0 for a fold.
  for (const line of numbers.concat(beyond)) {
    if (!near.size || near.has(line)) items.push(line);
    else if (items[items.length - 1] !== 0) items.push(0);
  }
  const lineRow = (line) => {
    const besides = (props) => inlined.size ? [make("td", props)] : [];
    if (!line) return make("tr", {}, ...used.map((c) => make("td", { className: numberClass(c.index) })), ...besides({}), make("td", { className: "no", textContent: "⋮" }));
    const row = make("tr", { id: "L" + line }), cost = costs.get(line);
    used.forEach(({ index }) => row.append(make("td", { textContent: cost && cost[index] ? brief(cost[index]) : "", title: cost ? whole(cost[index]) : "", className: numberClass(index) })));
    const all = inlined.get(line);
    row.append(...besides({ textContent: all && all[column] ? brief(all[column]) : "", title: all ? whole(all[column]) : "" }));
    row.append(make("td", { className: "no", textContent: line }));
    const code = make("td", { className: "text mono", textContent: text && text[line - 1] || "" });
    if (cost) row.style.background = shade(heat(line) / most * 0.8);
    row.append(code);
    return row;
  };
  const head = make("tr", {}, ...used.map((c) => make("th", { textContent: c.short, title: c.label, className: numberClass(c.index) })), ...(inlined.size ? [make("th", { textContent: "with inlined", title: D.columns[column].label + " of the line together with all code that was inlined there" })] : []), make("th", { textContent: "line" }), make("th", { className: "name", textContent: base(D.files[file] || "") }));
  const pieces = [];
  for (let n = 0; n < items.length; n += PIECE) pieces.push(items.slice(n, n + PIECE));
  const bodies = pieces.map(() => make("tbody", { className: "unread" }));
  const fill = (n) => {
    if (n < 0 || n >= bodies.length || bodies[n].className === "") return;
    bodies[n].className = "";
    bodies[n].replaceChildren(...pieces[n].map(lineRow));
  };
  const hottest = () => { for (const line of costs.keys()) if (heat(line) === most) return line; return 0; };
  const target = at && items.includes(at) ? at : hottest();
  const piece = Math.max(0, Math.floor(items.indexOf(target) / PIECE));
  if (sourceWatch) sourceWatch.disconnect();
  $("source").replaceChildren(make("thead", {}, head), ...bodies);
  [piece - 1, piece, piece + 1].forEach(fill);
  // The others are as high as their lines will be, and are filled when they come near.
  const filled = bodies[piece], pane = $("source").parentElement;
  const height = filled ? filled.offsetHeight / filled.children.length : 0;
  bodies.forEach((body, n) => {
    if (body.className) body.append(make("tr", { style: "height:" + (height * pieces[n].length).toFixed(1) + "px" }, make("td")));
  });
  sourceWatch = new IntersectionObserver((seen) => {
    for (const entry of seen) if (entry.isIntersecting) { sourceWatch.unobserve(entry.target); fill(bodies.indexOf(entry.target)); }
  }, { root: pane, rootMargin: "800px" });
  bodies.forEach((body) => sourceWatch.observe(body));
  if ($("L" + target)) pane.scrollTop = $("L" + target).offsetTop - pane.clientHeight / 3;
}

function showSource(file, line) {
  if (!file || !D.lines[file]) return;
  if (![...$("file").options].some((option) => Number(option.value) === file)) $("file").append(make("option", { value: file, textContent: D.files[file] }));
  $("file").value = String(file);
  drawSource(line);
  $("source-section").scrollIntoView({ block: "start" });
}

// --- call tree

function drawTree() {
  if (!D.calls) return;
  const children = new Map();
  D.calls.forEach((node, index) => { if (index) { const list = children.get(node[0]) || []; list.push(index); children.set(node[0], list); } });
  const weight = (index) => D.calls[index][3][column];
  const branch = (index, depth, open) => {
    const node = D.calls[index], below = (children.get(index) || []).filter((child) => weight(child) > 0).sort((a, b) => weight(b) - weight(a));
    const own = weight(index) - below.reduce((sum, child) => sum + weight(child), 0);
    const row = make("div", { className: "node" + (below.length ? " more" : ""), tabIndex: 0, role: "treeitem" },
      make("span", { className: "share", textContent: percent(weight(index), D.totals[column]) }),
      make("span", { className: "own", textContent: percent(own, D.totals[column]), title: "by itself" }),
      make("span", { className: "label" }, make("span", { className: "faint", textContent: below.length ? "▸ " : "· " }), make("code", { textContent: functions[node[1]].name }), make("small", { textContent: "  " + whole(node[2]) + "×" })));
    row.style.paddingLeft = depth * 1.1 + "rem";
    row.firstChild.style.background = shade(weight(index) / (D.totals[column] || 1));
    const box = make("div", {}, row);
    let inner = null;
    const toggle = () => {
      if (!below.length) return;
      if (inner) { inner.remove(); inner = null; } else {
        inner = make("div", {}, ...below.slice(0, 60).map((child, place) => branch(child, depth + 1, open > 1 && place === 0 ? open - 1 : 0)));
        box.append(inner);
      }
      row.querySelector(".faint").textContent = inner ? "▾ " : "▸ ";
      row.setAttribute("aria-expanded", String(!!inner));
    };
    pressed(row, toggle);
    if (open > 0) toggle();
    return box;
  };
  const roots = (children.get(0) || []).filter((child) => weight(child) > 0).sort((a, b) => weight(b) - weight(a)).slice(0, 40);
  $("tree").replaceChildren(...roots.map((root, place) => branch(root, 0, place === 0 ? 12 : 0)));
}

// --- plots

const SVG = "http://www.w3.org/2000/svg";
const draw = (tag, attributes, text) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

// `options`: `log` for the first axis, `ticks` on it, `marks` as [x, name] for lines across, `dots` for a dot and a word at each point.
function plot(id, series, labelX, labelY, options = {}) {
  // As wide as its place, so that words keep their size.
  const [width, height, left, bottom] = [Math.max(320, Math.min(1200, $(id).clientWidth || 1000)), 250, 76, 34], right = 16, room = width < 600 ? 3 : 6;
  const svg = draw("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": series.map((s) => s.name).join(", ") });
  const xs = series.flatMap((s) => s.points.map((p) => p[0])), ys = series.flatMap((s) => s.points.map((p) => p[1]));
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)], head = options.marks ? 22 : 12;
  const step = roundUp(Math.max(...ys, 1e-9) / 4, options.binary), top = step * Math.max(1, Math.ceil(Math.max(...ys) / step - 1e-9));
  const place = options.log ? (x) => Math.log(x / x0) / Math.log(x1 / x0 || 2) : (x) => (x - x0) / (x1 - x0 || 1);
  const X = (x) => left + place(x) * (width - left - right), Y = (y) => height - bottom - y / top * (height - bottom - head);
  for (let y = 0; y <= top * 1.001; y += step) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: Y(y), y2: Y(y) }));
    svg.append(draw("text", { x: left - 6, y: Y(y) + 4, "text-anchor": "end" }, labelY(y)));
  }
  const across = roundUp((x1 - x0) / room || 1), ticks = options.ticks || [...Array(7).keys()].map((n) => n * across).filter((x) => x >= x0 && x <= x1);
  ticks.forEach((x, n) => svg.append(draw("text", { x: X(x), y: height - 12, "text-anchor": n && X(x) > width - 40 ? "end" : "middle" }, labelX(x))));
  for (const [x, name] of options.marks || []) {
    svg.append(draw("line", { class: "mark", x1: X(x), x2: X(x), y1: Y(0), y2: head - 4 }));
    svg.append(draw("text", { x: X(x), y: head - 8, "text-anchor": "middle" }, name));
  }
  const legend = make("div", { className: "legend" });
  series.forEach((s, n) => {
    const colour = "var(--c" + n % 6 + ")";
    svg.append(draw("polyline", { class: "line dash" + (n / 6 | 0), stroke: colour, points: s.points.map((p) => X(p[0]).toFixed(1) + "," + Y(p[1]).toFixed(1)).join(" ") }));
    if (options.dots) for (const p of s.points) {
      const dot = draw("circle", { cx: X(p[0]).toFixed(1), cy: Y(p[1]).toFixed(1), r: 3, fill: colour });
      dot.append(draw("title", {}, labelX(p[0]) + ": " + labelY(p[1]) + ", " + s.name));
      svg.append(dot);
    }
    const mark = make("i");
    mark.style.background = colour;
    legend.append(make("span", {}, mark, s.name));
  });
  $(id).replaceChildren(legend, svg);
}

// The next round number, of two where bytes are counted.
function roundUp(x, binary) {
  const unit = binary ? 2 ** Math.floor(Math.log2(x)) : 10 ** Math.floor(Math.log10(x));
  return (binary ? [1, 2] : [1, 2, 2.5, 5, 10]).map((n) => n * unit).find((n) => n >= x * 0.9999);
}

const bytes = (n) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < 4) { n /= 1024; unit += 1; }
  return String(Number(n.toFixed(n < 10 ? 1 : 0))) + " " + units[unit];
};

function drawSlices() {
  if (!D.slices || D.slices.rows.length < 2) { $("time-section").hidden = true; return; }
  const step = D.slices.instructions, joined = Math.ceil(D.slices.rows.length / 320);
  const shownColumns = D.columns.map((c, index) => ({ ...c, index })).filter((c) => D.kind === "cache" ? c.field.endsWith("misses") : c.field === "loads" || c.field === "stores");
  const series = shownColumns.map((c) => {
    const points = [];
    for (let n = 0; n < D.slices.rows.length; n += joined) {
      const rows = D.slices.rows.slice(n, n + joined);
      const sum = (index) => rows.reduce((total, row) => total + row[index], 0);
      points.push([n * step, 1000 * sum(c.index) / Math.max(1, sum(0))]);
    }
    return { name: c.label, points };
  }).filter((s) => s.points.some((p) => p[1] > 0));
  if (series.length) plot("time", series, (x) => brief(Math.round(x)), (y) => String(Number(y.toPrecision(3))));
  else $("time-section").hidden = true;
}

function drawSets() {
  const sets = D.sets;
  if (!sets || sets.rows.length < 2) { $("sets-section").hidden = true; return; }
  const unit = [sets.line, 4096], x = (index) => index * sets.instructions;
  const names = ["lines of " + sets.line + " B", "pages of 4 KiB"];
  const label = (at) => brief(Math.round(at));
  plot("sets", names.map((name, n) => ({ name, points: sets.rows.map((row, index) => [x(index), row[n] * unit[n]]) })), label, bytes, { binary: true });
  let grown = [0, 0];
  const growth = sets.rows.map((row) => { grown = grown.map((sum, n) => sum + row[n + 2] * unit[n]); return grown; });
  plot("footprint", names.map((name, n) => ({ name: name + ": " + bytes(grown[n]), points: growth.map((row, index) => [x(index), row[n]]) })), label, bytes, { binary: true });
  $("sets-note").textContent = "Data touched in each " + whole(sets.instructions) + " instructions, as whole lines and as whole pages."
    + (sets.uncounted ? " A slice may have touched up to " + whole(sets.uncounted) + " lines more (" + bytes(sets.uncounted * sets.line) + "), which slices before had touched; the footprint is exact." : "");
}

function drawCurve() {
  const curve = D.curve;
  if (!curve) { $("curve-section").hidden = true; return; }
  const ratio = (part, all) => 100 * part / Math.max(1, all), rows = curve.rows;
  const series = [["loads and stores", (r) => ratio(r[1] + r[2], curve.loads + curve.stores)], ["loads", (r) => ratio(r[1], curve.loads)], ["stores", (r) => ratio(r[2], curve.stores)]]
    .map(([name, value]) => ({ name, points: rows.map((row) => [row[0], value(row)]) }));
  const doubled = rows.map((row) => row[0]).filter((size) => Number.isInteger(Math.log2(size)));
  const marks = rows.filter((row) => row[4]).map((row) => [row[0], row[4]]);
  plot("curve", series, bytes, (y) => Number(y.toPrecision(3)) + " %", { log: true, dots: true, marks, ticks: doubled.filter((_, n) => n % ($("curve").clientWidth < 600 ? 5 : 2) === 0) });
  $("curve-note").textContent = "Data caches with least-recently-used replacement, lines of " + curve.line + " B and "
    + (curve.sets === 1 ? "full associativity" : whole(curve.sets) + " sets of more and more ways") + ", each thread with its own; all in one pass, exact. Where the curve is steep is what the program wants to keep.";
  const cells = (row, tag) => make("tr", {}, ...row.map((cell) => make(tag, { textContent: cell })));
  const percents = (part, all) => all > 0 ? Number((100 * part / all).toPrecision(3)) + " %" : "–";
  $("sizes").replaceChildren(make("thead", {}, cells(["size", "ways", "load misses", "", "store misses", "", "level"], "th")),
    make("tbody", {}, ...rows.map((r) => cells([bytes(r[0]), whole(r[3]), whole(r[1]), percents(r[1], curve.loads), whole(r[2]), percents(r[2], curve.stores), r[4] || ""], "td"))));
}

function drawPlots() {
  drawSlices();
  drawSets();
  drawCurve();
}

function drawAll() {
  drawFunctions();
  drawFiles();
  drawSource();
  drawTree();
}

// --- processes

const everything = { totals: D.totals, lines: D.lines, own: functions.map((f) => f.own) };

function chooseProcess(number) {
  const process = D.processes[number];
  D.totals = process ? process.totals : everything.totals;
  D.lines = process ? process.lines : everything.lines;
  const own = process ? new Map(process.functions) : null;
  functions.forEach((f, index) => { f.own = own ? own.get(index) : everything.own[index]; });
  $("source-section").hidden = false;
  $("process-note").textContent = process ? "Its totals: " + D.columns.map((c, index) => whole(D.totals[index]) + " " + c.label).join(", ") + "." : "";
  drawAll();
}

if (D.processes) {
  const choices = [["", "all processes"], ...D.processes.map((process, number) => [number, process.name])];
  $("process").replaceChildren(...choices.map(([value, textContent]) => make("option", { value, textContent })));
  $("process").addEventListener("change", () => chooseProcess($("process").value === "" ? -1 : Number($("process").value)));
} else $("process-section").hidden = true;

$("filter").addEventListener("input", () => { shown = 40; drawFunctions(); });
$("more").addEventListener("click", () => { shown += 400; drawFunctions(); });
$("file").addEventListener("change", () => drawSource());
$("cuts").textContent = D.cuts.join(" ");
if (!D.calls) $("tree-section").hidden = true;
$("by").replaceChildren(...D.columns.map((c, index) => make("option", { value: index, textContent: c.label })));
$("by").value = String(column);
$("by").addEventListener("change", () => { column = Number($("by").value); order = { key: column, up: false, inclusive: false }; drawAll(); });
drawPlots();
drawAll();
let drawnWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; requestAnimationFrame(drawPlots); } });
document.documentElement.dataset.ready = "yes";
