// Explore: the map of all clusters, a list to search and sort, and the card of one.
import { request } from "./api.js";
import { el, empty, short, percent } from "./dom.js";
import { ClusterMap } from "./cluster_map.js";
import { clusterCard } from "./cluster_card.js";
import { editButtons } from "./edit_buttons.js";

const PAGE = 50;

export async function explore(view, query) {
  const state = { search: query.get("search") || "", sort: query.get("sort") || "size", only: query.get("only") || "", page: 1, cluster: query.get("cluster") };
  const box = el("div", { className: "explore" }), left = el("div", { className: "overview" }), card = el("aside", { className: "card", "aria-label": "Cluster" });
  const search = el("input", { type: "search", value: state.search, placeholder: "a feature, a name, an id" });
  const choice = (chosen, ...values) => el("select", {}, ...values.map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
  const sort = choice(state.sort, ["size", "Largest"], ["recent", "Most recent"], ["uncertainty", "Least certain"], ["name", "Name"], ["id", "Id"]);
  const only = choice(state.only, ["", "All"], ["active", "With items learned here"], ["bursting", "Bursting"], ["named", "Named"], ["pinned", "Pinned"]);
  const count = el("p", { className: "soft", role: "status" });
  const body = el("tbody");
  const table = el("table", { className: "list" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Cluster"), el("th", { scope: "col", className: "n" }, "Items"),
    el("th", { scope: "col", className: "n wide" }, "Share"), el("th", { scope: "col", className: "wide" }, "Features"))), body);
  const back = el("button", { "aria-label": "Previous page", onclick: () => { state.page--; again(); } }, "‹");
  const next = el("button", { "aria-label": "Next page", onclick: () => { state.page++; again(); } }, "›");
  const map = new ClusterMap(id => go(id));
  const csv = el("a", { download: "clusters.csv" }, "CSV"), json = el("a", { download: "clusters.ndjson" }, "JSON");
  left.append(el("div", { className: "tools" }, el("label", { className: "grow" }, "Search", search), el("label", {}, "Sort by", sort), el("label", {}, "Show", only)),
    map.element, el("div", { className: "tools pager" }, back, next, count, csv, json), table);
  box.append(left, card);
  view.replaceChildren(box);

  function permalink() {
    const link = new URLSearchParams();
    for (const name of ["cluster", "search", "sort", "only"]) if (state[name] && !(name === "sort" && state.sort === "size")) link.set(name, state[name]);
    history.replaceState(null, "", "#/explore" + (link.size ? "?" + link : ""));
  }
  function go(id) {
    state.cluster = id === null ? null : String(id);
    permalink();
    return show();
  }
  const asked = more => new URLSearchParams({ search: state.search, sort: state.sort, order: ["name", "id"].includes(state.sort) ? "ascending" : "descending", ...(state.only ? { only: state.only } : {}), ...more });
  let number = 0;
  async function list() {
    const mine = ++number;
    permalink();
    csv.href = "/clusters?" + asked({ format: "csv" }); json.href = "/clusters?" + asked({ format: "ndjson" });
    const found = await request("/clusters?" + asked({ page: state.page, page_size: PAGE }));
    const narrowed = state.search || state.only;
    const matching = !narrowed ? null : found.total <= PAGE ? found : await request("/clusters?" + asked({ page_size: 1000 }));
    if (mine !== number) return;
    back.disabled = state.page <= 1; next.disabled = state.page * PAGE >= found.total;
    const from = (state.page - 1) * PAGE;
    count.textContent = found.total ? `${from + 1}–${from + found.clusters.length} of ${found.total.toLocaleString("en")} clusters`
      : narrowed ? "No cluster matches." : "No clusters yet: items that are learned will form the first ones.";
    table.hidden = !found.total;
    body.replaceChildren(...found.clusters.map(one => el("tr", { "data-id": one.id, "aria-current": String(one.id) === state.cluster },
      el("td", {}, el("button", { className: "link", onclick: () => go(one.id) }, one.name),
        one.bursting ? el("span", { className: "rise" }, " ↑ bursting") : null, one.pinned ? el("span", { className: "soft" }, " pinned") : null),
      el("td", { className: "n" }, short(one.size)), el("td", { className: "n wide" }, percent(one.share)), el("td", { className: "wide soft" }, one.features.slice(0, 6).join(", ")))));
    map.highlight(matching && new Set(matching.clusters.map(one => one.id)));
  }
  async function show() {
    for (const row of body.rows) row.setAttribute("aria-current", row.dataset.id === state.cluster);
    map.select(state.cluster === null ? null : Number(state.cluster));
    box.classList.toggle("chosen", state.cluster !== null);
    if (state.cluster === null) return card.replaceChildren(empty("Choose a cluster on the map or in the list."));
    const all = el("button", { className: "all", onclick: () => go(null) }, "‹ All clusters"), mine = state.cluster;
    try {
      const found = await request("/clusters/" + encodeURIComponent(state.cluster));
      if (mine === state.cluster) card.replaceChildren(all, clusterCard(found, go, editButtons(found, refresh)));
    } catch (error) { card.replaceChildren(all, empty(error.message)); }
    card.scrollTop = 0;
  }
  async function refresh(id) {
    if (id !== undefined) state.cluster = id === null ? null : String(id);
    const [places] = await Promise.all([request("/map"), list()]);
    map.show(places);
    await show();
  }
  let typing;
  const again = () => list().catch(error => { count.textContent = error.message; });
  search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { state.search = search.value; state.page = 1; again(); }, 150); });
  sort.addEventListener("change", () => { state.sort = sort.value; state.page = 1; again(); });
  only.addEventListener("change", () => { state.only = only.value; state.page = 1; again(); });
  await refresh();
  return {
    stop: () => map.stop(),
    update: async asked => { state.cluster = asked.get("cluster"); await refresh(); },
  };
}
