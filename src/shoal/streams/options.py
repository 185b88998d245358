"""How inference is done, in one place: ``TimeSensitiveMixture(inference=Inference(...))``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from shoal.base import check_choice, check_int, check_real, storable
from shoal.errors import BadInput

SMALL_SET = 500  # so few messages are sampled unless asked otherwise: moves alone end too early there


@storable
@dataclass(frozen=True)
class Inference:
    """Options of ``fit`` and of the stream (``partial_fit``).

    Parameters
    ----------
    method : {"auto", "optimize", "sample"}
        What ``fit`` does after the stream's pass: "optimize" takes moves that raise the log joint, "sample" also draws
        from the posterior; "auto" samples up to 500 messages.
    n_sweeps, burn_in, thin : int
        Gibbs sweeps in all; those before anything is kept; every how many one is kept.
    n_chains : int
        Independent chains, which are compared in ``diagnostics_``.
    tolerance : float
        Bound on the error of each conditional probability when sampling.
    learn : bool or None
        True moves also parameters that were given (from there); None only those that were not; False none.
    window : int
        Messages of the stream that may still change their cluster.
    batch : int
        After so many arrivals the window is re-sampled, stories are merged and parameters are learned; before the first
        batch also after 16, 32, 64 and 128.
    resamplings : int
        Passes over the window each time.
    margin : float
        A message whose cluster won by more than so many nats is not looked at again.
    budget : int
        Index entries looked at to find a message's candidates; -1 scores every live cluster.
    candidates : int
        Clusters scored exactly for a message.
    sample : bool
        Draw the cluster of an arriving message instead of taking the best.
    stories : bool
        Report stories, each of one arrival cluster or several; False reports the arrival clusters.
    rate_per_cluster : bool
        In the stream, let each cluster fade at a rate of its own, drawn towards the common one.
    retire_below : float
        A cluster is retired when its weight is below this share of a message (of the concentration, if less).
    max_clusters : int
        Live clusters at most; beyond it the lightest are retired.

    Examples
    --------
    >>> Inference(n_sweeps=50).burn_in
    100
    """

    method: str = "auto"
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
    stories: bool = True
    rate_per_cluster: bool = False
    retire_below: float = 1e-3
    max_clusters: int = 100_000

    def __post_init__(self) -> None:
        check_choice("inference option method", self.method, ("auto", "optimize", "sample"))
        least = {"n_sweeps": 1, "thin": 1, "n_chains": 1, "batch": 1, "candidates": 1, "max_clusters": 1, "budget": -1}
        for name, lowest in (least | dict.fromkeys(("burn_in", "window", "resamplings"), 0)).items():
            check_int(f"inference option {name}", getattr(self, name), minimum=lowest)
        if not self.margin > 0:
            raise BadInput(f"inference option margin={self.margin!r} must be above 0 (infinity looks at all again).")
        for name in ("tolerance", "retire_below"):
            check_real(f"inference option {name}", getattr(self, name), minimum=0.0, maximum=1.0, strict=True)

    def samples(self, n_rows: int) -> bool:
        """Whether ``fit`` samples so many messages."""
        return self.method == "sample" or (self.method == "auto" and n_rows <= SMALL_SET)


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


@dataclass(frozen=True)
class Granularity:
    """How large clusters are."""

    name: str
    split_share: float  # of their words in which the sides of a greedy split must differ at least
    merges: bool  # stories, once found, are merged into topics


GRANULARITIES = {
    "threads": Granularity("threads", 0.0, False),
    "stories": Granularity("stories", 0.2, False),
    "topics": Granularity("topics", 0.2, True),
}


def as_granularity(given: Any) -> Granularity:
    """Validate the ``granularity`` option.

    >>> as_granularity("stories").split_share
    0.2
    """
    return GRANULARITIES[check_choice("granularity", given, tuple(GRANULARITIES))]
