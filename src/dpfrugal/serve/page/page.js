// The page of released percentiles: it shows what was released and asks the server for nothing else.
"use strict";

const CARDS = 24;
const WIDTH = 320, HEIGHT = 115, TOP = 6, BOTTOM = 18, LEFT = 54, RIGHT = 6;
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const MANY = 4 * CARDS; // of more keys than that, past windows are loaded for those that are shown only
const state = { metrics: [], metric: null, releases: [], keys: [], page: 0, cursors: new Map(), cards: new Map() };

function make(name, attributes = {}, text = null) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function draw(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

// Three digits with the unit that reads best.
function shown(value, unit) {
  if (value === null || value === undefined) return "–";
  const steps = unit === "seconds" ? [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]
    : unit === "bytes" ? [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]
    : unit === "ratio" ? [[0.01, "%"]] : [[1, ""]];
  const size = Math.abs(value);
  const [scale, name] = steps.find(([step]) => size >= step) || (size === 0 ? steps[0] : steps[steps.length - 1]);
  const digits = Number((value / scale).toPrecision(3));
  return `${digits.toLocaleString("en", { maximumSignificantDigits: 3 })}${name ? " " + name : ""}`;
}

const interval = (low, high, unit) =>
  low === null && high === null ? "too few items to tell"
    : `${low === null ? "…" : shown(low, unit)} to ${high === null ? "…" : shown(high, unit)}`;
const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });
const percent = (q) => `p${Number((100 * q).toPrecision(6))}`;
const current = () => state.metrics.find((one) => one.metric === state.metric);
const quantile = () => Number(byId("quantile").value || 0);
const range = () => Number(byId("range").value);

function keysFound() {
  const wanted = byId("filter").value.trim().toLowerCase();
  return state.keys.filter((key) => key.toLowerCase().includes(wanted));
}

// The keys of this page of cards.
function keysShown(found) {
  state.page = Math.max(0, Math.min(state.page, Math.ceil(found.length / CARDS) - 1));
  return found.slice(state.page * CARDS, (state.page + 1) * CARDS);
}

// The windows of the chart, with null where nothing was released.
function windows() {
  const length = current().window_seconds * 1000;
  const found = new Map(state.releases.map((one) => [Date.parse(one.window_end), one]));
  const ends = [...found.keys()].sort((a, b) => a - b);
  const all = [];
  if (!ends.length) return all;
  const last = ends[ends.length - 1];
  const first = Math.max(ends[0], last - (range() - 1) * length);
  for (let end = first; end <= last; end += length) {
    const release = found.get(end) || null;
    if (release && !release.byKey) release.byKey = new Map(release.keys.map((one) => [one.key, one]));
    all.push({ end, release });
  }
  return all;
}

function series(key, all, q) {
  return all.map(({ end, release }) => {
    const found = release && release.byKey.get(key);
    return found ? { end, released: true, value: found.values[q], low: found.lower[q], high: found.upper[q] }
      : { end, released: false, value: null, low: null, high: null };
  });
}

function drawChart(card, key, points, unit) {
  const { svg } = card;
  const inner = [stripes()];
  const known = points.filter((one) => one.value !== null);
  const at95 = (all) => all.length ? all.sort((a, b) => a - b)[Math.floor(0.95 * (all.length - 1))] : 0;
  // One wide interval, or one window with few items, must not flatten all others: the farthest may leave the chart.
  const middle = at95(known.map((one) => one.value));
  const top = Math.max(Math.min(at95(known.map((one) => one.high ?? one.value)), 3 * Math.abs(middle)), 1.15 * middle, 1e-12);
  const bottom = Math.min(0, -at95(known.map((one) => -one.value)));
  const step = (WIDTH - LEFT - RIGHT) / Math.max(1, points.length);
  const x = (at) => LEFT + (at + 0.5) * step;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (Math.min(top, Math.max(bottom, value)) - bottom) / (top - bottom));
  for (const value of known.length ? [bottom, (bottom + top) / 2, top] : []) {
    inner.push(draw("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    inner.push(draw("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, shown(value, unit)));
  }
  points.forEach((point, at) => {
    if (!point.released) inner.push(draw("rect", { class: "gap", x: x(at) - step / 2, y: TOP, width: step, height: HEIGHT - TOP - BOTTOM }));
  });
  for (const run of runs(points)) {
    const upper = run.map((at) => `${x(at)},${y(points[at].high === null ? top : points[at].high)}`);
    const lower = run.map((at) => `${x(at)},${y(points[at].low === null ? bottom : points[at].low)}`).reverse();
    if (run.length === 1) {
      const [at] = run, high = y(points[at].high ?? top), low = y(points[at].low ?? bottom);
      inner.push(draw("rect", { class: "band", x: x(at) - step / 3, width: 2 * step / 3, y: high, height: Math.max(1, low - high) }));
      inner.push(draw("circle", { class: "dot", cx: x(at), cy: y(points[at].value), r: 2.5 }));
    } else {
      inner.push(draw("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
      inner.push(draw("polyline", { class: "line", points: run.map((at) => `${x(at)},${y(points[at].value)}`).join(" ") }));
    }
  }
  if (points.length) {
    inner.push(draw("text", { x: LEFT, y: HEIGHT - 4 }, clock(points[0].end)));
    inner.push(draw("text", { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, clock(points[points.length - 1].end)));
  }
  const at = cursorOf(key, points);
  if (at !== null) inner.push(draw("line", { class: "cursor", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }));
  svg.replaceChildren(...inner);
  card.points = points;
  card.step = step;
}

function stripes() {
  const defs = draw("defs"), pattern = draw("pattern", { id: "stripes", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(draw("line", { class: "stripe", x1: 0, y1: 0, x2: 0, y2: 6 }));
  defs.append(pattern);
  return defs;
}

function runs(points) {
  const all = [];
  let open = null;
  points.forEach((point, at) => {
    if (point.value === null) open = null;
    else if (open) open.push(at);
    else all.push(open = [at]);
  });
  return all;
}

// A cursor stays at its window while others come and go.
function cursorOf(key, points) {
  const end = state.cursors.get(key);
  const at = end === undefined ? -1 : points.findIndex((one) => one.end === end);
  return at < 0 ? null : at;
}

function reading(point, unit) {
  if (!point.released) return `${clock(point.end)}: nothing was released`;
  if (point.value === null) return `${clock(point.end)}: too few items to tell`;
  return `${clock(point.end)}: ${shown(point.value, unit)}, ${interval(point.low, point.high, unit)}`;
}

function moveCursor(key, to) {
  const card = state.cards.get(key);
  if (!card || !card.points.length) return;
  const at = Math.max(0, Math.min(card.points.length - 1, to));
  state.cursors.set(key, card.points[at].end);
  const unit = current().unit;
  drawChart(card, key, card.points, unit);
  card.at.textContent = reading(card.points[at], unit);
  byId("reading").textContent = card.at.textContent;
}

function makeCard(key) {
  const item = make("li"), figure = make("figure"), caption = make("figcaption");
  const card = { item, name: make("b", {}, key || "all items"), value: make("span", { class: "value" }), interval: make("span", { class: "interval" }), at: make("p", { class: "at" }), points: [], step: 1 };
  card.svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: "0" });
  card.svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  caption.append(card.name, card.value, card.interval);
  figure.append(caption, card.svg);
  item.append(figure, card.at);
  card.svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") { state.cursors.delete(key); card.at.textContent = ""; render(); return; }
    if (!(event.key in moves)) return;
    event.preventDefault();
    const from = cursorOf(key, card.points);
    moveCursor(key, (from === null ? card.points.length - (moves[event.key] === -1 ? 0 : 1) : from) + moves[event.key]);
  });
  card.svg.addEventListener("pointermove", (event) => {
    const box = card.svg.getBoundingClientRect();
    const scale = Math.min(box.width / WIDTH, box.height / HEIGHT);
    const x = (event.clientX - box.left - (box.width - WIDTH * scale) / 2) / scale;
    const at = Math.floor((x - LEFT) / card.step);
    if (at >= 0 && at < card.points.length) moveCursor(key, at);
  });
  card.svg.addEventListener("pointerleave", () => {
    if (document.activeElement === card.svg) return;
    state.cursors.delete(key);
    card.at.textContent = "";
    drawChart(card, key, card.points, current().unit);
  });
  return card;
}

function render() {
  const metric = current();
  if (!metric) return;
  const keys = keysFound(), q = quantile(), all = windows(), unit = metric.unit;
  const visible = keysShown(keys);
  for (const [key, card] of state.cards) if (!visible.includes(key)) { card.item.remove(); state.cards.delete(key); }
  visible.forEach((key, place) => {
    if (!state.cards.has(key)) state.cards.set(key, makeCard(key));
    const card = state.cards.get(key), list = byId("cards");
    if (list.children[place] !== card.item) list.insertBefore(card.item, list.children[place] || null);
    const points = series(key, all, q), last = points[points.length - 1];
    drawChart(card, key, points, unit);
    card.value.textContent = `${percent(metric.quantiles[q])} ${shown(last.value, unit)}`;
    card.interval.textContent = interval(last.low, last.high, unit);
    const gaps = points.filter((one) => !one.released).length;
    card.svg.setAttribute("aria-label", `${key || "all items"}, ${percent(metric.quantiles[q])} over ${points.length} windows` +
      `${gaps ? `, ${gaps} of them not released` : ""}: last ${reading(last, unit)}. Arrow keys move from window to window.`);
  });
  byId("pages").hidden = keys.length <= CARDS;
  byId("shown").textContent = `${state.page * CARDS + 1} to ${state.page * CARDS + visible.length} of ${keys.length}`;
  byId("before").disabled = state.page === 0;
  byId("after").disabled = (state.page + 1) * CARDS >= keys.length;
  renderTable(metric, visible, all);
  renderBudget(metric);
}

function renderTable(metric, keys, all) {
  const last = all.length ? all[all.length - 1].release : null;
  const heads = [metric.label || "key", ...metric.quantiles.map(percent)];
  byId("columns").replaceChildren(...heads.map((text) => make("th", { scope: "col" }, text)));
  byId("window").textContent = last ? `${metric.metric}, the window from ${clock(last.window_start)} to ${clock(last.window_end)}` +
    `${last.whole ? "" : " (the server started within it)"}` : "Nothing was released yet.";
  byId("rows").replaceChildren(...(last ? keys : []).map((key) => {
    const found = last.byKey.get(key), row = make("tr");
    row.append(make("th", { scope: "row" }, key || "all items"));
    metric.quantiles.forEach((_, at) => {
      const cell = make("td", {}, found ? shown(found.values[at], metric.unit) : "–");
      if (found) cell.append(" ", make("small", {}, interval(found.lower[at], found.upper[at], metric.unit)));
      row.append(cell);
    });
    return row;
  }));
}

function renderBudget(metric) {
  const { windows_spent: spent, windows: most, measures, day } = metric.budget;
  const symbols = { epsilon: "ε", delta: "δ", rho: "ρ" };
  const number = (value) => Number(value.toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 });
  byId("spent").style.width = `${Math.min(100, 100 * spent / most)}%`;
  const parts = measures.map((one) => `${symbols[one.measure]} ${number(spent * one.per_window)} of ${number(one.per_day)}`);
  byId("budget").textContent = `Budget of ${day} (UTC): ${parts.join(", ")} spent; ${(most - spent).toLocaleString("en")} of ` +
    `${most.toLocaleString("en")} windows left.${spent >= most ? " Releases go on tomorrow." : ""}`;
}

async function ask(path) {
  const answer = await fetch(path, { credentials: "same-origin", headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

async function refreshMetrics() {
  const { metrics } = await ask("api/v1/metrics");
  const names = (all) => all.map((one) => `${one.metric} ${one.quantiles}`).join();
  const changed = names(metrics) !== names(state.metrics);
  state.metrics = metrics;
  if (!changed) return;
  const chosen = state.metric;
  byId("metric").replaceChildren(...metrics.map((one) => make("option", { value: one.metric }, one.metric)));
  state.metric = metrics.some((one) => one.metric === chosen) ? chosen : metrics[0].metric;
  byId("metric").value = state.metric;
  await chooseMetric();
}

async function chooseMetric() {
  const metric = current();
  const before = byId("quantile").value;
  byId("quantile").replaceChildren(...metric.quantiles.map((q, at) => make("option", { value: at }, percent(q))));
  byId("quantile").value = before && before < metric.quantiles.length ? before : metric.quantiles.length - 1;
  byId("about").textContent = metric.about;
  byId("promise").textContent = `Guarantee: ${metric.guarantee}; windows of ${metric.window_seconds} s, released once each.`;
  state.releases = [];
  state.keys = [];
  state.cards.clear();
  state.cursors.clear();
  byId("cards").replaceChildren();
  await load();
}

async function fetchReleases(metric, windows, keys) {
  const since = Date.now() / 1000 - windows * metric.window_seconds;
  const asked = new URLSearchParams([["limit", "1000"], ["metric", metric.metric], ["since", since.toFixed(0)], ...keys.map((key) => ["key", key])]);
  const found = [];
  let path = `api/v1/releases?${asked}`;
  while (path && found.length < 1000) {
    const answer = await ask(path);
    found.push(...answer.releases);
    path = answer.next && answer.next.replace(/^\//, "");
  }
  return found;
}

async function load() {
  const metric = current(), length = range();
  let found = await fetchReleases(metric, 3, []);
  const keys = namesOf(found[found.length - 1]);
  if (keys.length <= MANY) found = await fetchReleases(metric, length + 1, []);
  if (metric.metric !== state.metric || length !== range()) return; // others were chosen meanwhile
  state.releases = found;
  state.keys = namesOf(found[found.length - 1]);
  await loadShown();
}

const namesOf = (release) => release ? release.keys.map((one) => one.key) : [];

// The past windows of the keys that are shown, where there are too many to load them all.
async function loadShown() {
  if (state.keys.length > MANY) {
    const metric = current(), keys = keysShown(keysFound());
    for (const release of await fetchReleases(metric, range() + 1, keys)) {
      const known = state.releases.find((one) => one.id === release.id);
      if (!known) state.releases.push(release);
      else if (known !== state.releases[state.releases.length - 1]) Object.assign(known, { keys: release.keys, byKey: null });
    }
    if (metric.metric !== state.metric) return;
    state.releases.sort((a, b) => Date.parse(a.window_end) - Date.parse(b.window_end));
  }
  render();
}

function take(release) {
  const metric = state.metrics.find((one) => one.metric === release.metric);
  if (!metric || state.releases.some((one) => one.id === release.id)) return;
  metric.budget.windows_spent = Math.min(metric.budget.windows, metric.budget.windows_spent + 1);
  if (release.metric !== state.metric) return;
  state.keys = namesOf(release);
  if (state.keys.length > MANY) {
    const shown = new Set(keysShown(keysFound()));
    for (const one of state.releases) Object.assign(one, { keys: one.keys.filter(({ key }) => shown.has(key)), byKey: null });
  }
  state.releases.push(release);
  state.releases = state.releases.slice(-range() - 1);
  render();
}

function listen() {
  const events = new EventSource("api/v1/events");
  const connection = byId("connection");
  events.addEventListener("open", async () => {
    connection.textContent = "live";
    connection.className = "live";
    await refreshMetrics().then(load).catch(() => {});
  });
  events.addEventListener("release", (event) => take(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    connection.textContent = "not connected; trying again";
    connection.className = "lost";
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

async function watchStates() {
  const states = byId("states");
  try {
    const answer = await (await fetch("-/ready")).json();
    states.textContent = answer.state.join("; ");
    states.hidden = !answer.state.length;
    await refreshMetrics();
    render();
  } catch { /* the connection says so */ }
}

byId("metric").addEventListener("change", () => { state.metric = byId("metric").value; state.page = 0; chooseMetric(); });
byId("quantile").addEventListener("change", render);
byId("range").addEventListener("change", load);
let typed = 0;
byId("filter").addEventListener("input", () => {
  state.page = 0;
  clearTimeout(typed);
  typed = setTimeout(() => loadShown().catch(() => {}), state.keys.length > MANY ? 300 : 0);
});
byId("before").addEventListener("click", () => { state.page -= 1; loadShown().catch(() => {}); });
byId("after").addEventListener("click", () => { state.page += 1; loadShown().catch(() => {}); });
byId("choice").addEventListener("submit", (event) => event.preventDefault());
refreshMetrics().catch(() => {}).finally(listen);
setInterval(watchStates, 10000);
