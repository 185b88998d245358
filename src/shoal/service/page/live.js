// Live: items as they arrive, and what happens to clusters.
import { listen, request } from "./api.js";
import { el, empty, short, when } from "./dom.js";

const MOST = 60;

export async function live(view) {
  const stop = new AbortController();
  const figures = el("dl", { className: "figures" }), state = el("p", { className: "soft", role: "status" }, "Connecting …");
  const items = el("ol", { className: "log", "aria-label": "Items" }), events = el("ol", { className: "log", "aria-label": "Events" });
  view.replaceChildren(el("h2", {}, "Live"), state, figures, el("div", { className: "two" },
    el("section", {}, el("h3", {}, "Items arriving"), items, empty("Waiting for items. Send some to /learn.")),
    el("section", {}, el("h3", {}, "Clusters born, bursting, fading, merged, gone"), events, empty("Nothing has happened to a cluster yet."))));
  const figure = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  let names = new Map(), asked = 0;
  async function learnNames() {
    if (Date.now() - asked < 5000) return;
    asked = Date.now();
    const places = await request("/map");
    names = new Map(places.id.map((id, at) => [id, places.name[at]]));
    for (const link of view.querySelectorAll("a[data-id]")) link.textContent = names.get(Number(link.dataset.id)) || link.textContent;
  }
  const link = id => {
    if (!names.has(id)) learnNames().catch(() => {});
    return el("a", { href: "#/explore?cluster=" + id, "data-id": id }, names.get(id) || "cluster " + id);
  };
  function keep(list, row) { list.nextElementSibling?.remove(); list.prepend(row); while (list.children.length > MOST) list.lastChild.remove(); }
  const event = one => el("li", {}, el("b", { className: one.kind === "burst" ? "rise" : "" }, one.kind), " ", link(one.cluster),
    one.into === null ? "" : el("span", {}, " into ", link(one.into)), one.note ? " “" + one.note + "”" : "", el("span", { className: "soft" }, " " + when(one.time)));
  await learnNames();
  const past = await request("/events?n=10000");
  for (const one of past.events.slice(-30)) keep(events, event(one));
  listen(past.last, stop.signal, (name, value) => {
    if (name === "event") keep(events, event(value));
    if (name === "items") {
      for (const item of value.items.reverse()) keep(items, el("li", {}, item.cluster === -1 ? "unassigned" : link(item.cluster), " ", el("b", {}, item.id), item.features.length ? ":" : "",
        el("span", { className: "soft" }, " " + item.features.join(", "))));
    }
    if (name === "stats") figures.replaceChildren(figure("items learned", short(value.items)), figure("items a second", short(value.items_per_second)),
      figure("waiting to be learned", short(value.lag_items || 0)), figure("clusters", short(value.clusters)), figure("snapshot", short(value.snapshot)));
  }, text => { state.textContent = text || "Connected."; });
  return { stop: () => stop.abort() };
}
