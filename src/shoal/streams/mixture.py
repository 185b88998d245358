"""TimeSensitiveMixture: threads and stories in a stream, unknown in number, that are born and fade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.base import Roster, Rows, check_int, storable, transaction
from shoal.errors import BadInput
from shoal.progress import Monitor
from shoal.streams import editing
from shoal.streams.evidence import Evidence
from shoal.streams.history import History
from shoal.streams.inference.checkpoint import all_or_nothing, interrupts_later
from shoal.streams.inference.fitting import Fitted, fit_all, n_steps
from shoal.streams.inference.posterior import number_posterior, split_r_hat
from shoal.streams.inference.streaming import Stream
from shoal.streams.initialization import Setup, widen
from shoal.streams.inspection import FittedStream
from shoal.streams.options import as_inference
from shoal.streams.rows import read_one, read_rows, read_times
from shoal.streams.state.stored_state import need
from shoal.streams.time_kernels import TimeKernel
from shoal.threads import lock_of


@storable
class TimeSensitiveMixture(FittedStream):
    """Time-sensitive Dirichlet process mixture: threads and stories in time-stamped messages, their number inferred.

    A message joins a cluster with probability proportional to the decayed weight of the cluster's past messages
    (``kernel``) and to the likelihood of its words, or starts a new cluster (``concentration``). With a step kernel
    this is the ordinary Dirichlet process mixture. ``fit`` processes all messages together; ``partial_fit`` and
    ``learn_one`` process them in order, resample only a short window, and use bounded memory. The model is sequential
    in time, so two models cannot be merged, and a stream is learned on one thread. Predictions are thread-safe and wait
    while the model learns.

    Parameters
    ----------
    kernel : time kernel, text or None, default=None
        The weight of past messages by age: a kernel of :mod:`shoal.streams.time_kernels`, or its name, such as
        ``"exponential"``, ``"step"`` or ``"periodic:period=1 week"``. None is an exponential kernel whose rate is
        learned.
    half_life : float or text, default=None
        Half-life of an exponential kernel, in units of time, or as ``"2h"`` if times are in seconds.
    concentration : float or None, default=None
        Weight of a new cluster (alpha); None learns it.
    likelihood : {"multinomial", "bernoulli", "gaussian"}, default="multinomial"
        Counts of words, sets of features, or measurements.
    granularity : {"threads", "stories", "topics"}, default="stories"
        How large clusters are. "threads" takes every split that raises the joint, "stories" asks that its sides differ
        in a fifth of their words. "topics" merges the stories of ``fit`` by their words alone, whenever they are told,
        the pair with the most evidence per word first, up to the knee of the evidence; it needs counts of words without
        drift, does not sample, and begins no stream (``partial_fit`` goes on from a fit, with its topics as clusters).
    base : {"background", "uniform"} or array, default="background"
        Base measure: estimated from the data, uniform, or the mean share of each feature; for "gaussian" a row (mean,
        pseudo-count, shape, rate) for each column.
    strength : float or None, default=None
        Pseudo-counts of the base measure; None learns it.
    drift : float, default=0.0
        Rate at which a cluster's words are forgotten in the stream (0: never), for stories whose words change. Clusters
        of words that drift are not merged, split or told as stories.
    evidence : sequence of Evidence, default=()
        Kinds of evidence in addition to words, identified by the names of their columns.
    inference : Inference, dict or None, default=None
        Options of fitting and of the stream.
    history_dir : text or None, default=None
        A folder for final labels and retired clusters, which bounds memory on an endless stream. A model that
        was loaded writes to a folder only after :meth:`use_history_dir`.
    random_state : int, RandomState or None, default=None
        Decides the answer.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each row of the last call that learned; ids are stable and never used again.
    all_labels_, all_times_ : arrays
        Cluster and time of each message ever seen (with a history folder: of those in the window), in the order given.
    clusters_ : list of ClusterHistory
        Largest first: born, established_at, peak, last_seen, size, counts over time, pieces.
    events_ : list of dict
        Births, bursts, merges and deaths in order of time.
    kernel_, concentration_ : TimeKernel, float
        As given or learned.
    objective_history_ : list of float
        After ``fit``, the log joint after each step.
    parameter_draws_ : dict
        After ``fit`` has sampled, draws of the kernel's parameters and of the concentration from their posterior.
    samples_, n_clusters_posterior_ : arrays
        After ``fit`` has sampled, kept samples and what they say of the number of clusters.
    diagnostics_ : dict
        After ``fit`` has sampled, R-hat of the log joint and of the number of clusters.

    Examples
    --------
    Two conversations about one subject, an hour apart, and one about another:

    >>> from shoal.streams import ExponentialKernel, TimeSensitiveMixture
    >>> X = np.array([[3, 0], [4, 1], [0, 4], [3, 0], [1, 4], [4, 0], [3, 1]])
    >>> minutes = np.array([0, 1, 2, 2, 3, 60, 61])
    >>> model = TimeSensitiveMixture("exponential", half_life=2.0, concentration=0.2, random_state=0)
    >>> model.fit(X, times=minutes).labels_
    array([0, 0, 1, 0, 1, 2, 2])

    The same, one message at a time:

    >>> stream = TimeSensitiveMixture("exponential", half_life=2.0, concentration=0.2, random_state=0)
    >>> [stream.learn_one(words, time=t) for words, t in [(["tea", "milk"], 0), (["tea", "milk"], 1), (["car"], 1)]]
    [0, 0, 1]
    """

    typicality_meaning: ClassVar[str] = "gain over a new cluster (nats a word)"

    def __init__(
        self,
        kernel: TimeKernel | str | None = None,
        *,
        half_life: float | str | None = None,
        concentration: float | None = None,
        likelihood: str = "multinomial",
        granularity: str = "stories",
        base: Any = "background",
        strength: float | None = None,
        drift: float = 0.0,
        evidence: Sequence[Evidence] = (),
        inference: Any = None,
        history_dir: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.half_life = half_life
        self.concentration = concentration
        self.likelihood = likelihood
        self.granularity = granularity
        self.base = base
        self.strength = strength
        self.drift = drift
        self.evidence = evidence
        self.inference = inference
        self.history_dir = history_dir
        self.random_state = random_state

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, times: Any = None) -> TimeSensitiveMixture:
        """Find the clusters of all messages together.

        One pass of the stream, then only moves that raise the joint probability of labels and messages; up to 500
        messages are also sampled. Ctrl-C ends it after the present step with the model as it is then.

        Parameters
        ----------
        X : matrix, Dataset or table
            A row for each message, in any order.
        y : ignored
        times : array of shape (n_samples,)
            Numbers in any unit, datetimes, or text such as "2019-04-15 17:00"; without them the times of a Dataset,
            else the order of the rows, are the clock.
        """
        setup = Setup.of(self)
        rows = read_rows(self, X, setup.family, mode="fit")
        matrix = rows.matrix
        clock = read_times(rows.times if times is None else times, matrix.shape[0], 0)
        order = np.argsort(clock, kind="stable")
        with lock_of(self).learning(), transaction(self):
            with Monitor("fitting", n_steps(setup, matrix.shape[0])) as monitor:
                found = fit_all(matrix[order], clock[order], rows.vocabulary, setup, monitor)
            self._go_on_from(found, setup)
            back = np.argsort(order, kind="stable")
            self.order_ = back
            self.n_iter_, self.objective_history_ = monitor.n_iter, list(monitor.history)
            self.converged_ = not monitor.interrupted
            self._keep_samples(found, back)
            self._remember_rows(rows, mode="fit")
            self._update_roster()
        return self

    def _go_on_from(self, found: Fitted, setup: Setup) -> None:
        """A stream that has seen all messages, all of which may still change when more come."""
        history = History()
        history.use_folder(self.history_dir)
        self._forget_fit()
        state = found.state
        stream = setup.stream_on(state, history)
        stream.n_seen = stream.n_last = state.n_docs
        stream.now = float(state.window.docs.time[: state.n_docs].max(initial=-np.inf))
        stream.replay_events()
        self.stream_ = stream
        self.roster_ = Roster(ids=np.zeros(0, dtype=np.int64))

    def _forget_fit(self) -> None:
        for name in ("samples_", "n_clusters_posterior_", "parameter_draws_", "diagnostics_", "order_", "converged_",
                     "n_iter_", "objective_history_"):  # fmt: skip
            self.__dict__.pop(name, None)

    def _keep_samples(self, found: Fitted, back: np.ndarray) -> None:
        if not found.chains:
            return
        self.samples_ = found.samples[:, back]
        self.n_clusters_posterior_ = number_posterior(found.samples)
        draws = np.concatenate([chain.draws for chain in found.chains])
        names = [*found.state.kernel.learned_names()[: draws.shape[1] - 1], "concentration"]
        self.parameter_draws_ = {name: draws[:, at] for at, name in enumerate(names)}
        self.diagnostics_ = {
            "r_hat_log_joint": split_r_hat([chain.log_joints for chain in found.chains]),
            "r_hat_n_clusters": split_r_hat([chain.n_clusters for chain in found.chains]),
        }

    def partial_fit(self, X: Any, y: Any = None, *, times: Any = None) -> TimeSensitiveMixture:
        """Go on with messages that come later, in order of arrival; columns may have been added at the end."""
        setup = Setup.of(self)
        family = self._family(setup)
        rows = read_rows(self, X, family, mode="partial_fit")
        clock = read_times(rows.times if times is None else times, rows.matrix.shape[0], self._n_seen())
        self._learn(rows, clock, setup)
        return self

    def _family(self, setup: Setup) -> int:
        return int(self.stream_.state.status[0].family) if "stream_" in vars(self) else setup.family

    def _n_seen(self) -> int:
        return self.stream_.n_seen if "stream_" in vars(self) else 0

    def _learn(self, rows: Rows, clock: np.ndarray, setup: Setup) -> np.ndarray:
        """Take in rows that have been validated, all or none; the arrival clusters they got."""
        vocabulary = rows.vocabulary if rows.vocabulary is not None else vars(self).get("vocabulary_")
        if "stream_" not in vars(self):
            if setup.granularity.merges:
                raise BadInput("granularity='topics' merges the stories of all messages: call fit first.")
            with lock_of(self).learning(), transaction(self):
                history = History()
                history.use_folder(self.history_dir)
                self.stream_ = setup.empty_stream(rows.matrix, vocabulary, history)
                self.roster_ = Roster(ids=np.zeros(0, dtype=np.int64))
                got = self.stream_.feed(rows.matrix, clock)
                self._remember_rows(rows, mode="fit")
                self._update_roster()
            return got
        with lock_of(self).learning(), all_or_nothing(self.stream_, rows.matrix.shape[0]), transaction(self):
            widen(self.stream_, rows.matrix.shape[1], vocabulary, setup.evidence)
            got = self.stream_.feed(rows.matrix, clock)
            self._remember_rows(rows, mode="partial_fit")
            self._update_roster()
        return got

    def learn_one(self, message: Any, time: Any = None) -> int:
        """Take in one message and return the id of its cluster (which re-sampling may still correct).

        ``message`` is a list of words, a mapping from words to counts, or a row of numbers; unknown words are learned.
        Ctrl-C is heard once the message has been learned.
        """
        setup = Setup.of(self)
        known, n_features = vars(self).get("vocabulary_"), vars(self).get("n_features_in_", 0)
        row, vocabulary = read_one(message, known, n_features, self._family(setup))
        clock = read_times(None if time is None else [time], 1, self._n_seen())
        with interrupts_later():
            got = self._learn(Rows(row, vocabulary), clock, setup)
        return self.stream_.stories.root(int(got[0]))

    def fit_predict(self, X: Any, y: Any = None, *, times: Any = None, **kwargs: Any) -> np.ndarray:
        """``fit(X, times=times).labels_``."""
        return self.fit(X, times=times, **kwargs).labels_

    def use_history_dir(self, folder: str | None) -> TimeSensitiveMixture:
        """Write settled labels and retired clusters of a loaded model to this folder, which no other model may use."""
        self._stream_or_missing("use_history_dir").history.use_folder(folder)
        self.history_dir = folder
        return self

    # --- editing ------------------------------------------------------------------------------------------------------

    def merge_clusters(self, clusters: Any, into: int) -> int:
        """The messages of ``clusters`` (one id or several) belong to the cluster ``into`` from now on."""
        check_is_fitted(self, "stream_")
        gone = editing.stories_to_merge(self.stream_, clusters, into)
        for cluster in gone:
            editing.merge_stories(self.stream_, cluster, int(into))
        self.roster_.merge(gone, int(into), at=self.stream_.now)
        self._update_roster()
        return int(into)

    def split_cluster(self, cluster: int, items: Any) -> int:
        """These messages (places in ``labels_``, still in the window) leave their cluster for a new one; its id."""
        check_is_fitted(self, "stream_")
        stream = self.stream_
        numbers = editing.numbers_of(items, self._fit_order() if stream.n_last == stream.n_seen else np.zeros(0, int),
                                     stream.n_seen - stream.n_last)  # fmt: skip
        with lock_of(self).learning():
            fresh = editing.split_story(stream, check_int("cluster", cluster, minimum=0), numbers)
        self.roster_.events.append({"kind": "split", "id": fresh, "into": int(cluster), "at": stream.now})
        self._update_roster()
        return fresh

    def pin_cluster(self, cluster: int, pinned: bool = True) -> None:
        """A pinned cluster is not retired, however long it is silent, and not merged by the model."""
        check_is_fitted(self, "stream_")
        cluster = check_int("cluster", cluster, minimum=0)
        editing.pin(self.stream_, cluster, pinned)
        self.roster_.pin(cluster, pinned, at=self.stream_.now)

    def name_cluster(self, cluster: int, name: str | None) -> None:
        """Give a cluster, live or retired, a name, which stays with its id; None takes the name away."""
        check_is_fitted(self, "stream_")
        cluster = check_int("cluster", cluster, minimum=0)
        if cluster in self.cluster_ids_:
            self.roster_.name(cluster, name, at=self.stream_.now)
            return
        if cluster not in self.reported_cluster_ids():
            self.roster_.row_of(cluster)
        if name:
            self.roster_.names[cluster] = str(name)
        else:
            self.roster_.names.pop(cluster, None)

    def revive(self, cluster: int) -> None:
        """Bring a retired cluster back under its old id, with its words, as if one of its messages had come now."""
        check_is_fitted(self, "stream_")
        with lock_of(self).learning():
            editing.revive(self.stream_, int(cluster))
        self.roster_.events.append({"kind": "revival", "id": int(cluster), "into": None, "at": self.stream_.now})
        self._update_roster()

    # --- storing ------------------------------------------------------------------------------------------------------

    def fitted_state(self) -> dict[str, Any]:
        """What was learned, in parts that a model file can hold."""
        learned = super().fitted_state()
        return learned | {"stream_": self.stream_.stored()} if "stream_" in learned else learned

    def restore_state(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`fitted_state`. A folder that the file names is not used."""
        super().restore_state(state)
        if "stream_" in vars(self):
            need(isinstance(self.stream_, Stream), "its stream is of another kind")
            self.stream_.history.folder = None

    def check_state(self) -> None:
        """Refuse a state from a file that contradicts itself."""
        stream = self.stream_
        need(isinstance(vars(self).get("roster_"), Roster), "there are no cluster ids")
        self.roster_.check_state()
        need(vars(self).get("n_features_in_") == len(stream.state.prior.seen), "the number of features")
        order = self._fit_order()
        need(order.ndim == 1 and order.size <= stream.n_seen, "the order of the rows")
        need(np.sort(order) == np.arange(order.size), "the order of the rows")
        as_inference(stream.options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.likelihood != "gaussian"
        return tags
