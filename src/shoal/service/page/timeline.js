// Timeline: items of the largest clusters over time.
import { request } from "./api.js";
import { el, empty, short, when } from "./dom.js";
import { spark } from "./cluster_card.js";

export async function timeline(view) {
  const { clusters } = await request("/timeline?n=40");
  if (!clusters.length) return view.replaceChildren(el("h2", {}, "Timeline"), empty("Nothing has been learned through the service yet.")), {};
  const first = clusters[0], end = first.start + first.bin_seconds * first.counts.length;
  view.replaceChildren(el("h2", {}, "Timeline"), el("p", { className: "soft" }, `${when(first.start)} to ${when(end)} (UTC); each bar is ${short(first.bin_seconds / 60)} min.`),
    el("table", { className: "list" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Cluster"), el("th", { scope: "col", className: "n" }, "Items"), el("th", { scope: "col" }, "Over time"))),
      el("tbody", {}, ...clusters.map(one => el("tr", {}, el("td", {}, el("a", { href: "#/explore?cluster=" + one.id }, one.name)),
        el("td", { className: "n" }, short(one.counts.reduce((sum, n) => sum + n, 0))), el("td", {}, spark(one.counts, one.name)))))));
  return {};
}
