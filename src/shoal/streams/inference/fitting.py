"""What ``fit`` does: the stream and its stories, moves that only raise the joint, and samples of a small set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from shoal.progress import Monitor
from shoal.streams.history import History
from shoal.streams.inference.batch import COARSE_ROUNDS, MOST_ROUNDS, Batch, best_batch
from shoal.streams.inference.gibbs import Chain, Schedule, arrive_again, run_chain, typical
from shoal.streams.inference.posterior import by_birth, closest_sample
from shoal.streams.inference.topics import topics_of
from shoal.streams.initialization import Setup
from shoal.streams.state.stream_state import StreamState


@dataclass
class Fitted:
    """What was found."""

    state: StreamState  # every document in the window, at its label
    labels: np.ndarray  # 0 and on, in order of their clusters' births
    samples: np.ndarray  # (samples, documents); none if nothing was sampled
    chains: list[Chain]


def fit_all(rows: sp.csr_matrix, times: np.ndarray, vocabulary: object, setup: Setup, monitor: Monitor) -> Fitted:
    """Clusters of all documents together, which come in order of time. The monitor may end it between any two steps."""
    stream = setup.empty_stream(rows, vocabulary, History())
    stream.feed(rows, times)
    labels = by_birth(stream.stories.roots(stream.all_labels()))

    def start() -> Batch:
        state = stream.state.empty_copy(setup.seed)
        state.status[0].origin = times[0]
        state.set_time(setup.batch_kernel(times, stream.state), stream.state.concentration)
        state.append(rows, times, first_number=0)
        state.place(labels)
        return Batch(state, times, setup.learned, setup.granularity.split_share, setup.seed)

    best = best_batch(start, monitor)
    if setup.granularity.merges and monitor.running:
        best = _merged(best, rows, times, setup)
    if not samples(setup, rows.shape[0]) or not monitor.running:
        return Fitted(best.state, by_birth(best.state.labels), np.zeros((0, rows.shape[0]), dtype=np.int32), [])
    return _sampled(best.state, rows, times, setup, monitor)


def n_steps(setup: Setup, n_rows: int) -> int:
    """How many steps the monitor may see."""
    sampled = setup.inference.n_sweeps * setup.inference.n_chains if samples(setup, n_rows) else 0
    return 2 * MOST_ROUNDS + COARSE_ROUNDS + sampled


def samples(setup: Setup, n_rows: int) -> bool:
    """Whether the posterior is sampled; topics are no clusters of the model, so they are not."""
    return setup.inference.samples(n_rows) and not setup.granularity.merges


def _merged(stories: Batch, rows: sp.csr_matrix, times: np.ndarray, setup: Setup) -> Batch:
    """Topics in place of stories, and the parameters that suit them."""
    state = stories.state.empty_copy(setup.seed)
    state.append(rows, times, first_number=0)
    state.place(by_birth(topics_of(stories.state)))
    topics = Batch(state, times, setup.learned, setup.granularity.split_share, setup.seed)
    topics.learn()
    return topics


def _sampled(best: StreamState, rows: sp.csr_matrix, times: np.ndarray, setup: Setup, monitor: Monitor) -> Fitted:
    options = setup.inference
    burn_in = min(options.burn_in, options.n_sweeps - 1)
    schedule = Schedule(options.n_sweeps, burn_in, options.thin, options.tolerance, setup.learned, best.kernel)
    seeds = np.random.default_rng(setup.seed).integers(0, 2**31 - 1, options.n_chains).tolist()
    # the first chain begins where the moves ended, the others with documents that arrive one after another
    starts = [arrive_again(best, rows, times, seed) for seed in seeds[1:]]
    best.seed, best.status[0].eps = int(seeds[0]), options.tolerance
    chains = [run_chain(state, rows, times, schedule, monitor) for state in (best, *starts)]
    samples = np.array([by_birth(labels) for chain in chains for labels in chain.samples], dtype=np.int32)
    labels = samples[closest_sample(samples)].astype(np.int64)
    state = best.empty_copy(setup.seed)
    state.set_time(*typical(chains))
    state.append(rows, times, first_number=0)
    state.place(labels)
    return Fitted(state, labels, samples, chains)
