"""Time-stamped messages in threads that are born and fade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from shoal.datasets._common import as_dataset, as_generator, require_at_least
from shoal.datasets.kernels import count_words, draw_threads, draw_urn_words
from shoal.datasets.zipf import SHIFT

if TYPE_CHECKING:
    from shoal.data import Dataset


def make_threads(
    n_items: int = 100,
    *,
    n_features: int = 3,
    length: int = 20,
    arrival_rate: float = 1.0,
    decay: float = 0.5,
    concentration: float = 0.2,
    prior: float = 1.0,
    zipf: float = 0.0,
    random_state: Any = None,
) -> Dataset:
    """Generate messages from the time-sensitive Dirichlet process mixture.

    Messages arrive as a Poisson process. Each joins the thread of an earlier message with weight ``exp(-decay * age)``,
    or starts a new one with weight ``concentration``. The words of a thread follow a Dirichlet whose parameters sum to
    ``prior * n_features``. The defaults are the paper's hard case; ``length=50`` is its easy one. ``decay=0`` is the
    ordinary Dirichlet process. ``times`` are seconds since the start, in order; ``labels`` number the threads in order
    of birth.

    Parameters
    ----------
    n_items : int
        Number of messages.
    n_features : int
        Number of words in the vocabulary.
    length : int
        Words per message.
    arrival_rate : float
        Messages per second.
    decay : float
        Decay rate of the weight of earlier messages.
    concentration : float
        Weight of a new thread.
    prior : float
        Mean of the parameters of the Dirichlet.
    zipf : float
        Exponent of the Zipf law of these parameters; 0 for equal ones.
    random_state : int, Generator or None
        Random seed.

    Examples
    --------
    A stream of short messages from a large vocabulary:

    >>> chat = make_threads(1000, n_features=20_000, length=8, arrival_rate=10, prior=0.001, zipf=1.05, random_state=0)
    >>> chat.X.shape, bool((np.diff(chat.times) >= 0).all()), float(chat.X.sum(axis=1).max())
    ((1000, 20000), True, 8.0)
    """
    require_at_least(0, n_items=n_items, decay=decay, zipf=zipf)
    require_at_least(1, n_features=n_features, length=length)
    require_at_least(1e-300, arrival_rate=arrival_rate, concentration=concentration, prior=prior)
    rng = as_generator(random_state)
    times = np.cumsum(rng.exponential(1.0 / arrival_rate, n_items))
    labels = np.zeros(n_items, np.int64)
    draw_threads(times, float(decay), float(concentration), rng, labels)

    words = np.empty(n_items * length, np.int32)
    by_thread = np.argsort(labels, kind="stable")
    draw_urn_words(by_thread, labels, length, n_features, float(prior * n_features), float(zipf), SHIFT, rng, words)
    indptr = np.empty(n_items + 1, np.int64)
    indices, counts = np.empty(words.size, np.int32), np.empty(words.size, np.float32)
    n_stored = count_words(words, np.full(n_items, length, np.int64), indptr, indices, counts)
    X = sp.csr_matrix((counts[:n_stored], indices[:n_stored], indptr), shape=(n_items, n_features))
    return as_dataset(X, "word", labels, times=times)
