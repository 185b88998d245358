"""TimeSensitiveMixture: threads and stories in a stream, unknown in number, that are born and fade."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.base import Estimator, TopFeatures, storable
from shoal.errors import BadInput
from shoal.streams.editing import Edits
from shoal.streams.evidence import Evidence
from shoal.streams.history import ClusterHistory, events_of, follow, history_from_members, history_of_slot
from shoal.streams.inference.gibbs import Plan, run_chains, typical
from shoal.streams.inference.posterior import by_birth, closest_sample, number_posterior, same_cluster
from shoal.streams.inference.streaming import Stream
from shoal.streams.initialization import Initialization
from shoal.streams.kernels.predict_kernels import all_probabilities, own_gains, score_only
from shoal.streams.options import as_inference
from shoal.streams.rows import read_one, read_rows, read_times
from shoal.streams.state import cluster_view
from shoal.streams.state.stream_state import StreamState
from shoal.streams.time_kernels import TimeKernel

LARGEST_MATRIX = 5000


@storable
class TimeSensitiveMixture(Edits, Initialization, Estimator):
    """Finds threads and stories in time-stamped messages: clusters that are born, grow, fade, unknown in number.

    A message joins a cluster in proportion to the weight that the cluster's past messages still have (``kernel``), and
    to how well its words fit; or it starts a new one (``concentration``). With a step kernel this is the ordinary
    Dirichlet process mixture. ``fit`` samples all messages together (Gibbs); ``partial_fit`` and ``learn_one`` take
    them as they come, re-sample only a short window, and keep memory bounded.

    Parameters
    ----------
    kernel : a kernel over time; None learns the rate of an exponential one from the data
    concentration : how readily new clusters start (alpha); None learns it
    likelihood : "multinomial" (counts of words), "bernoulli" (sets of features) or "gaussian" (measurements)
    base : what clusters look like before they have members: "background" (as all messages together), "uniform",
        or an array with the mean share of each feature; for "gaussian" a row (mean, pseudo-count, shape, rate) each
    strength : pseudo-counts of the base measure; None learns it, at most 1 for each feature
    drift : rate at which a cluster's words are forgotten in the stream (0: never), for stories whose words change
    evidence : kinds of evidence beside words (:class:`Evidence`), found by the names of their columns
    inference : options of sampling and streaming, an :class:`Inference` or a dict
    history_dir : a folder for settled labels and retired clusters, so that memory stays flat on an endless stream
    random_state : decides the answer

    Attributes
    ----------
    times_ : when each message came, in the order given
    labels_ : id of the cluster of each message seen, in the order given; ids are stable and never used again
    clusters_ : the histories of clusters, largest first: born, established_at, peak, last_seen, size, counts over time
    events_ : births, bursts, merges and deaths in order of time
    kernel_, concentration_ : as given or learned
    parameter_draws_ : after ``fit``, draws of the kernel's parameters and of the concentration from their posterior
    samples_, n_clusters_posterior_, consensus_labels_ : after ``fit``, kept samples and what they say together

    Examples
    --------
    Two conversations, an hour apart, about the same thing, and one about something else:

    >>> from shoal.streams import ExponentialKernel, TimeSensitiveMixture
    >>> X = np.array([[3, 0], [4, 1], [0, 4], [3, 0], [1, 4], [4, 0], [3, 1]])
    >>> minutes = np.array([0, 1, 2, 2, 3, 60, 61])
    >>> model = TimeSensitiveMixture(ExponentialKernel(half_life=2.0), concentration=0.2, random_state=0)
    >>> model.fit(X, minutes).labels_
    array([0, 0, 1, 0, 1, 2, 2])

    The same, one message at a time:

    >>> stream = TimeSensitiveMixture(ExponentialKernel(half_life=2.0), concentration=0.2, random_state=0)
    >>> [stream.learn_one(words, time=t) for words, t in [(["tea", "milk"], 0), (["tea", "milk"], 1), (["car"], 1)]]
    [0, 0, 1]
    """

    typicality_meaning: ClassVar[str] = "gain over a new cluster (nats a word)"

    def __init__(
        self,
        kernel: TimeKernel | None = None,
        *,
        concentration: float | None = None,
        likelihood: str = "multinomial",
        base: Any = "background",
        strength: float | None = None,
        drift: float = 0.0,
        evidence: Sequence[Evidence] = (),
        inference: Any = None,
        history_dir: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.concentration = concentration
        self.likelihood = likelihood
        self.base = base
        self.strength = strength
        self.drift = drift
        self.evidence = evidence
        self.inference = inference
        self.history_dir = history_dir
        self.random_state = random_state

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, times: Any = None) -> TimeSensitiveMixture:
        """Sample the clusters of all messages together.

        ``times`` holds one number for each row, in any unit; without it the order of the rows is the clock.
        """
        family = self._validate_options()
        rows = read_rows(self, X, family, fitting=True)
        clock = read_times(X, times, rows.shape[0], 0)
        order = np.argsort(clock, kind="stable")
        rows, clock = rows[order], clock[order]
        options = as_inference(self.inference)
        prior = self._prior(rows, family)
        plan = Plan(
            kernel=self._start_kernel(clock),
            concentration=self.concentration or 1.0,
            family=family,
            n_sweeps=options.n_sweeps,
            burn_in=min(options.burn_in, options.n_sweeps - 1),
            thin=options.thin,
            learn_kernel=self._learns_rate() if options.learn is None else options.learn,
            learn_concentration=self.concentration is None if options.learn is None else options.learn,
            learn_strength=self.strength is None,
            tolerance=options.tolerance,
            floor=self._floor(),
            pseudo=self._pseudo(rows),
        )
        random = check_random_state(self.random_state)
        seeds = [int(seed) for seed in random.randint(0, 2**31 - 1, size=options.n_chains)]
        chains = run_chains(rows, clock, prior, plan, seeds)
        samples = np.array([by_birth(labels) for chain in chains for labels in chain.samples], dtype=np.int32)
        labels = samples[closest_sample(samples)].astype(np.int64)
        state = chains[0].state
        kernel, concentration = typical(chains)
        draws = np.concatenate([chain.draws for chain in chains])
        self._start_stream(family, state.prior, kernel, concentration, seeds[0], self._pseudo(rows))
        self.stream_.state.append(rows, clock, first_number=0)
        self.stream_.state.place(labels)
        self.stream_.n_seen, self.stream_.now = rows.shape[0], float(clock[-1])
        back = np.argsort(order, kind="stable")
        self.order_ = back
        self.samples_ = samples[:, back]
        self.n_clusters_posterior_ = number_posterior(samples)
        self.consensus_labels_ = labels[back]
        names = [*kernel.learned_names()[: draws.shape[1] - 1], "concentration"]
        self.parameter_draws_ = {name: draws[:, at] for at, name in enumerate(names)}
        return self

    def partial_fit(self, X: Any, times: Any = None) -> TimeSensitiveMixture:
        """Go on with messages that come later, in order of arrival; columns may have been added at the end."""
        family = self._validate_options()
        started = hasattr(self, "stream_")
        rows = read_rows(self, X, family, fitting=not started, growing=True)
        if not started:
            self._start_online(rows, family)
        self._widen(rows.shape[1])
        self.stream_.feed(rows, read_times(X, times, rows.shape[0], self.stream_.n_seen))
        return self

    def learn_one(self, message: Any, time: float | None = None) -> int:
        """Take in one message and return the id of its cluster (which re-sampling may still correct).

        ``message`` is a list of words, a mapping from words to counts, or a row of numbers; unknown words are learned.
        """
        started = hasattr(self, "stream_")
        family = self.stream_.state.status[0].family if started else self._validate_options()
        row, vocabulary = read_one(message, getattr(self, "vocabulary_", None), getattr(self, "n_features_in_", 0))
        if vocabulary is not None:
            self.vocabulary_ = vocabulary
        self.n_features_in_ = max(getattr(self, "n_features_in_", 0), row.shape[1])
        if not started:
            self._start_online(row, int(family))
        self._widen(row.shape[1])
        clock = np.array([float(self.stream_.n_seen if time is None else time)])
        return int(self.stream_.feed(row, clock)[0])

    def fit_predict(self, X: Any, times: Any = None, **kwargs: Any) -> np.ndarray:
        """``fit(X, times).labels_``."""
        return self.fit(X, times, **kwargs).labels_

    # --- asking -------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, times: Any = None) -> np.ndarray:
        """The likeliest live cluster of each message at its time (now, if not given); -1 where a new one is."""
        best = self._score(X, times)[0]
        return np.where(best >= 0, self.stream_.state.clusters.record.id[best], -1)

    def predict_proba(self, X: Any, times: Any = None) -> np.ndarray:
        """Probabilities over ``cluster_ids_``, and in the last column that of a new cluster."""
        state, lo, hi = self._ask(X, times)
        out = np.zeros((hi - lo, state.n_live + 1))
        all_probabilities(*self._for_scores(state), lo, hi, out)
        state.status[0].n_docs = lo
        return out

    def score_samples(self, X: Any, times: Any = None) -> np.ndarray:
        """How sure ``predict`` is of each message, as a log probability."""
        return self._score(X, times)[1]

    def _score(self, X: Any, times: Any) -> tuple[np.ndarray, np.ndarray]:
        state, lo, hi = self._ask(X, times)
        best, log_prob = np.zeros(hi - lo, dtype=np.int64), np.zeros(hi - lo)
        score_only(*self._for_scores(state), lo, hi, best, log_prob)
        state.status[0].n_docs = lo
        return best, log_prob

    def _ask(self, X: Any, times: Any) -> tuple[StreamState, int, int]:
        """Put messages behind the window for a moment; the caller takes them off again."""
        check_is_fitted(self, "stream_")
        state = self.stream_.state
        rows = read_rows(self, X, int(state.status[0].family), fitting=False)
        given = times is not None or getattr(X, "times", None) is not None
        clock = read_times(X, times, rows.shape[0], 0) if given else np.full(rows.shape[0], self.stream_.now)
        lo, hi = state.append(rows, clock, first_number=-1)
        return state, lo, hi

    @staticmethod
    def _for_scores(state: StreamState) -> tuple[Any, ...]:
        clusters, tables, _, *others = state.arrays()
        return (clusters, tables, *others)

    @property
    def labels_(self) -> np.ndarray:
        """Cluster of each message seen so far, in the order given (with a history folder: of those in the window)."""
        if not hasattr(self, "stream_"):
            raise AttributeError("labels_ appears once the model has been fitted")
        return self._in_order_given(self.stream_.history.labels, self.stream_.state.labels)

    @property
    def times_(self) -> np.ndarray:
        """When each of these messages came."""
        if not hasattr(self, "stream_"):
            raise AttributeError("times_ appears once the model has been fitted")
        state = self.stream_.state
        return self._in_order_given(self.stream_.history.times, state.window.docs.time[: state.n_docs])

    def _in_order_given(self, settled: np.ndarray, recent: np.ndarray) -> np.ndarray:
        """Of each message seen (with a history folder: of those in the window), in the order given."""
        stream = self.stream_
        numbers = stream.state.window.docs.number[: stream.state.n_docs]
        if stream.history.folder is not None:
            return np.asarray(recent[np.argsort(numbers, kind="stable")])
        values = np.zeros(stream.n_seen, dtype=recent.dtype)
        values[: stream.history.n_labels] = settled[: stream.history.n_labels]
        values[numbers] = recent
        n = len(getattr(self, "order_", ()))
        if n:
            values[:n] = values[:n][self.order_]
        return values

    @property
    def kernel_(self) -> TimeKernel:
        """The kernel in use."""
        return self._stream_or_missing("kernel_").state.kernel

    @property
    def concentration_(self) -> float:
        """The concentration in use."""
        return self._stream_or_missing("concentration_").state.concentration

    @property
    def clusters_(self) -> list[ClusterHistory]:
        """The lives of all clusters worth telling, largest first; live ones of any size."""
        stream = self._stream_or_missing("clusters_")
        living = [history_of_slot(stream.state, int(slot)) for slot in stream.state.live]
        if hasattr(self, "samples_") and stream.n_seen == len(self.order_):
            labels, times = self.labels_, self.times_
            living = [history_from_members(id_, times[labels == id_]) for id_ in np.unique(labels)]
        lives = living + [life for life in stream.history.all_retired() if not life.alive]
        for life in lives:
            life.name = stream.history.names.get(life.id, life.name)
            if not life.alive and life.merged_into is None and life.id in stream.history.merged:
                life.merged_into = follow(stream.history.merged, life.id)
        return sorted(lives, key=lambda life: (-life.size, life.id))

    @property
    def events_(self) -> list[dict[str, Any]]:
        """Births, bursts, merges and deaths, in order of time."""
        return events_of(self.clusters_, self._stream_or_missing("events_").history.edits)

    def _stream_or_missing(self, name: str) -> Stream:
        if "stream_" not in vars(self):
            raise AttributeError(f"{name} appears once the model has been fitted")
        return self.stream_

    @property
    def cluster_ids_(self) -> np.ndarray:
        """Ids of the live clusters, in the order of ``predict_proba``'s columns."""
        state = self._stream_or_missing("cluster_ids_").state
        return np.asarray(state.clusters.record.id[state.live])

    def reported_cluster_ids(self) -> np.ndarray:
        """Ids of the live clusters, then of those that are gone but were large enough to be remembered."""
        history = self._stream_or_missing("reported_cluster_ids").history
        gone = [life.id for life in history.all_retired() if not life.alive]
        return np.append(self.cluster_ids_, np.asarray(gone, dtype=np.int64))

    def cluster_weights(self, at: float | None = None) -> np.ndarray:
        """What each live cluster weighs at a time (now, if not given), in the order of ``cluster_ids_``."""
        check_is_fitted(self, "stream_")
        return np.asarray(np.exp(self.stream_.log_weights(at)))

    def same_cluster_matrix(self, items: Any = None) -> np.ndarray:
        """After ``fit``: the share of samples in which two messages are together (all, or these items)."""
        check_is_fitted(self, "samples_")
        chosen = np.arange(self.samples_.shape[1]) if items is None else np.asarray(items)
        if chosen.size > LARGEST_MATRIX:
            raise BadInput(
                f"a matrix of {chosen.size} x {chosen.size} pairs is too large; choose {LARGEST_MATRIX} items at most."
            )
        return same_cluster(self.samples_, chosen)

    def top_features(self, cluster: int, n: int = 10) -> TopFeatures:
        """The features that set a cluster, live or retired, apart from the background."""
        check_is_fitted(self, "stream_")
        state = self.stream_.state
        found = np.flatnonzero(self.cluster_ids_ == cluster)
        if found.size:
            return cluster_view.top_features(state, int(state.live[found[0]]), n)
        life = self.stream_.history.life(int(cluster))
        return cluster_view.lift(state, np.asarray(life.features, dtype=np.int64), np.asarray(life.amounts), n)

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """Clusters over time, the stream of their weights, the stories of each day, and how sure it all is."""
        from shoal.streams import plots

        if self._stream_or_missing("figures").n_seen > 1:
            says = "Each tick is a message; clusters in the order of their birth."
            yield "Clusters over time", says, lambda: plots.time_versus_cluster(self)
            yield "The stream", "How many messages each of the largest clusters had.", lambda: plots.stream_graph(self)
            if 2 <= np.ptp(self.times_) / 86400.0 <= 400:
                yield (
                    "Top stories of each day",
                    "Bold if born that day, ↑ if it burst.",
                    lambda: plots.top_stories_table(self),
                )
        if getattr(self, "samples_", None) is not None and len(self.samples_) > 1:
            yield "How many clusters", "In the kept samples.", lambda: plots.number_of_clusters(self)
            says = "Dark where two messages are together in most samples."
            yield "Who is with whom", says, lambda: plots.same_cluster_plot(self)

    def typicality(self) -> np.ndarray | None:
        """After ``fit``: for each message, the gain in log likelihood per word over a new cluster."""
        check_is_fitted(self, "stream_")
        state = self.stream_.state
        if state.n_docs != len(self.labels_):
            return None
        gains = np.zeros(state.n_docs)
        clusters, tables, _, prior, window, _, status, scratch = state.arrays()
        own_gains(clusters, tables, prior, window, status, scratch, state.n_docs, gains)
        gains /= np.maximum(1.0, state.window.lengths[: state.n_docs].sum(axis=1))
        order = getattr(self, "order_", None)
        return gains if order is None else gains[order]

    def cluster_uncertainty(self) -> np.ndarray | None:
        """After ``fit``: 1 minus the mean share of samples in which members of a cluster are together."""
        if not hasattr(self, "samples_") or self.samples_.shape[1] > LARGEST_MATRIX:
            return None
        together, labels = self.same_cluster_matrix(), self.consensus_labels_
        return np.array([1.0 - together[np.ix_(labels == id_, labels == id_)].mean() for id_ in self.cluster_ids_])

    def fitted_state(self) -> dict[str, Any]:
        """What was learned, in parts that a model file can hold."""
        learned = super().fitted_state()
        return learned | {"stream_": self.stream_.stored()} if "stream_" in learned else learned

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.likelihood != "gaussian"
        return tags
