"""Edits of clusters by hand: name, pin, merge, split. Each says which items changed, and can be undone."""

from __future__ import annotations

import inspect
from typing import Any

from shoal.errors import BadInput
from shoal.service.state import State, require

ACTIONS = ("name", "pin", "merge", "split")
STRUCTURAL = ("merge", "split")  # undone by learning again from the model as it was before
N_EDITS = 200  # remembered, for the list of edits
N_CHANGED = 1000  # items listed in an answer


def apply_edit(state: State, edit: dict[str, Any], position: int) -> dict[str, Any]:
    """Change the state as an edit says; what changed. The state is as it was if the edit is refused."""
    action = edit["action"]
    require(state.model, action)
    changed = {"name": _name, "pin": _pin, "merge": _merge, "split": _split}[action](state, edit)
    record = state.record
    record.edits.append({**edit, "items": [], "edit": position, "undone": 0, "before": changed.pop("before", None)})
    del record.edits[:-N_EDITS]
    return {"edit": position, "action": action, **changed}


def check_edit(state: State, edit: dict[str, Any]) -> None:
    """Refuse an edit that cannot work on this state, before it is written to the journal."""
    require(state.model, edit["action"])
    known = set(state.cluster_ids().tolist())
    for cluster in (edit["cluster"], *edit.get("clusters", [])):
        if cluster not in known:
            raise UnknownCluster(f"there is no live cluster {cluster}.")
    if edit["action"] == "merge" and edit["cluster"] in edit["clusters"]:
        raise BadInput(f"cluster {edit['cluster']} cannot be merged into itself.")


class UnknownCluster(BadInput):
    """No live cluster has this id."""


def name_of(model: Any, cluster: int) -> str | None:
    """The name a person gave to a cluster."""
    name = _names(model).get(int(cluster))
    return None if name is None else str(name)


def is_pinned(model: Any, cluster: int) -> bool:
    """Whether a person asked to keep this cluster."""
    roster = getattr(model, "roster_", None)
    return roster is not None and int(cluster) in roster.pinned


def _names(model: Any) -> dict[int, str]:
    roster = getattr(model, "roster_", None)
    if roster is not None:
        return roster.names  # type: ignore[no-any-return]
    return model.stream_.history.names if hasattr(model, "stream_") else {}


def _name(state: State, edit: dict[str, Any]) -> dict[str, Any]:
    cluster, name = edit["cluster"], edit["name"]
    before = name_of(state.model, cluster)
    names = _names(state.model)
    if name:
        names[cluster] = name
    else:
        names.pop(cluster, None)
    state.record.add_event("name", cluster, edit["at"], note=name)
    return {"cluster": cluster, "name": name, "before": before, "changed": []}


def _pin(state: State, edit: dict[str, Any]) -> dict[str, Any]:
    cluster, model = edit["cluster"], state.model
    before = is_pinned(model, cluster)
    pin = getattr(model, "pin_cluster", None) or getattr(model, "pin", None)
    if pin is not None:
        pin(cluster, edit["pinned"])
    else:
        roster = model.roster_  # type: ignore[attr-defined]
        kept = [id_ for id_ in roster.pinned if id_ != cluster]
        roster.pinned = [*kept, cluster] if edit["pinned"] else kept
    state.record.add_event("pin" if edit["pinned"] else "unpin", cluster, edit["at"])
    return {"cluster": cluster, "pinned": edit["pinned"], "before": before, "changed": []}


def _merge(state: State, edit: dict[str, Any]) -> dict[str, Any]:
    into, model, record = edit["cluster"], state.model, state.record
    merge: Any = model.merge_clusters  # type: ignore[attr-defined]
    if next(iter(inspect.signature(merge).parameters)) == "clusters":
        merge([*edit["clusters"]], into)
    else:
        for cluster in edit["clusters"]:
            if next(iter(inspect.signature(merge).parameters)) == "kept":
                merge(into, cluster)
            else:
                merge(cluster, into)
    gone = set(edit["clusters"])
    moved = {item.id: into for item in record.recent if item.cluster in gone}
    changed = [{"id": item.id, "from": item.cluster, "to": into} for item in record.recent if item.id in moved]
    record.move_items(moved)
    for cluster in edit["clusters"]:
        record.merge_timeline(cluster, into)
        record.add_event("merge", cluster, edit["at"], into, note="by hand")
    return {"cluster": into, "merged": edit["clusters"], "n_changed": len(changed), "changed": changed[:N_CHANGED]}


def _split(state: State, edit: dict[str, Any]) -> dict[str, Any]:
    cluster, items = edit["cluster"], edit["items"]
    rows = state.rows.known(items).X
    fresh = state.model.split_cluster(cluster, rows)  # type: ignore[attr-defined]
    fresh = int(fresh if not hasattr(fresh, "__len__") else fresh[-1])
    labels = state.model.assign(rows).labels.tolist()
    moved = {item["id"]: label for item, label in zip(items, labels, strict=True) if label == fresh}
    state.record.move_items(moved)
    state.record.add_event("split", fresh, edit["at"], cluster, note="by hand")
    changed = [{"id": id_, "from": cluster, "to": label} for id_, label in moved.items()]
    return {"cluster": cluster, "new_cluster": fresh, "n_changed": len(changed), "changed": changed[:N_CHANGED]}
