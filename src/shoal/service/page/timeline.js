// Timeline: items of the largest clusters over time.
import { request } from "./api.js";
import { duration, el, empty, short, when } from "./dom.js";
import { spark } from "./cluster_card.js";

// A few items from long before would squeeze all others into a corner: where less than 1 % of them fill more than half, it is left out.
function firstBin(clusters) {
  const totals = clusters[0].counts.map((_, at) => clusters.reduce((sum, one) => sum + (one.counts[at] || 0), 0)), all = totals.reduce((sum, n) => sum + n, 0);
  let before = 0, at = 0;
  while (at < totals.length && before + totals[at] <= .01 * all) before += totals[at++];
  return at > totals.length / 2 ? [at, before] : [0, 0];
}

export async function timeline(view) {
  const { clusters } = await request("/timeline?n=40");
  if (!clusters.length) return view.replaceChildren(el("h2", {}, "Timeline"), empty("Nothing has been learned with a time yet. Items that are sent to /learn appear here.")), {};
  const { start, bin_seconds: bin, counts } = clusters[0], [from, before] = firstBin(clusters);
  const first = start + bin * from, end = start + bin * counts.length;
  view.replaceChildren(el("h2", {}, "Timeline"), el("p", { className: "soft" }, `The ${clusters.length} clusters with the most items. Each bar is ${duration(bin)}; the highest bar of each row is its own most.`
      + (before ? ` ${short(before)} items from before ${when(first)} are not drawn.` : "")),
    el("table", { className: "list timeline" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Cluster"), el("th", { scope: "col", className: "n" }, "Items"),
      el("th", { scope: "col" }, el("span", { className: "ends" }, el("span", {}, when(first)), el("span", {}, when(end) + " UTC"))))),
      el("tbody", {}, ...clusters.map(one => el("tr", {}, el("td", {}, el("a", { href: "#/explore?cluster=" + one.id }, one.name)),
        el("td", { className: "n" }, short(one.counts.reduce((sum, n) => sum + n, 0))), el("td", {}, spark(one.counts.slice(from), one.name)))))));
  return {};
}
