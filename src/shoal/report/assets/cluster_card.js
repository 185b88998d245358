// The card of one cluster.
import { breakable, el, percent, short, when } from "./dom.js";

export function spark(counts, label) {
  const most = Math.max(1, ...counts), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark"); svg.setAttribute("viewBox", `0 0 ${Math.max(counts.length, 1)} 30`); svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img"); svg.setAttribute("aria-label", `Items over time of ${label}: ${counts.reduce((sum, n) => sum + n, 0)} in all, ${Math.max(0, ...counts)} at most in one bar`);
  counts.forEach((n, at) => {
    if (!n) return;
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ x: at, y: 30 - 30 * n / most, width: .9, height: 30 * n / most })) bar.setAttribute(name, value);
    svg.append(bar);
  });
  return svg;
}

// A bar for the value with its credible interval, where there is one; both in the unit of what the interval bounds.
function feature(one, most, bounded) {
  const [least, top] = one.range || [0, most], whole = one.low !== null;
  const width = value => 100 * Math.max(0, Math.min(1, (value - least) / Math.max(top - least, 1e-300))) + "%";
  const fill = el("div", { className: "fill" }), range = el("div", { className: "range" });
  fill.style.width = width(center(one, bounded));
  if (whole) { range.style.left = width(one.low); range.style.width = `calc(${width(one.high)} - ${width(one.low)})`; }
  return el("div", { className: "bar" }, el("span", {}, ...breakable(one.name)), el("div", { className: "track" }, fill, whole ? range : null),
    el("span", { className: "num", title: short(one.value) }, whole ? `${short2(one.low)}–${short2(one.high)}` : short(one.value)));
}
const center = (one, bounded) => bounded && one.low !== null ? (one.low + one.high) / 2 : one.value;
const short2 = value => Math.abs(value) >= 100 ? short(value) : value >= 0 && value < 1 ? value.toFixed(2).replace(/^0/, "") : String(+value.toPrecision(2));

function items(list) {
  return el("ol", { className: "items" }, ...list.map(item => el("li", {}, item.id + " ", el("span", { className: "soft" }, `${short(item.score)} ${item.features.slice(0, 8).join(", ")}`))));
}

export function clusterCard(card, go, actions) {
  const shown = card.features.slice(0, 12), most = Math.max(...shown.filter(one => !one.range).map(one => Math.max(center(one, card.bounded), one.high ?? 0)), 1e-300);
  const facts = [`cluster ${card.id}`, `${short(card.size)} items (${percent(card.share)})`];
  if (card.uncertainty !== null) facts.push(`uncertainty ${short(card.uncertainty)}`);
  if (card.last_time !== null) facts.push(`last item ${when(card.last_time)}`);
  if (card.pinned) facts.push("pinned");
  const parts = [el("h2", {}, card.name), el("p", { className: "soft" }, facts.join(" · ")), card.bursting ? el("p", { className: "rise" }, "↑ bursting") : null, actions,
    el("h3", {}, "Features: " + (card.bounded || card.meaning) + (shown.some(one => one.low !== null) ? ", credible interval" : "")),
    shown.some(one => one.range) ? el("p", { className: "soft" }, "Bars of measurements run from the lowest to the highest cluster.") : null, ...shown.map(one => feature(one, most, card.bounded))];
  if (card.neighbors.length) parts.push(el("h3", {}, "What sets it apart from its neighbors"), el("ul", { className: "items" }, ...card.neighbors.map(one => el("li", {},
    el("button", { className: "link", onclick: () => go(one.id) }, one.name), el("span", { className: "soft" }, ` similarity ${short(one.similarity)}`),
    one.more_here.length ? el("div", { className: "soft" }, "more here: " + one.more_here.join(", ")) : null, one.more_there.length ? el("div", { className: "soft" }, "more there: " + one.more_there.join(", ")) : null))));
  if (card.typical_items.length) parts.push(el("h3", {}, "Typical items"), items(card.typical_items));
  if (card.borderline_items.length) parts.push(el("h3", {}, "Borderline items"), items(card.borderline_items));
  if (card.history.counts.length) parts.push(el("h3", {}, "History"), spark(card.history.counts, card.name));
  if (card.events.length) parts.push(el("ul", { className: "items" }, ...card.events.slice(-8).map(one => el("li", {}, `${one.kind}${one.into === null ? "" : " into " + one.into}${one.note ? " “" + one.note + "”" : ""} ${when(one.time)}`))));
  return el("div", {}, ...parts);
}
