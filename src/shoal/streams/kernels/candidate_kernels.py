# mypy: ignore-errors
"""Which clusters could own a document: the index from words to clusters proposes a few."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.likelihood_kernels import growth, log_rising, prepare
from shoal.streams.kernels.weight_kernels import log_weight
from shoal.streams.state.arrays import (
    EXPONENTIAL,
)

HOPELESS = 30.0  # nats behind the best by the quick score: not worth an exact one
N_PARTS = 4  # the budget of index entries is spent in so many parts


@kernel
def posting_gains(postings, gain, touched, feature, amount, base, weight, n_touched, scale):
    """Add the gain of one word to every live cluster that holds it."""
    # taken out of their tuple once: in the loop each look into a tuple would count references
    slots, amounts = postings.slot, postings.amount
    start = postings.start[feature]
    once, per_count = amount == 1.0, 1.0 / (scale * base)
    for at in range(start, start + postings.length[feature]):
        slot, count = slots[at], float(amounts[at])
        ratio = math.log(1.0 + count * per_count) if once else log_rising(count / scale, base, amount)
        # A word whose count fell to 0 gains 0, but a difference of log Gammas may round to -1e-15. A gain below 0
        # would not be noted in `touched`, never be cleared, and gather the gains of every later document.
        more = max(0.0, weight * ratio)
        # no branch: whether a cluster was met before is a coin that no processor can guess
        had = gain[slot]
        touched[n_touched] = slot
        n_touched += (had == 0.0) & (more > 0.0)
        gain[slot] = had + more
    return n_touched


@kernel
def word_gains(postings, prior, window, scratch, first, entry, n_touched, scale):
    """posting_gains of one entry of a prepared document whose entries begin at first."""
    feature = window.features[entry]
    return posting_gains(
        postings,
        scratch.gain,
        scratch.touched,
        feature,
        float(window.counts[entry]),
        scratch.bases[entry - first],
        prior.blocks[prior.block[feature]].evidence_weight,
        n_touched,
        scale,
    )


@kernel
def sort_rare_first(postings, window, scratch, i):
    """The document's entries in the order of their posting lists' lengths."""
    lo, hi = window.starts[i], window.starts[i + 1]
    features, n_clusters, order, lengths = window.features, postings.length, scratch.order, scratch.lengths
    for x in range(hi - lo):
        n, y = n_clusters[features[lo + x]], x - 1
        while y >= 0 and lengths[y] > n:
            order[y + 1] = order[y]
            lengths[y + 1] = lengths[y]
            y -= 1
        order[y + 1] = lo + x
        lengths[y + 1] = n
    return hi - lo


@kernel
def tail_log_weight(links, kind, c, t):
    """log w(t, c) from the cluster's last member, cheaply."""
    if kind == EXPONENTIAL:
        return links.record[c].log_u - links.record[c].rate * max(0.0, t - links.record[c].last_time)
    return log_weight(links, kind, c, links.record[c].last, t)


@kernel
def indexed_candidates(clusters, tables, postings, prior, window, links, status, scratch, i, budget, n_best):
    """The n_best clusters by a quick score over the document's rarest words, within a budget of posting entries.

    Where a part of the budget already shows one cluster far ahead of all others and of a new one, it ends there.
    """
    prepare(prior, window, status, scratch, i)
    scale = growth(status, window.docs[i].time)
    n_words = sort_rare_first(postings, window, scratch, i)
    total = 0.0
    for block in range(window.lengths.shape[1]):
        total += window.lengths[i, block]
    order, lengths, gain, touched = scratch.order, scratch.lengths, scratch.gain, scratch.touched
    x, used, n_touched, looked, m = 0, 0, 0, 0.0, 0
    for part in range(1, N_PARTS + 1):
        before = x
        while x < n_words and (x == 0 or used + lengths[x] <= budget * part // N_PARTS):
            used += lengths[x]
            looked += window.counts[order[x]]
            n_touched = word_gains(postings, prior, window, scratch, window.starts[i], order[x], n_touched, scale)
            x += 1
        if x > before:
            fraction = looked / total if total > 0.0 else 1.0
            m = best_touched(clusters, prior, window, links, status, scratch, i, n_touched, fraction, scale, n_best)
            if m == 1 and scratch.scores[0] > status[0].log_alpha + HOPELESS:
                break
    for x in range(n_touched):
        gain[touched[x]] = 0.0
    return m


@kernel
def best_touched(clusters, prior, window, links, status, scratch, i, n_touched, fraction, scale, n_best):
    """The n_best of the clusters that hold some of the words looked at, less those without hope; in falling order."""
    t = window.docs[i].time
    # what a word that does not match costs, times the words looked at
    words = prior.blocks[0].evidence_weight * fraction * window.lengths[i, 0]
    touched, gain, scores, candidates = scratch.touched, scratch.gain, scratch.scores, scratch.candidates
    record, log_unit = clusters.record, clusters.log_unit
    simple = status[0].kind == EXPONENTIAL and scale == 1.0 and window.lengths.shape[1] == 1
    m = 0
    for x in range(n_touched):
        c = touched[x]
        if simple:
            score = gain[c] + record[c].log_u - record[c].rate * max(0.0, t - record[c].last_time)
            score -= words * log_unit[c, 0]
        else:
            score = gain[c] + tail_log_weight(links, status[0].kind, c, t)
            score -= length_cost(clusters, prior, window, c, i, scale, fraction)
        m = keep_best(scores, candidates, m, n_best, score, c)
    while m > 1 and scores[m - 1] < scores[0] - HOPELESS:
        m -= 1
    return m


@kernel
def length_cost(clusters, prior, window, c, i, scale, fraction):
    cost = 0.0
    for block in range(window.lengths.shape[1]):
        unit = clusters.log_unit[c, block]
        if scale != 1.0:
            unit = math.log1p(clusters.totals[c, block] / (scale * prior.blocks[block].strength))
        cost += prior.blocks[block].evidence_weight * fraction * window.lengths[i, block] * unit
    return cost


@kernel
def keep_best(scores, candidates, m, n_best, score, c):
    """Keep the n_best scores in falling order; returns how many there are."""
    if m < n_best:
        y = m
        m += 1
    elif score > scores[n_best - 1]:
        y = n_best - 1
    else:
        return m
    while y > 0 and scores[y - 1] < score:
        scores[y] = scores[y - 1]
        candidates[y] = candidates[y - 1]
        y -= 1
    scores[y] = score
    candidates[y] = c
    return m
