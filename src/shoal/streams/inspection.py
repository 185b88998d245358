"""What a fitted stream can say: of new messages, of its clusters, of what happened, and of how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from shoal.base import Assignment, Estimator, TopFeatures, check_int, check_real
from shoal.data.log_tokens import template_of
from shoal.errors import BadInput
from shoal.streams.arrivals import Forecast, Rates, rates_of_stories
from shoal.streams.events import Event, all_events, moment
from shoal.streams.history import ClusterHistory
from shoal.streams.inference.posterior import same_cluster
from shoal.streams.inference.rate_learning import typical_gap
from shoal.streams.inference.streaming import Stream
from shoal.streams.kernels.predict_kernels import all_probabilities, best_stories, own_gains
from shoal.streams.rows import read_rows, read_times
from shoal.streams.state import cluster_view
from shoal.streams.state.arrays import MULTINOMIAL
from shoal.streams.time_kernels import TimeKernel, seconds
from shoal.threads import lock_of

LARGEST_MATRIX = 5000
LEVEL_NAMES = {"threads": "thread", "stories": "story", "topics": "topic"}


class FittedStream(Estimator):
    """The part of :class:`~shoal.streams.TimeSensitiveMixture` that only looks; nothing here changes the model."""

    stream_: Stream
    granularity: str

    # --- asking -------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, *, times: Any = None) -> np.ndarray:
        """The likeliest live cluster of each message at its time (now, if not given); -1 where a new one is."""
        return self._best(X, times)[0]

    def assign(self, X: Any, *, times: Any = None) -> Assignment:
        """The likeliest cluster of each message and its probability, in one pass."""
        labels, log_probs = self._best(X, times)
        return Assignment(labels, np.exp(log_probs))

    def score_samples(self, X: Any, *, times: Any = None) -> np.ndarray:
        """The log probability of what ``predict`` returns for each message."""
        return self._best(X, times)[1]

    def score(self, X: Any, y: Any = None, *, times: Any = None) -> float:
        """Mean log probability of the messages, before any of them is learned."""
        return float(self.score_samples(X, times=times).mean())

    def predict_proba(self, X: Any, *, times: Any = None) -> np.ndarray:
        """Probabilities over ``cluster_ids_``, and in the last column that of a new cluster."""
        with lock_of(self).asking():
            arrays, n, column, n_stories = self._query(X, times)
            out = np.zeros((n, n_stories + 1))
            all_probabilities(*arrays[:-1], n, arrays[-1], column, out)
        return out

    def _best(self, X: Any, times: Any) -> tuple[np.ndarray, np.ndarray]:
        with lock_of(self).asking():
            arrays, n, column, n_stories = self._query(X, times)
            best, log_probs = np.zeros(n, dtype=np.int64), np.zeros(n)
            best_stories(*arrays[:-1], n, arrays[-1], column, np.zeros(n_stories + 1), best, log_probs)
            return np.append(self.cluster_ids_, -1)[best], log_probs

    def _query(self, X: Any, times: Any) -> tuple[tuple[Any, ...], int, np.ndarray, int]:
        """What the kernels of asking take; nothing of the model is written to."""
        check_is_fitted(self, "stream_")
        state = self.stream_.state
        rows = read_rows(self, X, int(state.status[0].family), mode="predict")
        n = rows.matrix.shape[0]
        given = rows.times if times is None else times
        clock = np.full(n, self.stream_.now) if given is None else read_times(given, n, 0)
        query, scratch = state.query(rows.matrix, clock)
        ids, column = self._stories()
        return (
            (state.clusters, state.tables, state.prior, state.links, state.status, query, scratch),
            n,
            column,
            ids.size,
        )

    def _stories(self) -> tuple[np.ndarray, np.ndarray]:
        """Ids of the live stories, and for each slot the place of its story among them."""
        state = self.stream_.state
        live, record = state.live, state.clusters.record  # read once: another thread may be learning
        ids, place = np.unique(self.stream_.stories.roots(record.id[live]), return_inverse=True)
        column = np.full(len(record), -1, dtype=np.int64)
        column[live] = place
        return ids, column

    # --- what was learned ---------------------------------------------------------------------------------------------

    @property
    def labels_(self) -> np.ndarray:
        """Cluster of each row of the last call that learned."""
        stream = self._stream_or_missing("labels_")
        state = stream.state
        numbers = state.window.docs.number[: state.n_docs]
        last = stream.history.settled(stream.n_seen - stream.n_last, stream.n_seen, state.labels, numbers)
        labels = stream.stories.roots(last)
        order = self._fit_order()
        return labels[order] if order.size == labels.size == stream.n_seen else labels

    @property
    def all_labels_(self) -> np.ndarray:
        """Cluster of each message seen so far, in the order given (with a history folder: of those in the window)."""
        stream = self._stream_or_missing("all_labels_")
        return self._in_order_given(stream.stories.roots(stream.all_labels()))

    @property
    def all_times_(self) -> np.ndarray:
        """When each of these messages came."""
        return self._in_order_given(self._stream_or_missing("all_times_").all_times())

    def _fit_order(self) -> np.ndarray:
        return np.asarray(vars(self).get("order_", np.zeros(0, dtype=np.int64)))

    def _in_order_given(self, values: np.ndarray) -> np.ndarray:
        order = self._fit_order()
        if order.size and self.stream_.history.folder is None:
            values[: order.size] = values[: order.size][order]
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
    def n_clusters_(self) -> int:
        """How many clusters are live."""
        return int(self.cluster_ids_.size)

    @property
    def cluster_ids_(self) -> np.ndarray:
        """Ids of the live clusters, in the order of ``predict_proba``'s columns."""
        self._stream_or_missing("cluster_ids_")
        return self._stories()[0]

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """Messages of each live cluster so far, in the order of ``cluster_ids_``."""
        state = self._stream_or_missing("cluster_sizes_").state
        ids, column = self._stories()
        sizes = np.bincount(column[state.live], weights=state.clusters.record.n_members[state.live], minlength=ids.size)
        gone = self.stream_.history.stories(self.stream_.stories.root)
        return np.asarray(sizes, dtype=np.int64) + np.array(
            [gone[id_].size if id_ in gone else 0 for id_ in ids.tolist()], int
        )

    def reported_cluster_ids(self) -> np.ndarray:
        """Ids of the live clusters, then of those that are gone but were large enough to be remembered."""
        live = self.cluster_ids_
        gone = np.array(sorted(self.stream_.history.stories(self.stream_.stories.root)), dtype=np.int64)
        return np.append(live, np.setdiff1d(gone, live))

    @property
    def clusters_(self) -> list[ClusterHistory]:
        """The histories of all clusters worth a report, largest first; live ones of any size."""
        stream = self._stream_or_missing("clusters_")
        histories = cluster_view.story_histories(stream)
        for each in histories:
            each.name = self.roster_.names.get(each.id)
        return sorted(histories, key=lambda each: (-each.size, each.id))

    @property
    def events_(self) -> list[dict[str, Any]]:
        """Births, bursts, merges and deaths, in order of time; see :mod:`shoal.streams.events`."""
        stream = self._stream_or_missing("events_")
        return all_events(
            self.clusters_, stream.history.merges, stream.events, self.roster_.events, stream.stories.root
        )

    def new_events(self) -> list[Event]:
        """Births, bursts and merges since the last call, each given once; they are found whenever a batch ends."""
        return self._stream_or_missing("new_events").events.take()

    def _stream_or_missing(self, name: str) -> Stream:
        if "stream_" not in vars(self):
            raise AttributeError(f"{name} appears once the model has been fitted")
        return self.stream_

    def _update_roster(self) -> None:
        self.roster_.ids = self._stories()[0]
        self.roster_.next_id = int(self.stream_.state.status[0].next_id)

    def cluster_weights(self, at: float | None = None) -> np.ndarray:
        """What each live cluster weighs at a time (now, if not given), in the order of ``cluster_ids_``."""
        check_is_fitted(self, "stream_")
        ids, column = self._stories()
        weights = np.exp(self.stream_.log_weights(at))
        return np.bincount(column[self.stream_.state.live], weights=weights, minlength=ids.size)

    def arrival_rates(self, at: float | None = None) -> np.ndarray:
        """Messages of each live cluster in a unit of time (now, if not given), in the order of ``cluster_ids_``."""
        check_is_fitted(self, "stream_")
        return self._rates_of_clusters(self.stream_.now if at is None else float(at)).mean

    def forecast_arrivals(
        self, horizon: float | str = "1 hour", *, at: float | None = None, level: float = 0.9
    ) -> Forecast:
        """How many messages to expect within the horizon, in all and of each live cluster, with intervals.

        ``horizon`` is in units of the clock, or text such as ``"30 min"`` where the clock is in seconds. Rates are
        taken to stay as they are within it: choose one that is short against the rhythm of the day.
        """
        check_is_fitted(self, "stream_")
        ahead = seconds(horizon) if isinstance(horizon, str) else check_real("horizon", horizon, minimum=0.0)
        check_real("level", level, minimum=0.0, maximum=1.0, strict=True)
        now = self.stream_.now if at is None else float(at)
        recent = self.stream_.state.window.docs.time[: self.stream_.state.n_docs]
        mean, low, high = self.stream_.arrivals.after(np.sort(recent)).rate_at(now).counts(ahead, level)
        means, lows, highs = self._rates_of_clusters(now).counts(ahead, level)
        return Forecast(float(mean[0]), int(low[0]), int(high[0]), self.cluster_ids_, means, lows, highs, level)

    def _rates_of_clusters(self, now: float) -> Rates:
        state = self.stream_.state
        ids, column = self._stories()
        born = np.full(ids.size, np.inf)
        np.minimum.at(born, column[state.live], state.clusters.record.born[state.live])
        gap = self.stream_.arrivals.gap or typical_gap(state.window.docs.time[: state.n_docs])
        return rates_of_stories(self.cluster_weights(now), now - born, state.kernel.waves(), gap)

    def same_cluster_matrix(self, items: Any = None) -> np.ndarray:
        """After ``fit`` has sampled: the share of samples in which two messages are together (all, or these items)."""
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
        cluster, n = check_int("cluster", cluster, minimum=0), check_int("n", n, minimum=0)
        return cluster_view.top_features(self.stream_, cluster, n)

    def cluster_title(self, cluster: int) -> str | None:
        """The template of a cluster of log lines ('Received block <*> of size <*>'); None for other messages."""
        if self.stream_.state.status[0].family != MULTINOMIAL or vars(self).get("vocabulary_") is None:
            return None
        features, amounts = cluster_view.words_of_story(self.stream_, int(cluster))
        return template_of(self.name_features(features), amounts.tolist())

    def cluster_notes(self, cluster: int) -> list[str]:
        """What level it is (a thread, a story or a topic), when it began, was largest and was last seen, its bursts."""
        life = cluster_view.story_history(self.stream_, int(cluster))
        pieces = f", of {life.pieces} arrival clusters" if life.pieces > 1 else ""
        times = f"born {moment(life.born)}, largest around {moment(life.peak)}, last seen {moment(life.last_seen)}"
        notes = [f"{LEVEL_NAMES[self.granularity]}{pieces}: {times}{'' if life.alive else ', retired'}"]
        root = self.stream_.stories.root
        return notes + [
            f"burst at {moment(at)}: strength {strength:.0f}"
            for id_, at, strength in self.stream_.events.bursts
            if root(id_) == cluster
        ]

    def figures(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """Clusters over time, the stream of their weights, the stories of each day, and how certain it all is."""
        from shoal.streams import plots

        return plots.figures_of(self)

    def typicality(self) -> np.ndarray | None:
        """After ``fit``: for each message, the gain in log likelihood per word over a new cluster."""
        check_is_fitted(self, "stream_")
        state = self.stream_.state
        if state.n_docs != len(self.labels_) or state.n_docs != self.stream_.n_seen:
            return None
        gains = np.zeros(state.n_docs)
        query = state.query(sp.csr_matrix((1, len(state.prior.seen))), np.zeros(1))[1]
        longest = int(np.diff(state.window.starts[: state.n_docs + 1]).max(initial=0))
        scratch = query._replace(bases=np.zeros(longest + 1))
        with lock_of(self).asking():
            own_gains(
                state.clusters, state.tables, state.prior, state.window, state.status, scratch, state.n_docs, gains
            )
        gains /= np.maximum(1.0, state.window.lengths[: state.n_docs].sum(axis=1))
        order = self._fit_order()
        return gains[order] if order.size else gains

    def cluster_uncertainty(self) -> np.ndarray | None:
        """After ``fit`` has sampled: 1 minus the mean share of samples in which members of a cluster are together."""
        samples = vars(self).get("samples_")
        if samples is None or not self.stream_.n_seen == samples.shape[1] <= LARGEST_MATRIX:
            return None
        labels = self.labels_
        together = self.same_cluster_matrix()
        return np.array([1.0 - together[np.ix_(labels == id_, labels == id_)].mean() for id_ in self.cluster_ids_])
