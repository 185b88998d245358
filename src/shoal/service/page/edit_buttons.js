// Name, merge, split, pin: each says what changed and offers to undo it.
import { request } from "./api.js";
import { ask, el, notice, short } from "./dom.js";

export async function undo(edit, done) {
  try {
    await request("/undo", { edit });
    notice("Undone.");
    await done();
  } catch (error) { notice(error.message); }
}

export function editButtons(cluster, done) {
  async function edit(action, body, said, next) {
    try {
      const result = await request(`/clusters/${cluster.id}/${action}`, body);
      notice(said(result), { label: "Undo", run: () => undo(result.edit, () => done(cluster.id)) });
      await done(next ? next(result) : cluster.id);
    } catch (error) { notice(error.message); }
  }
  const name = async () => {
    const given = await ask("Name this cluster", "Name", cluster.named ? cluster.name : "");
    if (given !== null) await edit("name", { name: given }, () => given ? `Named “${given}”.` : "The name was taken away.");
  };
  const merge = async () => {
    const ids = text => text.split(/[\s,]+/).filter(Boolean).map(Number);
    const nearest = input => el("fieldset", {}, el("legend", {}, "Most alike"), ...cluster.neighbors.map(one => el("label", { className: "choice" },
      el("input", { type: "checkbox", onchange: event => {
        const others = ids(input.value).filter(id => id !== one.id);
        input.value = (event.target.checked ? [...others, one.id] : others).join(", ");
      } }), `${one.name} (${one.id})`)));
    const given = await ask(`Merge other clusters into “${cluster.name}”`, "Their ids", "", "Merge", "text", cluster.neighbors.length ? nearest : undefined);
    if (given === null) return;
    const clusters = ids(given);
    if (!clusters.length) return notice("Choose at least one cluster to merge.");
    await edit("merge", { clusters }, result => `Merged; ${short(result.n_changed)} remembered items moved.`);
  };
  const split = async () => {
    if (await ask(`Divide “${cluster.name}” in two, by its remembered items?`, "", "", "Divide") === null) return;
    await edit("split", {}, result => `Cluster ${result.new_cluster} is new; ${short(result.n_changed)} items moved there.`, result => result.new_cluster);
  };
  const pin = () => edit("pin", { pinned: !cluster.pinned }, result => result.pinned ? "Pinned: learning will keep it." : "No longer pinned.");
  return el("div", { className: "actions" },
    el("button", { onclick: name }, "Name"), el("button", { onclick: merge }, "Merge"), el("button", { onclick: split }, "Split"),
    el("button", { onclick: pin, "aria-pressed": cluster.pinned }, cluster.pinned ? "Unpin" : "Pin"));
}
