"""How a model begins: options validated, the base measure made, an empty stream set up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import check_choice, check_random_state, check_real
from shoal.errors import BadInput
from shoal.streams import base_measures
from shoal.streams.evidence import Evidence, as_evidence, blocks_of
from shoal.streams.history import History
from shoal.streams.inference.batch import Learned
from shoal.streams.inference.rate_learning import typical_gap
from shoal.streams.inference.streaming import PRIOR_DOCUMENTS, Stream
from shoal.streams.options import Granularity, Inference, as_granularity, as_inference
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState
from shoal.streams.time_kernels import ExponentialKernel, StepKernel, TimeKernel, as_kernel


@dataclass(frozen=True)
class Setup:
    """The options of a model, validated, and what they ask for."""

    kernel: TimeKernel | None  # None: an exponential one, whose rate is learned
    concentration: float | None
    family: int
    base: Any
    strength: float | None
    drift: float
    evidence: tuple[Evidence, ...]
    inference: Inference
    granularity: Granularity
    seed: int

    @classmethod
    def of(cls, model: Any) -> Setup:
        """Validate the options of a :class:`~shoal.streams.TimeSensitiveMixture`."""
        check_choice("likelihood", model.likelihood, tuple(base_measures.FAMILIES))
        for name in ("concentration", "strength"):
            if getattr(model, name) is not None:
                check_real(name, getattr(model, name), minimum=0.0, strict=True)
        check_real("drift", model.drift, minimum=0.0)
        if isinstance(model.base, str):
            check_choice("base", model.base, ("background", "uniform"))
        kernel = as_kernel(model.kernel, model.half_life)
        granularity, inference = as_granularity(model.granularity), as_inference(model.inference)
        if granularity.merges and (model.likelihood != "multinomial" or model.drift or inference.method == "sample"):
            raise BadInput(
                "granularity='topics' merges stories by their counts of words: it needs likelihood='multinomial', "
                "drift=0 and an inference method other than 'sample'; use granularity='stories' otherwise."
            )
        learns_rate = kernel is None or (isinstance(kernel, ExponentialKernel) and kernel.rate is None)
        return cls(
            None if learns_rate else kernel,
            model.concentration,
            base_measures.FAMILIES[model.likelihood],
            model.base,
            model.strength,
            float(model.drift),
            as_evidence(model.evidence),
            inference,
            granularity,
            int(check_random_state(model.random_state).integers(0, 2**31 - 1)),
        )

    @property
    def learned(self) -> Learned:
        """Which parameters a batch learns: those that were not given, or as ``Inference(learn=)`` asks."""
        learn = self.inference.learn
        return Learned(
            kernel=self.kernel is None if learn is None else learn,
            concentration=self.concentration is None if learn is None else learn,
            mean=isinstance(self.base, str) and self.base == "background",
            strength=self.strength is None,
        )

    @property
    def floor(self) -> float:
        return 1.0 if isinstance(self.base, str) and self.base == "uniform" else base_measures.FLOOR

    def batch_kernel(self, times: np.ndarray, state: StreamState) -> TimeKernel:
        """The kernel that was given, else the rate the stream has learned, or one that forgets within ten messages."""
        if self.kernel is not None:
            return self.kernel
        if isinstance(state.kernel, ExponentialKernel) and state.rate > 0.0:
            return state.kernel
        return ExponentialKernel(0.1 / typical_gap(times))

    def prior(self, rows: sp.csr_matrix, vocabulary: Any) -> st.Prior:
        """The base measure before anything has been learned."""
        n_features = rows.shape[1]
        mean_length = float(rows.sum()) / max(1, rows.shape[0])
        strength = self.strength or max(1.0, min(PRIOR_DOCUMENTS * max(1.0, mean_length), float(n_features)))
        gaussian = None
        if self.family == st.GAUSSIAN:
            gaussian = base_measures.gaussian_prior(rows, None if isinstance(self.base, str) else self.base)
        prior = base_measures.make_prior(
            n_features,
            strength=strength,
            blocks=blocks_of(vocabulary, n_features, self.evidence),
            weights=(1.0, *(kind.weight for kind in self.evidence)),
            strengths=(strength, *(kind.strength for kind in self.evidence)),
            gaussian=gaussian,
        )
        if self.family != st.GAUSSIAN and not isinstance(self.base, str):
            shares = np.asarray(self.base, dtype=np.float64)
            if shares.shape != (n_features,) or not (shares > 0).all():
                raise BadInput(
                    f"base has shape {shares.shape}; it needs a share above 0 for each of {n_features} features."
                )
            base_measures.add_seen(prior, shares / shares.sum() * 1e9)
        return prior

    def empty_stream(self, rows: sp.csr_matrix, vocabulary: Any, history: History) -> Stream:
        """A stream before its first message. The kernel is a step until a batch has shown how fast messages come."""
        state = StreamState.start(
            kernel=self.kernel if self.kernel is not None else StepKernel(),
            concentration=self.concentration or 1.0,
            family=self.family,
            prior=self.prior(rows, vocabulary),
            seed=self.seed,
            eps=1e-6,
            drift=self.drift,
            floor=self.floor,
            pseudo=_beta_prior(rows),
        )
        return self.stream_on(state, history)

    def stream_on(self, state: StreamState, history: History) -> Stream:
        """A stream that goes on from this state."""
        running = isinstance(self.base, str) and self.base == "background" and self.family == st.MULTINOMIAL
        learn = self.inference.learn
        rate = None if self.kernel is None else float(self.kernel.waves().decay[0])
        return Stream(
            state,
            self.inference,
            history,
            running=running,
            rate=None if learn and isinstance(state.kernel, ExponentialKernel) else rate,
            concentration=None if learn else self.concentration,
            strength=self.strength,
        )


def _beta_prior(rows: sp.csr_matrix) -> tuple[float, float]:
    """Beta prior of a Bernoulli feature: worth one message, as often present as in the data."""
    share = min(0.5, max(1e-6, rows.nnz / max(1, rows.shape[0] * rows.shape[1])))
    return 2.0 * share, 2.0 * (1.0 - share)


def widen(stream: Stream, n_features: int, vocabulary: Any, evidence: tuple[Evidence, ...]) -> None:
    """Columns that were added: each goes to the block of its name."""
    state = stream.state
    before = len(state.prior.seen)
    if n_features <= before:
        return
    blocks = np.zeros(n_features - before, dtype=np.int64)
    if evidence:
        blocks = blocks_of((vocabulary[at] for at in range(before, n_features)), n_features - before, evidence)
    state.widen(n_features)
    state.prior.block[before:] = blocks
    state.prior.blocks.width = np.maximum(1, np.bincount(state.prior.block, minlength=len(state.prior.blocks)))
