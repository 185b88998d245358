// Edits: what people changed, and undoing the newest of it.
import { request } from "./api.js";
import { el, empty, when } from "./dom.js";
import { undo } from "./edit_buttons.js";

export async function edits(view) {
  async function show() {
    const found = await request("/edits");
    const link = id => el("a", { href: "#/explore?cluster=" + id }, "cluster " + id);
    const what = one => ({ name: () => one.name ? ["named ", link(one.cluster), ` “${one.name}”`] : ["took away the name of ", link(one.cluster)],
      pin: () => [one.pinned ? "pinned " : "unpinned ", link(one.cluster)], split: () => ["divided ", link(one.cluster)],
      merge: () => [`merged ${one.clusters.join(", ")} into `, link(one.cluster)] })[one.action]();
    view.replaceChildren(el("h2", {}, "Edits"), el("p", { className: "soft" }, "Edits are undone one after another, the newest first. What was learned since stays learned."),
      found.edits.length ? el("ol", { className: "log" }, ...found.edits.map(one => el("li", {}, el("span", { className: "soft" }, when(one.at) + " "), ...what(one), one.undone ? el("span", { className: "soft" }, " (undone)") : "",
        one.edit === found.undoable ? el("span", {}, " ", el("button", { onclick: () => undo(one.edit, show) }, "Undo")) : "")))
        : empty("No edits yet. Choose a cluster under Explore to name, merge, split or pin it."));
  }
  await show();
  return {};
}
