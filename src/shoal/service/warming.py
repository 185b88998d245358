"""Warming up: every kernel that a request can need is compiled, and used once, before the service says it is ready."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from shoal.service.state import UNLEARNABLE, State, why_not
from shoal.service.view import View

N_ITEMS = 60


def warm(state: State, *, learns: bool) -> None:
    """Query and, if it learns, update a copy of the model; the model itself is unchanged."""
    trial = state.copy()
    if not trial.is_fitted:
        if why_not(trial.model, "learn") is not None:
            return
        trial.learn(_made_up(max(N_ITEMS, trial.n_first())), 1, 1)
    if not trial.is_fitted:
        return
    items = _known_items(trial)
    if learns and why_not(trial.model, "learn") is None:
        trial.learn([*items, *_made_up(4)], 1, 1)
    view = View(trial)
    view.assign(items)
    view.assign(items[:1])
    if hasattr(trial.model, "memberships"):
        view.assign(items[:1], top=3)
    if why_not(trial.model, "suggest") is None and "features" in items[0]:
        view.suggest(items[0]["features"][:1], [], 5)
        view.suggest(items[0]["features"][:1], items[1]["features"][:1], 5)
    ids = trial.cluster_ids()
    if ids.size and ids.size < 2000:
        view.card(int(ids[0]))


def touch(view: View) -> None:
    """Have a view make what its model makes at the first question, so that no caller waits for it."""
    if view.state.is_fitted:
        with suppress(*UNLEARNABLE):  # the model may reject a generated item
            view.assign(_known_items(view.state)[:1])


def _known_items(state: State) -> list[dict[str, Any]]:
    """Items of features that the model knows; vectors for models of dense rows."""
    names = state.rows.vocabulary
    if not len(names):
        rng = np.random.default_rng(0)
        return [{"values": rng.random(state.rows.n_features).tolist()} for _ in range(4)]
    step = max(1, len(names) // 8)
    return [
        {"id": str(at), "features": [names[at % len(names)], names[(at * step) % len(names)]]} for at in range(1, 5)
    ]


def _made_up(n_items: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {"id": f"warm {at}", "time": float(at), "features": [f"warm {one}" for one in rng.choice(40, 4, replace=False)]}
        for at in range(n_items)
    ]
