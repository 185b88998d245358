"""What a model file may say about a Bernoulli mixture: kernels follow its linked lists without looking."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.bernoulli.profiles import Profiles
from shoal.state_checks import need, need_array, need_attributes, need_number

PER_CLUSTER = (
    "mass",
    "default_hits",
    "ratio",
    "log_ratio",
    "default_mass",
    "default_absent",
    "total",
    "slope",
    "mass_at_refresh",
    "base",
)
PER_SLOT = ("hits", "hits_from_default", "loss", "lift", "log_absent")
MOST_LOG_SCORE = 1e12  # beyond it differences of scores are lost
MOST_LOG_ODDS = 700.0  # beyond it the odds themselves are no numbers any more


def check_state(model: Any) -> None:
    """Refuse a fitted mixture from a file that contradicts itself."""
    need_attributes(model, ("profiles_", "calibration_", "roster_", "n_features_in_", "labels_"))
    profiles = model.profiles_
    need(isinstance(profiles, Profiles), "the profiles are none")
    check_profiles(profiles)
    need(profiles.n_features == model.n_features_in_, "the profiles are of another number of features")
    need(model.roster_.ids.size == profiles.n_clusters, "there are more or fewer ids than clusters")
    n_rows = model.labels_.size
    need_array(vars(model).get("typicality_", np.zeros(n_rows)), "typicality_", (n_rows,))
    need_array(vars(model).get("uncertainty_", np.zeros(profiles.n_clusters)), "uncertainty_", (profiles.n_clusters,))
    _check_calibration(model.calibration_)
    if "stream_" in vars(model):
        _check_stream(model.stream_, profiles.n_features)


def check_profiles(profiles: Profiles) -> None:
    """Every array has its shape, and every index leads to what exists."""
    need_array(profiles.prior, "the prior", (3,), low=0)
    need(profiles.prior[:2] > 0, "the prior is worth nothing")
    need(np.isin(profiles.prior[2], (0.0, 1.0)), "the prior says neither that there is clutter nor that there is none")
    need_array(profiles.mass, "mass", (None,))
    need_array(profiles.background, "background", (None,), low=0, high=1)
    n_rows, n_features = profiles.n_rows, profiles.n_features
    need(profiles.n_clusters >= 0, "there are fewer clusters than none")
    _check_features(profiles, n_rows, n_features)
    for name in PER_CLUSTER:
        need_array(getattr(profiles, name), name, (n_rows,))
    for name in ("base", "slope"):
        need_array(getattr(profiles, name), name, (n_rows,), low=-MOST_LOG_SCORE, high=MOST_LOG_SCORE)
    need_array(profiles.ratio, "ratio", (n_rows,), low=0, high=np.exp(MOST_LOG_ODDS))
    need_array(profiles.log_ratio, "log_ratio", (n_rows,), low=-MOST_LOG_ODDS, high=MOST_LOG_ODDS)
    need_array(profiles.has_entries, "has_entries", (n_rows,), "b")
    need_array(profiles.spread, "spread", (n_rows, 4))
    _check_slots(profiles, n_rows, n_features)


def _check_features(profiles: Profiles, n_rows: int, n_features: int) -> None:
    need_array(profiles.seen, "seen", (n_features + 1,), low=0)
    need_array(profiles.uninformative, "uninformative", (n_features,), "b")
    need_array(profiles.common, "common", (None,), "i", low=0, high=n_features)
    n_common = profiles.common.size
    need_array(profiles.common_at, "common_at", (n_features,), "i", low=-1, high=n_common)
    places = profiles.common_at[profiles.common]
    need(places == np.arange(n_common), "common and common_at do not belong together")
    need(np.count_nonzero(profiles.common_at >= 0) == n_common, "common and common_at do not belong together")
    need_array(profiles.owned, "owned", (n_rows, n_common), "b")


def _check_slots(profiles: Profiles, n_rows: int, n_features: int) -> None:
    need_array(profiles.used, "used", (1,), "i", low=0)
    room, used = profiles.cluster.size, profiles.n_entries
    need(used <= room, "more slots are used than there are")
    for name in PER_SLOT:
        array = getattr(profiles, name)
        need(isinstance(array, np.ndarray) and array.dtype == np.float64, f"{name} is not an array of floats")
        need(array.shape == (room,), f"{name} has the shape {array.shape}")
        most = MOST_LOG_SCORE if name in ("loss", "lift", "log_absent") else None
        need_array(array[:used], name, (used,), low=None if most is None else -most, high=most)
    for name, most in (("cluster", n_rows), ("feature", n_features)):
        array = getattr(profiles, name)
        need(isinstance(array, np.ndarray) and array.shape == (room,), f"{name} is not an array of one for each slot")
        need_array(array[:used], name, (used,), "i", low=0, high=most)
    lists = (
        ("head", "next_of_feature", profiles.feature, n_features),
        ("first", "next_of_cluster", profiles.cluster, n_rows),
    )
    for start, following, owner, n in lists:
        _check_list(getattr(profiles, start), getattr(profiles, following), owner[:used], n, start)


def _check_list(start: Any, following: Any, owner: np.ndarray, n: int, name: str) -> None:
    """Lists that stay with one owner and never meet: every slot has at most one before it, so no walk is endless."""
    used = owner.size
    need_array(start, name, (n,), "i", low=-1, high=used)
    need(isinstance(following, np.ndarray) and following.ndim == 1, f"the list after {name} is not an array")
    need(following.size >= used, f"the list after {name} is too short")
    need_array(following[:used], f"the list after {name}", (used,), "i", low=-1, high=used)
    after, owners = following[:used], np.arange(n)
    need(owner[start[start >= 0]] == owners[start >= 0], f"{name} leads to the entry of another")
    need(owner[after[after >= 0]] == owner[after >= 0], f"the list after {name} leads to the entry of another")
    reached = np.concatenate([start[start >= 0], after[after >= 0]])
    need(np.unique(reached).size == reached.size, f"the list after {name} runs in a circle")


def _check_calibration(calibration: Any) -> None:
    need_array(calibration.knots, "the knots of the calibration", (3,))
    need_array(calibration.weights, "the weights of the calibration", (9,))
    need_array(calibration.lengths, "the lengths of the calibration", (None,), "if", low=0)
    need_array(calibration.shares, "the shares of the calibration", (calibration.lengths.size,), low=0)


def _check_stream(stream: Any, n_features: int) -> None:
    need(stream.rows.shape[1] == n_features, "the reservoir is of another number of features")
    need_array(stream.weights, "the weights of the reservoir", (stream.rows.shape[0],), low=0)
    for name in ("n_rows", "n_started", "n_examined", "n_calibrated", "n_evidence"):
        need_number(getattr(stream, name), name, low=0, whole=True)
    need_array(stream.pairs, "pairs", (None, 2), "i")
    need_array(stream.gains, "gains", (stream.pairs.shape[0],))
    need_array(stream.clutter_ids, "clutter_ids", (None,), "i")
    need_array(stream.clutter_gains, "clutter_gains", (stream.clutter_ids.size, 3))
