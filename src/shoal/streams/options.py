"""How inference is done, in one place: ``TimeSensitiveMixture(inference=Inference(...))``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from shoal.base import storable
from shoal.errors import BadInput


@storable
@dataclass(frozen=True)
class Inference:
    """Options of batch sampling (``fit``) and of the stream (``partial_fit``).

    Parameters
    ----------
    n_sweeps, burn_in, thin : Gibbs sweeps in all; those before anything is kept; every how many one is kept
    n_chains : independent chains, on threads
    tolerance : bound on the error of each conditional probability of ``fit``
    learn : True moves also parameters that were given (from there); None only those that were not; False none
    window : messages of the stream that may still change their cluster
    batch : after so many arrivals the window is re-sampled, and parameters are learned
    resamplings : passes over the window each time
    margin : a message whose cluster won by more than so many nats is not looked at again
    budget : index entries looked at to find a message's candidates; -1 scores every live cluster
    candidates : clusters scored exactly for a message
    sample : draw the cluster of an arriving message instead of taking the best
    rate_per_cluster : in the stream, let each cluster fade at a rate of its own, drawn towards the common one
    retire_below : a cluster is retired when its weight is below this share of a message (of the concentration, if less)
    max_clusters : live clusters at most; beyond it the lightest are retired

    >>> Inference(n_sweeps=50).burn_in
    100
    """

    n_sweeps: int = 200
    burn_in: int = 100
    thin: int = 5
    n_chains: int = 1
    tolerance: float = 1e-9
    learn: bool | None = None
    window: int = 500
    batch: int = 250
    resamplings: int = 2
    margin: float = 8.0
    budget: int = 1000
    candidates: int = 8
    sample: bool = False
    rate_per_cluster: bool = False
    retire_below: float = 1e-3
    max_clusters: int = 100_000

    def __post_init__(self) -> None:
        least = {"n_sweeps": 1, "thin": 1, "n_chains": 1, "batch": 1, "candidates": 1, "max_clusters": 1, "budget": -1}
        for name, lowest in (least | dict.fromkeys(("burn_in", "window", "resamplings"), 0)).items():
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= lowest):
                raise BadInput(f"inference option {name}={value!r} must be a whole number, {lowest} or more.")
        if not self.margin > 0:
            raise BadInput(f"inference option margin={self.margin!r} must be above 0 (infinity looks at all again).")
        for name in ("tolerance", "retire_below"):
            if not 0 < getattr(self, name) < 1:
                raise BadInput(f"inference option {name}={getattr(self, name)!r} must be between 0 and 1.")


def as_inference(given: Any) -> Inference:
    """Validate the ``inference`` option: None, a dict of options, or an Inference.

    >>> as_inference({"window": 10}).window
    10
    """
    if given is None:
        return Inference()
    if isinstance(given, Inference):
        return given
    known = [each.name for each in fields(Inference)]
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise BadInput(
            f"inference={given!r}: give a shoal.streams.Inference, or a dict with some of {', '.join(known)}."
        )
    return Inference(**given)
