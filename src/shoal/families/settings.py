"""The options of a fit, checked once."""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.errors import BadInput

FAMILIES = ("multinomial", "bernoulli", "poisson", "gaussian")
SAMPLERS = ("auto", "indexed", "fastex", "gibbs")


class Settings(NamedTuple):
    """What the parts of the room need to know of the estimator's options."""

    n_clusters: int
    family: str
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


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise BadInput(f"{name} is {value!r}; choose one of {', '.join(map(repr, allowed))}.")


def check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
        raise BadInput(f"{name} is {value!r}; it must be a whole number, {least} or more.")


def check_positive(name: str, value: Any, words: tuple[str, ...]) -> None:
    """A positive number or one of the words."""
    if isinstance(value, str):
        if value not in words:
            raise BadInput(f"{name} is {value!r}; give a positive number, or {' or '.join(map(repr, words))}.")
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise BadInput(f"{name} is {value!r}; give a positive number, or {' or '.join(map(repr, words))}.")
