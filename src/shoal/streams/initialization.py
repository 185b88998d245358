"""How a model begins: options judged, the base measure made, an empty stream set up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from shoal.errors import BadInput
from shoal.streams import priors
from shoal.streams.evidence import Evidence, blocks_of
from shoal.streams.history import History
from shoal.streams.inference.rate_learning import typical_gap
from shoal.streams.inference.streaming import PRIOR_DOCUMENTS, Stream
from shoal.streams.options import as_inference
from shoal.streams.state import arrays as st
from shoal.streams.state.stream_state import StreamState
from shoal.streams.time_kernels import ExponentialKernel, StepKernel, TimeKernel, as_kernel

if TYPE_CHECKING:
    from shoal.data import Vocabulary


class Initialization:
    """Mixed into the estimator."""

    kernel: TimeKernel | None
    concentration: float | None
    likelihood: str
    base: Any
    strength: float | None
    drift: float
    evidence: Sequence[Evidence]
    inference: Any
    history_dir: str | None
    random_state: Any
    stream_: Stream
    vocabulary_: Vocabulary

    def _validate_options(self) -> int:
        if self.likelihood not in priors.FAMILIES:
            raise BadInput(f"likelihood={self.likelihood!r} is not one of {', '.join(map(repr, priors.FAMILIES))}.")
        for name in ("concentration", "strength"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise BadInput(f"{name}={value!r} must be a number above 0, or None.")
        if not self.drift >= 0:
            raise BadInput(f"drift={self.drift!r} must be 0 or more.")
        if self.kernel is not None:
            as_kernel(self.kernel)
        if isinstance(self.base, str) and self.base not in ("background", "uniform"):
            raise BadInput(f"base={self.base!r} is neither 'background' nor 'uniform' nor an array.")
        return priors.FAMILIES[self.likelihood]

    def _learns_rate(self) -> bool:
        return self.kernel is None or (isinstance(self.kernel, ExponentialKernel) and self.kernel.rate is None)

    def _start_kernel(self, times: np.ndarray) -> TimeKernel:
        """The kernel itself, or a rate to start from that forgets within some ten messages."""
        if not self._learns_rate():
            return cast(TimeKernel, self.kernel)
        return ExponentialKernel(0.1 / typical_gap(times))

    def _floor(self) -> float:
        return 1.0 if isinstance(self.base, str) and self.base == "uniform" else priors.FLOOR

    def _pseudo(self, rows: sp.csr_matrix) -> tuple[float, float]:
        """Beta prior of a Bernoulli feature: worth one message, as often present as in the data."""
        share = min(0.5, max(1e-6, rows.nnz / max(1, rows.shape[0] * rows.shape[1])))
        return 2.0 * share, 2.0 * (1.0 - share)

    def _prior(self, rows: sp.csr_matrix, family: int, *, streaming: bool = False) -> st.Prior:
        evidence = tuple(self.evidence)
        n_features = rows.shape[1]
        mean_length = float(rows.sum()) / max(1, rows.shape[0])
        strength = self.strength or min(PRIOR_DOCUMENTS * max(1.0, mean_length), float(n_features))
        gaussian = None
        if family == st.GAUSSIAN:
            gaussian = priors.gaussian_prior(rows, None if isinstance(self.base, str) else self.base)
        prior = priors.make_prior(
            n_features,
            strength=strength,
            blocks=blocks_of(getattr(self, "vocabulary_", None), n_features, evidence),
            weights=(1.0, *(kind.weight for kind in evidence)),
            strengths=(strength, *(kind.strength for kind in evidence)),
            gaussian=gaussian,
        )
        if family == st.GAUSSIAN:
            return prior
        if not isinstance(self.base, str):
            shares = np.asarray(self.base, dtype=np.float64)
            if shares.shape != (n_features,) or not (shares > 0).all():
                raise BadInput(
                    f"base has shape {shares.shape}; it needs a share above 0 for each of {n_features} features."
                )
            priors.add_seen(prior, shares / shares.sum() * 1e9)
        elif self.base == "background" and not streaming:
            priors.add_seen(prior, np.asarray(rows.sum(axis=0)).ravel())
        return prior

    def _start_online(self, rows: sp.csr_matrix, family: int) -> None:
        """An empty stream. The kernel is a step until the first batch has shown how fast messages come."""
        prior = self._prior(rows, family, streaming=True)
        kernel = StepKernel() if self._learns_rate() else cast(TimeKernel, self.kernel)
        seed = int(check_random_state(self.random_state).randint(0, 2**31 - 1))
        self._start_stream(family, prior, kernel, self.concentration or 1.0, seed, self._pseudo(rows))

    def _start_stream(
        self,
        family: int,
        prior: st.Prior,
        kernel: TimeKernel,
        concentration: float,
        seed: int,
        pseudo: tuple[float, float],
    ) -> None:
        for name in ("samples_", "n_clusters_posterior_", "consensus_labels_", "parameter_draws_", "order_"):
            if name in vars(self):
                delattr(self, name)
        options = as_inference(self.inference)
        state = StreamState.start(
            kernel=kernel,
            concentration=concentration,
            family=family,
            prior=prior,
            seed=seed,
            eps=1e-6,
            drift=float(self.drift),
            floor=self._floor(),
            pseudo=pseudo,
        )
        rate = None if self._learns_rate() else float(kernel.waves().decay[0])
        self.stream_ = Stream(
            state,
            options,
            History(self.history_dir),
            running=isinstance(self.base, str) and self.base == "background" and family == st.MULTINOMIAL,
            rate=None if options.learn and isinstance(kernel, ExponentialKernel) else rate,
            concentration=None if options.learn else self.concentration,
            strength=self.strength,
        )

    def _widen(self, n_features: int) -> None:
        """Columns that were added: each goes to the block its name says."""
        state = self.stream_.state
        before = len(state.prior.seen)
        if n_features <= before:
            return
        state.widen(n_features)
        if self.evidence:
            names = self.vocabulary_
            blocks = blocks_of(
                (names[column] for column in range(before, n_features)), n_features - before, tuple(self.evidence)
            )
            state.prior.block[before:] = blocks
            state.prior.blocks.width = np.maximum(1, np.bincount(state.prior.block, minlength=len(state.prior.blocks)))
