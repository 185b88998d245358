# mypy: ignore-errors
"""Visiting a document: who could own it, how well does it fit, who gets it. Arrivals and sweeps share these steps."""

import math

from shoal.jit import kernel
from shoal.streams.candidate_kernels import word_gains
from shoal.streams.likelihood_kernels import (
    add_document,
    gain_of,
    growth,
    length_gain,
    prepare,
)
from shoal.streams.state import (
    BASE_U,
    BORN,
    COUNT,
    EPS,
    EVENTS,
    EXPONENTIAL,
    FAMILY,
    FIRST,
    HERE,
    ID,
    KIND,
    LAST,
    LAST_TIME,
    LIVE_AT,
    LOG_ALPHA,
    LOG_U,
    MASS,
    MULTINOMIAL,
    N_BASE,
    N_EVENTS,
    N_FREE,
    N_LIVE,
    N_TERMS,
    NEED,
    NEXT,
    NEXT_ID,
    NOTHING,
    PEAK,
    PEAK_TIME,
    PINNED,
    POSTINGS,
    PREV,
    RATE,
    ROSE,
    SIZE_CLASS,
    SLOT,
    SLOTS,
    STAMP,
    STAMP_NOW,
    START,
    TABLES,
    TIME,
    TOL,
    U_MAX,
    WORTH_TELLING,
)
from shoal.streams.table_kernels import forget_words, new_table, release_table, room_for
from shoal.streams.weight_kernels import link, log_ratio, unlink

# a hair less, so that three messages at once count as three
LOG_WORTH_TELLING = math.log(WORTH_TELLING - 0.1)


@kernel
def open_cluster(clusters, tables, counters, t, rate):
    """A free slot becomes a cluster with a new id."""
    counters[N_FREE] -= 1
    c = clusters.free[counters[N_FREE]]
    whole = clusters.whole[c]
    whole[ID] = counters[NEXT_ID]
    counters[NEXT_ID] += 1
    whole[COUNT] = whole[N_TERMS] = whole[N_BASE] = whole[STAMP] = whole[SIZE_CLASS] = whole[PINNED] = 0
    whole[FIRST] = whole[LAST] = whole[HERE] = -1
    whole[START] = new_table(tables, counters, 0)
    whole[LIVE_AT] = counters[N_LIVE]
    clusters.live[counters[N_LIVE]] = c
    counters[N_LIVE] += 1
    clusters.real[c] = 0.0
    clusters.real[c, RATE] = rate
    clusters.real[c, BORN] = clusters.real[c, LAST_TIME] = clusters.real[c, PEAK_TIME] = t
    clusters.real[c, BASE_U] = 1.0
    clusters.real[c, ROSE] = math.nan
    clusters.life[c] = 0.0
    clusters.grid_u[c] = 0.0
    clusters.grid_log_w[c] = 0.0
    clusters.totals[c] = 0.0
    clusters.log_gamma[c] = 0.0
    clusters.log_unit[c] = 0.0
    clusters.moments[c] = 0.0
    return c


@kernel
def close_cluster(clusters, tables, postings, counters, c):
    """The cluster leaves the index, and its slot is free again."""
    whole = clusters.whole
    forget_words(whole, tables, postings, c)
    release_table(tables, whole[c, SIZE_CLASS], whole[c, START])
    at = whole[c, LIVE_AT]
    counters[N_LIVE] -= 1
    other = clusters.live[counters[N_LIVE]]
    clusters.live[at] = other
    whole[other, LIVE_AT] = at
    whole[c, ID] = -1
    whole[c, COUNT] = 0
    clusters.free[counters[N_FREE]] = c
    counters[N_FREE] += 1


@kernel
def enough_room(clusters, tables, postings, window, counters, events, i):
    """Whether document i can be placed whatever it chooses; otherwise NEED says what to enlarge."""
    counters[NEED] = NOTHING
    if counters[N_FREE] < 1:
        counters[NEED] = SLOTS
    elif counters[N_EVENTS] >= len(events):
        counters[NEED] = EVENTS
    else:
        lack = room_for(tables, postings, counters, window.features, window.starts[i], window.starts[i + 1])
        if lack > 0:
            counters[NEED] = TABLES if lack == 1 else POSTINGS
    return counters[NEED] == NOTHING


@kernel
def predecessor(links, c, i, stamp, fresh):
    """The last member of c before document i. In a sweep HERE follows the documents; it is sought once a sweep."""
    if fresh:
        p, t = links.whole[c, LAST], links.doc_real[i, TIME]
        while p >= 0 and links.doc_real[p, TIME] > t:
            p = links.doc[p, PREV]
        return p
    if links.whole[c, STAMP] != stamp:
        p = links.whole[c, LAST]
        while p > i:
            p = links.doc[p, PREV]
        links.whole[c, HERE] = p
        links.whole[c, STAMP] = stamp
    return links.whole[c, HERE]


@kernel
def score_candidates(clusters, tables, prior, window, links, counters, numbers, scratch, i, m, by_index, fresh):
    """scores[:m] of candidates[:m], relative to a new cluster at 0. by_index: word gains stand in scratch.gain."""
    t = window.doc_real[i, TIME]
    scale = growth(numbers, t)
    for x in range(m):
        c = scratch.candidates[x]
        p = predecessor(links, c, i, counters[STAMP_NOW], fresh)
        q = links.doc[p, NEXT] if p >= 0 else links.whole[c, FIRST]
        score = log_ratio(links, counters[KIND], c, p, q, t, numbers[U_MAX], numbers[EPS]) - numbers[LOG_ALPHA]
        if by_index:
            score += scratch.gain[c] + length_gain(clusters, prior, window, scratch, c, i, scale)
        else:
            score += gain_of(clusters, tables, prior, window, counters, numbers, scratch, c, i, scale)
        scratch.scores[x] = score


@kernel
def exact_scores(clusters, tables, postings, prior, window, links, counters, numbers, scratch, i, m, fresh):
    """Exact scores of all candidates, by whichever is cheaper: their tables, or the words' posting lists."""
    by_index = False
    prepare(prior, window, numbers, scratch, i)
    if counters[FAMILY] == MULTINOMIAL:
        lo, hi = window.starts[i], window.starts[i + 1]
        n_entries = 0
        for entry in range(lo, hi):
            n_entries += postings.length[window.features[entry]]
        by_index = n_entries < 4 * m * (hi - lo)
    n_touched = 0
    if by_index:
        scale = growth(numbers, window.doc_real[i, TIME])
        for entry in range(window.starts[i], window.starts[i + 1]):
            n_touched = word_gains(postings, prior, window, scratch, window.starts[i], entry, n_touched, scale)
    score_candidates(clusters, tables, prior, window, links, counters, numbers, scratch, i, m, by_index, fresh)
    for x in range(n_touched):
        scratch.gain[scratch.touched[x]] = 0.0


@kernel
def pick(scores, m, uniform):
    """A candidate drawn by its score, -1 for a new cluster; the best one if uniform is negative."""
    top, best = 0.0, -1
    for x in range(m):
        if scores[x] > top:
            top, best = scores[x], x
    if uniform < 0.0:
        return best
    total = math.exp(-top)
    for x in range(m):
        total += math.exp(scores[x] - top)
    rest = uniform * total - math.exp(-top)
    if rest < 0.0:
        return -1
    for x in range(m):
        rest -= math.exp(scores[x] - top)
        if rest < 0.0:
            return x
    return best


@kernel
def margin_of(scores, m, choice):
    """By how many nats the choice beats every other candidate; a cluster that has just begun is never sure."""
    if choice < 0:
        return 0.0
    other = 0.0
    for x in range(m):
        if x != choice:
            other = max(other, scores[x])
    return scores[choice] - other


@kernel
def take_out(clusters, tables, postings, prior, window, links, counters, numbers, i):
    """Document i leaves its cluster; returns the slot (which may now be empty)."""
    c = window.doc[i, SLOT]
    unlink(links, counters[KIND], c, i, numbers[TOL])
    clusters.whole[c, STAMP] = counters[STAMP_NOW]
    add_document(clusters, tables, postings, prior, window, counters, numbers, c, i, -1.0)
    return c


@kernel
def put_in(clusters, tables, postings, prior, window, links, counters, numbers, c, i, fresh):
    """Document i joins slot c."""
    p = predecessor(links, c, i, counters[STAMP_NOW], fresh)
    link(links, counters[KIND], c, i, p, numbers[TOL])
    window.doc[i, SLOT] = c
    add_document(clusters, tables, postings, prior, window, counters, numbers, c, i, 1.0)
    heavy = clusters.real[c, LOG_U] if counters[KIND] == EXPONENTIAL else math.log(clusters.whole[c, COUNT])
    if math.isnan(clusters.real[c, ROSE]) and heavy >= LOG_WORTH_TELLING:
        clusters.real[c, ROSE] = window.doc_real[i, TIME]
    if clusters.real[c, LOG_U] > clusters.real[c, PEAK]:
        clusters.real[c, PEAK] = clusters.real[c, LOG_U]
        clusters.real[c, PEAK_TIME] = window.doc_real[i, TIME]


@kernel
def add_background(prior, window, i):
    """The running background, from which new clusters take the shape of their prior."""
    for entry in range(window.starts[i], window.starts[i + 1]):
        feature = window.features[entry]
        prior.seen[feature] += window.counts[entry]
        prior.block_real[prior.block[feature], MASS] += window.counts[entry]


@kernel
def all_live(clusters, counters, scratch):
    m = counters[N_LIVE]
    for x in range(m):
        scratch.candidates[x] = clusters.live[x]
    return m
