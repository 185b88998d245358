"""The options of a fit, validated once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from shoal.base import check_choice, check_int, check_random_state
from shoal.errors import BadInput
from shoal.families.distributions.registry import COVARIANCES, FAMILIES, TABLES, family_class

SAMPLERS = ("auto", "indexed", "fastex", "gibbs")
PRIORS_OF_WEIGHTS = ("dirichlet", "dirichlet_process")


class Settings(NamedTuple):
    """The options of the estimator that samplers need."""

    n_clusters: int
    family: Any
    weights: str
    concentration: float | str
    smoothing: float | str
    background: float | str
    n_bits: int
    hashes: str
    covariance: str
    refresh: int
    n_threads: int | None = 1
    budget: int = 3000  # postings a row's search for candidates may read
    least: int = 40  # features it reads at least: with fewer the sampler gets stuck
    parallel: bool = False


def check_options(model: Any) -> None:
    """Validate the options of an estimator."""
    if model.n_clusters != "auto":
        check_int("n_clusters", model.n_clusters)
    check_int("n_sweeps", model.n_sweeps)
    check_int("refresh", model.refresh)
    check_int("n_samples", model.n_samples)
    check_int("n_bits", model.n_bits)
    check_int("n_chains", model.n_chains)
    if not isinstance(model.family, Mapping):
        check_choice("family", model.family, FAMILIES)
    check_choice("sampler", model.sampler, SAMPLERS)
    check_choice("weights", model.weights, PRIORS_OF_WEIGHTS)
    check_choice("hashes", model.hashes, ("ranked", "published"))
    check_choice("covariance", model.covariance, COVARIANCES)
    check_number("concentration", model.concentration, ("learn",))
    check_prior(model.family, model.smoothing, model.background)
    if model.n_threads is not None:
        check_int("n_threads", model.n_threads)
    known = family_class(model.family, model.covariance).samplers
    if model.sampler != "auto" and model.sampler not in known:
        raise BadInput(f"sampler={model.sampler!r} is not for family={model.family!r}; use {' or '.join(known)}.")


def check_number(name: str, value: Any, words: tuple[str, ...], *, zero: bool = False) -> None:
    """A positive number (or 0, where that has a meaning) or one of the words."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and (0 < value < float("inf") or (zero and value == 0)):
        return
    if not isinstance(value, str) or value not in words:
        wanted = "a number, 0 or more," if zero else "a positive number"
        raise BadInput(f"{name} is {value!r}; give {wanted} or {' or '.join(map(repr, words))}.")


def check_prior(family: Any, smoothing: Any, background: Any) -> None:
    """Whether these pseudo-counts are a prior of the family's."""
    if not isinstance(family, str) or family in TABLES:
        if smoothing != "auto" or background != "auto":
            raise BadInput("smoothing and background are not for tables: each column learns its own. Leave them out.")
        return
    if family in ("poisson", "bernoulli") and smoothing != "auto":
        raise BadInput(f"smoothing is {smoothing!r}; family={family!r} has none. Leave it 'auto', and set background.")
    if family == "gaussian" and background != "auto":
        raise BadInput(f"background is {background!r}; family='gaussian' has none. Leave it 'auto', and set smoothing.")
    documents = family == "multinomial"
    check_number("smoothing", smoothing, ("auto", "learn"), zero=documents)
    check_number("background", background, ("auto", "learn"), zero=documents)
    if documents and smoothing == 0 and background == 0:
        raise BadInput("smoothing and background are both 0; a word new to a cluster needs one of them to be possible.")


def seed_of(random_state: Any) -> int:
    """The seed of a chain."""
    return int(check_random_state(random_state).integers(1 << 30))


def same_columns(one: Any, two: Any) -> bool:
    """Whether two models have columns of the same names, as far as they have names."""
    names = [list(map(str, model.vocabulary_)) if hasattr(model, "vocabulary_") else None for model in (one, two)]
    return None in names or names[0] == names[1]
