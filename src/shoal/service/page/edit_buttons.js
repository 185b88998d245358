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
    const given = await ask(`Merge other clusters into ${cluster.id}`, "Their ids", cluster.neighbors.length ? String(cluster.neighbors[0].id) : "", "Merge");
    if (given === null) return;
    const clusters = given.split(/[\s,]+/).filter(Boolean).map(Number);
    await edit("merge", { clusters }, result => `Merged; ${short(result.n_changed)} remembered items moved.`);
  };
  const split = async () => {
    if (await ask(`Divide cluster ${cluster.id} in two?`, "", "", "Divide") === null) return;
    await edit("split", {}, result => `Cluster ${result.new_cluster} is new; ${short(result.n_changed)} items moved there.`, result => result.new_cluster);
  };
  const pin = () => edit("pin", { pinned: !cluster.pinned }, result => result.pinned ? "Pinned: learning will keep it." : "No longer pinned.");
  return el("div", { className: "actions" },
    el("button", { onclick: name }, "Name"), el("button", { onclick: merge }, "Merge"), el("button", { onclick: split }, "Split"),
    el("button", { onclick: pin, "aria-pressed": cluster.pinned }, cluster.pinned ? "Unpin" : "Pin"));
}
