"""Large sparse data with a known answer: documents x words and ads x keywords, frequencies falling as a Zipf law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.datasets._common import as_dataset, as_generator, require_at_least, require_share
from shoal.datasets.kernels import count_words, draw_documents, draw_keyword_sets
from shoal.errors import BadInput
from shoal.threads import ordered_map, row_blocks

if TYPE_CHECKING:
    from shoal.data import Dataset

SHIFT = 2.7  # Mandelbrot's shift: flattens the first few ranks, as in real text
BLOCK_ROWS = 16_384


class Topics(NamedTuple):
    """The words each cluster prefers, and how much."""

    words: np.ndarray  # (n_clusters, words_per_topic) feature numbers
    cumulative: np.ndarray  # (words_per_topic,) cumulative shares, the same for every cluster
    share: float  # of an item's words that come from its topic


def make_zipf_topics(
    n_items: int,
    *,
    n_features: int = 100_000,
    n_clusters: int = 100,
    length: float = 100.0,
    topic_share: float = 0.3,
    words_per_topic: int = 200,
    zipf: float = 1.05,
    skew: float = 0.0,
    counts: bool = True,
    random_state: Any = None,
) -> Dataset:
    """Generate documents of common words with some topic words.

    Topic words are spread log-uniformly over all but the 50 most frequent ranks. Repeated words share an entry, so a
    row stores about 85 % of ``length`` numbers. A million documents over seven million words take less than a minute
    and two gigabytes.

    Parameters
    ----------
    n_items, n_features, n_clusters : int
        Numbers of documents, words and clusters.
    length : float
        Mean number of words of a document (Poisson, 10 at least).
    topic_share : float
        Share of words from the cluster; the others are from a Zipf background.
    words_per_topic : int
        Words of a cluster.
    zipf : float
        Exponent of the background.
    skew : float
        Exponent of the cluster sizes; 0 for equal sizes.
    counts : bool
        False gives 1 for each word present.
    random_state : int, Generator or None
        Random seed.

    Examples
    --------
    >>> documents = make_zipf_topics(500, n_features=2000, n_clusters=5, random_state=0)
    >>> documents.X.shape, documents.X.dtype, np.unique(documents.labels).tolist()
    ((500, 2000), dtype('float32'), [0, 1, 2, 3, 4])
    """
    require_at_least(0, n_items=n_items, skew=skew, zipf=zipf, length=length)
    require_at_least(1, n_features=n_features, n_clusters=n_clusters, words_per_topic=words_per_topic)
    require_share(topic_share=topic_share)
    rng = as_generator(random_state)
    topics = _topics(n_clusters, words_per_topic, n_features, 50, topic_share, rng)
    labels = rng.choice(n_clusters, size=n_items, p=_falling(n_clusters, skew))
    lengths = np.maximum(10, rng.poisson(length, n_items))
    X = _rows(draw_documents, labels, lengths, topics, n_features, zipf, rng)
    if not counts:
        X.data[:] = 1
    return as_dataset(X, "word", labels)


def make_zipf_ads(
    n_items: int = 207_000,
    *,
    n_features: int = 2_000,
    n_clusters: int = 100,
    keywords_per_item: float = 10.0,
    n_owners: int | None = None,
    loyalty: float = 0.9,
    topic_share: float = 0.7,
    words_per_topic: int = 60,
    clutter_share: float = 0.0,
    zipf: float = 1.05,
    random_state: Any = None,
) -> Dataset:
    """Generate advertisements, each a set of keywords, of advertisers who mostly have one subject.

    Parameters
    ----------
    n_items, n_features, n_clusters : int
        Numbers of ads, keywords and clusters.
    keywords_per_item : float
        Mean number of distinct keywords of an ad, which is 1 or more.
    n_owners : int, optional
        Number of advertisers, of very different sizes; default: one for every 25 ads.
    loyalty : float
        Share of an advertiser's ads in its main cluster; the others are in three more.
    topic_share : float
        Share of keywords from the cluster; the others are from a Zipf background.
    words_per_topic : int
        Keywords of a cluster.
    clutter_share : float
        Share of ads with unrelated keywords only, labelled -1.
    zipf : float
        Exponent of the background.
    random_state : int, Generator or None
        Random seed.

    Examples
    --------
    >>> ads = make_zipf_ads(1000, n_features=300, n_clusters=4, clutter_share=0.1, random_state=0)
    >>> ads.X.shape, float(ads.X.max()), np.unique(ads.labels).tolist(), len(np.unique(ads.owners))
    ((1000, 300), 1.0, [-1, 0, 1, 2, 3], 40)
    """
    n_owners = max(1, n_items // 25) if n_owners is None else n_owners
    require_at_least(0, n_items=n_items, zipf=zipf)
    require_at_least(
        1, n_features=n_features, n_clusters=n_clusters, n_owners=n_owners, words_per_topic=words_per_topic
    )
    require_at_least(1, keywords_per_item=keywords_per_item)
    require_share(loyalty=loyalty, topic_share=topic_share, clutter_share=clutter_share)
    if keywords_per_item > n_features:
        raise BadInput(f"keywords_per_item is {keywords_per_item:g}, but there are only {n_features} features.")
    rng = as_generator(random_state)
    topics = _topics(n_clusters, words_per_topic, n_features, 10, topic_share, rng)
    owners = rng.choice(n_owners, size=n_items, p=_falling(n_owners, 0.7))
    subjects = rng.integers(n_clusters, size=(n_owners, 4))  # home, and three more
    which = np.where(rng.random(n_items) < loyalty, 0, rng.integers(1, 4, size=n_items))
    labels = subjects[owners, which]
    labels[rng.random(n_items) < clutter_share] = -1
    lengths = np.minimum(1 + rng.poisson(keywords_per_item - 1, n_items), n_features)
    X = _rows(draw_keyword_sets, labels, lengths, topics, n_features, zipf, rng)
    return as_dataset(X, "keyword", labels, owners=owners)


def _topics(n_clusters: int, size: int, n_features: int, low: int, share: float, rng: np.random.Generator) -> Topics:
    low = min(low, n_features // 2)
    spread = np.log(n_features / max(low, 1))
    words = (max(low, 1) * np.exp(rng.random((n_clusters, size)) * spread)).astype(np.int32)
    weights = 1.0 / (np.arange(size) + 5.0)
    return Topics(np.minimum(words, n_features - 1), np.cumsum(weights / weights.sum()), share)


def _falling(n: int, power: float) -> np.ndarray:
    weights: np.ndarray = (np.arange(n) + 1.0) ** -power
    return np.asarray(weights / weights.sum())


def _rows(
    draw: Any,
    labels: np.ndarray,
    lengths: np.ndarray,
    topics: Topics,
    n_features: int,
    zipf: float,
    rng: np.random.Generator,
) -> sp.csr_matrix:
    """CSR rows, block by block on threads; each block has a random stream of its own."""
    blocks = row_blocks(labels.size, BLOCK_ROWS) or [(0, 0)]

    def draw_block(block: tuple[tuple[int, int], np.random.Generator]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        (start, stop), own_rng = block
        rows = np.ascontiguousarray(lengths[start:stop])
        words = np.empty(rows.sum(), np.int32)
        draw(
            labels[start:stop],
            rows,
            topics.words,
            topics.cumulative,
            topics.share,
            n_features,
            zipf,
            SHIFT,
            own_rng,
            words,
        )
        indptr = np.empty(rows.size + 1, np.int64)
        indices, counts = np.empty(words.size, np.int32), np.empty(words.size, np.float32)
        n_stored = count_words(words, rows, indptr, indices, counts)
        return np.diff(indptr), indices[:n_stored].copy(), counts[:n_stored].copy()

    drawn = list(ordered_map(draw_block, list(zip(blocks, rng.spawn(len(blocks)), strict=True))))
    stored, indices, counts = zip(*drawn, strict=True)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(stored))])
    return sp.csr_matrix((np.concatenate(counts), np.concatenate(indices), indptr), shape=(labels.size, n_features))
