// The report: a map, a table of clusters that folds on a phone, cards, a relevance slider, and clusters over time.
import { breakable, el, percent, short } from "./dom.js";
import { ClusterMap } from "./cluster_map.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { cards, words, meaning, time } = data;
const PER_PAGE = 100;
const $ = id => document.getElementById(id);

// Times that are no epoch seconds (counted from 0, say) are shown as the numbers they are.
const day = value => Math.abs(value) < 1e8 ? short(value) : new Date(value * 1000).toISOString().slice(0, 16).replace("T", " ");
const isShare = card => /share|probability/.test(card.meaning);
const amount = (card, one, value) => isShare(card) && !one.is_level ? percent(value) : short(value);
// A level is placed between the lowest and the highest cluster: columns have units of their own, and no common scale.
const ranges = new Map();
for (const one of cards.flatMap(card => card.features)) {
  if (!one.is_level) continue;
  const [low, high] = ranges.get(one.name) || [Infinity, -Infinity];
  ranges.set(one.name, [Math.min(low, one.low ?? one.value), Math.max(high, one.high ?? one.value)]);
}

// --- which features describe a cluster: the model's own, or by relevance (Sievert and Shirley, 2014) -------------------
let weight = null; // of heaviness against lift; null until the slider is moved
const relevance = ([, value, lift], total) => weight * Math.log(Math.max(value / total, 1e-300)) + (1 - weight) * Math.log(Math.max(lift, 1e-300));
function ranked(card) {
  const total = card.terms.reduce((sum, term) => sum + term[1], 0) || 1;
  return [...card.terms].filter(term => term[1] > 0).sort((a, b) => relevance(b, total) - relevance(a, total));
}
const salient = card => weight !== null && card.terms.length ? ranked(card).map(term => words[term[0]])
  : card.distinctive.length ? card.distinctive : card.features.map(one => one.name);
const described = card => weight !== null && card.terms.length
  ? ranked(card).slice(0, Math.max(card.features.length, 10)).map(([word, value, lift]) => ({ name: words[word], value, lift, low: null, high: null })) : card.features;

// --- the table -------------------------------------------------------------------------------------------------------
const columns = [
  { head: "Id", key: c => c.id, show: c => c.id },
  { head: "Items", key: c => c.size, show: c => c.size.toLocaleString("en") },
  { head: "Share", key: c => c.share, show: c => percent(c.share), title: "Of all items" },
  { head: "Cohesion", key: c => c.cohesion, show: c => short(c.cohesion), if: c => c.cohesion !== null, title: "Mean over its items: " + meaning },
  { head: "Stability", key: c => c.stability, show: c => short(c.stability), if: c => c.stability !== null,
    title: "How surely fits to halves of the rows find it again (mean best Jaccard): above 0.75 trust it, below 0.5 it comes and goes" },
  { head: "Uncertainty", key: c => c.uncertainty, show: c => short(c.uncertainty), if: c => c.uncertainty !== null, title: "0: sure who belongs, 1: no idea" },
  { head: "First", key: c => c.born, show: c => c.born === null ? "–" : day(c.born), if: c => c.born !== null, title: "Time of its first item (UTC)" },
  { head: "Last", key: c => c.last_seen, show: c => c.last_seen === null ? "–" : day(c.last_seen), if: c => c.last_seen !== null, title: "Time of its last item (UTC)" },
  { head: "What it is about", key: c => c.name, about: true },
].filter(column => !column.if || cards.some(column.if));
const texts = cards.map(c => [c.id, c.name, ...c.terms.map(term => words[term[0]]), ...c.features.map(one => one.name), ...c.items.map(one => one[0])].join("\n").toLowerCase());
const at = new Map(cards.map((card, row) => [card.id, row]));
let order = [], sorted = { column: columns[1], down: true }, page = 0;
const open = new Set();

function chosen() {
  const parts = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const { key } = sorted.column, sign = sorted.down ? -1 : 1;
  const compare = (a, b) => {
    const x = key(cards[a]), y = key(cards[b]);
    if (x === y) return a - b;
    if (x === null) return 1;
    if (y === null) return -1;
    return sign * (x < y ? -1 : 1);
  };
  return cards.map((_, row) => row).filter(row => parts.every(part => texts[row].includes(part))).sort(compare);
}
function sortBy(column, down) {
  sorted = { column, down };
  page = 0;
  draw();
}
function header() {
  document.querySelector("#clusters thead tr").replaceChildren(...columns.map(column => {
    const arrow = column === sorted.column ? (sorted.down ? " ▾" : " ▴") : "";
    const button = el("button", { title: column.title || "Sort by this", onclick: () => sortBy(column, column === sorted.column ? !sorted.down : !column.about) }, column.head + arrow);
    const th = el("th", { className: column.about ? "" : "n" }, button);
    th.setAttribute("aria-sort", column === sorted.column ? (sorted.down ? "descending" : "ascending") : "none");
    return th;
  }));
}
function bar(card, one, most) {
  const whiskers = !card.bounded && one.low !== null && one.high !== null;
  const [low, high] = one.is_level ? ranges.get(one.name) : [0, most];
  const place = value => 100 * Math.max(0, Math.min(1, (value - low) / Math.max(high - low, 1e-300))) + "%";
  const fill = el("div", { className: "fill" }), track = el("div", { className: "track" }, fill);
  fill.style.width = place(one.value);
  if (whiskers) {
    const whisker = el("div", { className: "whisker", title: `between ${amount(card, one, one.low)} and ${amount(card, one, one.high)}` });
    whisker.style.left = place(one.low); whisker.style.width = `calc(${place(one.high)} - ${place(one.low)})`;
    track.append(whisker);
  }
  const beside = one.lift !== undefined ? `${short(one.lift)} × usual` : card.bounded && one.low !== null ? `${short(one.low)} to ${short(one.high)}` : null;
  return el("div", { className: beside ? "feature wide" : "feature" }, el("div", { className: "name" }, ...breakable(one.name)), track,
    el("div", { className: "value", title: one.value }, amount(card, one, one.value)), beside && el("div", { className: "beside" }, beside));
}
function spark(counts, label) {
  const most = Math.max(1, ...counts), space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
  for (const [name, value] of Object.entries({ class: "spark", viewBox: `0 0 ${counts.length} 30`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Items over time of ${label}: at most ${Math.max(...counts)} in one bar` })) svg.setAttribute(name, value);
  counts.forEach((count, place) => {
    const box = document.createElementNS(space, "rect"), height = 30 * count / most, title = document.createElementNS(space, "title");
    for (const [name, value] of Object.entries({ x: place, y: 30 - height, width: .9, height })) box.setAttribute(name, value);
    title.textContent = `${day(time.start + place * time.step)}: ${count.toLocaleString("en")}`;
    box.append(title); svg.append(box);
  });
  return svg;
}
function details(card) {
  const list = described(card), most = Math.max(...list.filter(one => !one.is_level).map(one => Math.max(Math.abs(one.value), card.bounded ? 0 : one.high ?? 0)), 1e-300);
  const heading = weight !== null && card.terms.length ? `Features by relevance (${card.meaning})` : `Features: ${card.meaning}${card.bounded ? `, and the ${card.bounded} (credible interval)` : ""}`;
  const scale = list.some(one => one.is_level) ? el("p", { className: "soft" }, "Bars of measurements run from the lowest to the highest cluster.") : null;
  const items = card.items.map(([name, score]) => el("li", {}, name + " ", el("span", {}, score === null ? "" : short(score))));
  return el("div", { className: "card" },
    el("div", {}, el("h3", {}, heading), scale, ...list.map(one => bar(card, one, most))),
    el("div", {}, el("h3", {}, "Typical items"), items.length ? el("ol", { className: "items" }, ...items) : "none kept",
      card.notes.length ? el("h3", {}, "Notes") : null, ...card.notes.map(note => el("div", { className: "soft" }, note)),
      card.over_time.length ? el("h3", {}, "Over time") : null, card.over_time.length ? spark(card.over_time, card.name) : null));
}
function row(number) {
  const card = cards[number];
  const cells = columns.map(column => column.about
    ? el("td", { className: "about" }, card.named || !card.features.length ? el("b", {}, card.name + " ") : null,
      ...(card.features.length ? salient(card).slice(0, 7).map(name => el("span", { className: "chip" }, ...breakable(name))) : []))
    : el("td", { className: "n", "data-head": column.head }, String(column.show(card))));
  const line = el("tr", { className: "row", tabIndex: 0, id: "cluster-" + card.id, "aria-expanded": open.has(number) }, ...cells);
  line.onclick = () => { open.has(number) ? open.delete(number) : open.add(number); draw(); };
  line.onkeydown = event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); line.click(); } };
  return open.has(number) ? [line, el("tr", { className: "detail" }, el("td", { colSpan: columns.length }, details(card)))] : [line];
}
const onPage = () => order.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
function draw() {
  header();
  order = chosen();
  page = Math.min(page, Math.max(0, Math.ceil(order.length / PER_PAGE) - 1));
  const shown = onPage(), first = page * PER_PAGE;
  document.querySelector("#clusters tbody").replaceChildren(...shown.flatMap(row));
  $("count").textContent = order.length ? `${first + 1}–${first + shown.length} of ${order.length.toLocaleString("en")} cluster${order.length === 1 ? "" : "s"}` : "no cluster matches";
  $("back").disabled = page === 0;
  $("next").disabled = first + PER_PAGE >= order.length;
  $("all").textContent = shown.length && shown.every(number => open.has(number)) ? "Close all on this page" : "Open all on this page";
  if (map) map.highlight($("search").value.trim() ? new Set(order.map(number => cards[number].id)) : null);
}
function show(id) {
  const number = at.get(id);
  $("search").value = "";
  order = chosen();
  page = Math.floor(order.indexOf(number) / PER_PAGE);
  open.add(number);
  draw();
  if (map) map.select(id);
  $("cluster-" + id).scrollIntoView({ block: "start", behavior: "smooth" });
}

// --- clusters over time ----------------------------------------------------------------------------------------------
function overTime() {
  const largest = cards.filter(card => card.over_time.some(count => count)).slice(0, 12);
  $("times").replaceChildren(...largest.map(card => el("div", { className: "line" },
    el("button", { className: "link", onclick: () => show(card.id) }, card.name), spark(card.over_time, card.name), el("span", { className: "soft" }, card.size.toLocaleString("en")))),
    el("div", { className: "line soft" }, el("span"), el("div", { className: "ends" }, el("span", {}, day(time.start)), el("span", {}, day(time.start + time.step * time.n))), el("span")));
}

// --- start -----------------------------------------------------------------------------------------------------------
let map = null;
if (cards.length > 1) {
  map = new ClusterMap(show, { wheelNeedsFocus: true });
  $("map").append(map.element);
  map.show({ id: cards.map(c => c.id), name: cards.map(c => c.name), size: cards.map(c => c.size), x: cards.map(c => c.x), y: cards.map(c => c.y), bursting: cards.map(() => false),
    about: cards.map(c => `${c.size.toLocaleString("en")} items: ${(c.distinctive.length ? c.distinctive : c.features.map(one => one.name)).slice(0, 6).join(", ")}`) });
} else $("map").closest("section").hidden = true;
if (time) overTime(); else $("times").closest("section").hidden = true;
if (cards.every(card => !card.terms.length)) $("relevance").closest("label").hidden = true;
$("relevance").oninput = event => { weight = +event.target.value; $("lambda").textContent = "λ = " + weight.toFixed(2); draw(); };
$("sort").append(...columns.map((column, place) => el("option", { value: place, selected: column === sorted.column }, column.head)));
$("sort").onchange = event => { const column = columns[+event.target.value]; sortBy(column, !column.about); };
$("search").oninput = () => { page = 0; draw(); };
$("back").onclick = () => { page--; draw(); };
$("next").onclick = () => { page++; draw(); };
$("all").onclick = () => {
  const shown = onPage(), close = shown.every(number => open.has(number));
  shown.forEach(number => close ? open.delete(number) : open.add(number));
  draw();
};
$("explained").append(...columns.filter(column => column.title).flatMap(column => [el("dt", {}, column.head), el("dd", {}, column.title)]));
draw();
