// Explore: the map of all clusters, a list to search and sort, and the card of one.
import { request } from "./api.js";
import { el, empty, short, percent } from "./dom.js";
import { ClusterMap } from "./cluster_map.js";
import { clusterCard } from "./cluster_card.js";
import { editButtons } from "./edit_buttons.js";

const PAGE = 50;

export async function explore(view, query) {
  const state = { search: query.get("search") || "", sort: query.get("sort") || "size", page: 1, cluster: query.get("cluster") };
  const box = el("div", { className: "explore" }), left = el("div"), card = el("aside", { className: "card", "aria-label": "Cluster" });
  const search = el("input", { type: "search", value: state.search, placeholder: "a feature, a name, an id" });
  const sort = el("select", {}, ...[["size", "Largest"], ["recent", "Most recent"], ["uncertainty", "Least certain"], ["name", "Name"], ["id", "Id"]]
    .map(([value, label]) => el("option", { value, selected: value === state.sort }, label)));
  const count = el("p", { className: "soft", role: "status" });
  const body = el("tbody");
  const table = el("table", { className: "list" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Cluster"), el("th", { scope: "col", className: "n" }, "Items"),
    el("th", { scope: "col", className: "n wide" }, "Share"), el("th", { scope: "col", className: "wide" }, "Features"))), body);
  const back = el("button", { "aria-label": "Previous page", onclick: () => { state.page--; list(); } }, "‹");
  const next = el("button", { "aria-label": "Next page", onclick: () => { state.page++; list(); } }, "›");
  const map = new ClusterMap(id => go(id));
  left.append(el("div", { className: "tools" }, el("label", {}, "Search", search), el("label", {}, "Sort by", sort), back, next,
    el("a", { href: "/clusters?format=csv", download: "clusters.csv" }, "CSV"), el("a", { href: "/clusters?format=ndjson", download: "clusters.ndjson" }, "JSON")),
    map.element, count, table);
  box.append(left, card);
  view.replaceChildren(box);

  function go(id) {
    state.cluster = String(id);
    const link = new URLSearchParams({ cluster: state.cluster, ...(state.search ? { search: state.search } : {}), sort: state.sort });
    history.replaceState(null, "", "#/explore?" + link);
    show();
  }
  async function list() {
    const asked = new URLSearchParams({ search: state.search, sort: state.sort, page: state.page, page_size: PAGE, order: ["name", "id"].includes(state.sort) ? "ascending" : "descending" });
    const found = await request("/clusters?" + asked);
    back.disabled = state.page <= 1; next.disabled = state.page * PAGE >= found.total;
    const from = (state.page - 1) * PAGE;
    count.textContent = found.total ? `${from + 1}–${from + found.clusters.length} of ${found.total.toLocaleString("en")} clusters`
      : state.search ? "No cluster matches." : "No clusters yet: items that are learned will form the first ones.";
    body.replaceChildren(...found.clusters.map(one => el("tr", { "data-id": one.id, "aria-current": String(one.id) === state.cluster },
      el("td", {}, el("button", { className: "link", onclick: () => go(one.id) }, one.name),
        one.bursting ? el("span", { className: "rise" }, " ↑ bursting") : null, one.pinned ? el("span", { className: "soft" }, " pinned") : null),
      el("td", { className: "n" }, short(one.size)), el("td", { className: "n wide" }, percent(one.share)), el("td", { className: "wide soft" }, one.features.slice(0, 6).join(", ")))));
    map.highlight(state.search ? new Set(found.clusters.map(one => one.id)) : null);
  }
  async function show() {
    for (const row of body.rows) row.setAttribute("aria-current", row.dataset.id === state.cluster);
    map.select(state.cluster === null ? null : Number(state.cluster));
    if (state.cluster === null) return card.replaceChildren(empty("Choose a cluster on the map or in the list."));
    try {
      const found = await request("/clusters/" + encodeURIComponent(state.cluster));
      card.replaceChildren(clusterCard(found, go, editButtons(found, refresh)));
    } catch (error) { card.replaceChildren(empty(error.message)); }
  }
  async function refresh(id) {
    if (id !== undefined) state.cluster = id === null ? null : String(id);
    const [places] = await Promise.all([request("/map"), list()]);
    map.show(places);
    await show();
  }
  let typing;
  search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { state.search = search.value; state.page = 1; list(); }, 150); });
  sort.addEventListener("change", () => { state.sort = sort.value; state.page = 1; list(); });
  await refresh();
  return {
    stop: () => map.stop(),
    update: async asked => { state.cluster = asked.get("cluster"); await refresh(); },
  };
}
