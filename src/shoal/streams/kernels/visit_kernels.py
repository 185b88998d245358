# mypy: ignore-errors
"""Visiting a document: who could own it, how well does it fit, who gets it. Arrivals and sweeps share these steps."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.candidate_kernels import word_gains
from shoal.streams.kernels.likelihood_kernels import (
    add_document,
    gain_of,
    growth,
    length_gain,
    prepare,
)
from shoal.streams.kernels.table_kernels import forget_words, new_table, release_table, room_for
from shoal.streams.kernels.weight_kernels import link, log_ratio, unlink
from shoal.streams.state.arrays import (
    EVENTS,
    EXPONENTIAL,
    MIN_REPORTED_SIZE,
    MULTINOMIAL,
    NOTHING,
    POSTINGS,
    SLOTS,
    TABLES,
)

# a hair less, so that three messages at once count as three
LOG_MIN_REPORTED_SIZE = math.log(MIN_REPORTED_SIZE - 0.1)


@kernel
def open_cluster(clusters, tables, status, t, rate):
    """A free slot becomes a cluster with a new id."""
    status[0].n_free -= 1
    c = clusters.free[status[0].n_free]
    record = clusters.record[c]
    record.id = status[0].next_id
    status[0].next_id += 1
    record.n_members = record.n_terms = record.n_settled = record.stamp = record.size_class = record.pinned = 0
    record.first = record.last = record.here = -1
    record.table_start = new_table(tables, status, 0)
    record.live_at = status[0].n_live
    clusters.live[status[0].n_live] = c
    status[0].n_live += 1
    record.log_u = record.peak = record.base_time = record.bin_width = record.absent = 0.0
    record.rate = rate
    clusters.record[c].born = clusters.record[c].last_time = clusters.record[c].peak_time = t
    clusters.record[c].base_u = 1.0
    clusters.record[c].established_at = math.nan
    clusters.activity[c] = 0.0
    clusters.grid_u[c] = 0.0
    clusters.grid_log_w[c] = 0.0
    clusters.totals[c] = 0.0
    clusters.log_gamma[c] = 0.0
    clusters.log_unit[c] = 0.0
    clusters.moments[c] = 0.0
    return c


@kernel
def close_cluster(clusters, tables, postings, status, c):
    """The cluster leaves the index, and its slot is free again."""
    record = clusters.record
    forget_words(record, tables, postings, c)
    release_table(tables, record[c].size_class, record[c].table_start)
    at = record[c].live_at
    status[0].n_live -= 1
    other = clusters.live[status[0].n_live]
    clusters.live[at] = other
    record[other].live_at = at
    record[c].id = -1
    record[c].n_members = 0
    clusters.free[status[0].n_free] = c
    status[0].n_free += 1


@kernel
def enough_room(clusters, tables, postings, window, status, events, i):
    """Whether document i can be placed whatever it chooses; otherwise NEED says what to enlarge."""
    status[0].need = NOTHING
    if status[0].n_free < 1:
        status[0].need = SLOTS
    elif status[0].n_events >= len(events):
        status[0].need = EVENTS
    else:
        lack = room_for(tables, postings, status, window.features, window.starts[i], window.starts[i + 1])
        if lack > 0:
            status[0].need = TABLES if lack == 1 else POSTINGS
    return status[0].need == NOTHING


@kernel
def predecessor(links, c, i, stamp, fresh):
    """The last member of c before document i. In a sweep HERE follows the documents; it is sought once a sweep."""
    if fresh:
        p, t = links.record[c].last, links.docs[i].time
        while p >= 0 and links.docs[p].time > t:
            p = links.docs[p].previous
        return p
    if links.record[c].stamp != stamp:
        p = links.record[c].last
        while p > i:
            p = links.docs[p].previous
        links.record[c].here = p
        links.record[c].stamp = stamp
    return links.record[c].here


@kernel
def score_candidates(clusters, tables, prior, window, links, status, scratch, i, m, by_index, fresh):
    """scores[:m] of candidates[:m], relative to a new cluster at 0. by_index: word gains stand in scratch.gain."""
    t = window.docs[i].time
    scale = growth(status, t)
    for x in range(m):
        c = scratch.candidates[x]
        p = predecessor(links, c, i, status[0].stamp_now, fresh)
        q = links.docs[p].next if p >= 0 else links.record[c].first
        score = log_ratio(links, status[0].kind, c, p, q, t, status[0].u_max, status[0].eps) - status[0].log_alpha
        if by_index:
            score += scratch.gain[c] + length_gain(clusters, prior, window, scratch, c, i, scale)
        else:
            score += gain_of(clusters, tables, prior, window, status, scratch, c, i, scale)
        scratch.scores[x] = score


@kernel
def exact_scores(clusters, tables, postings, prior, window, links, status, scratch, i, m, fresh):
    """Exact scores of all candidates, by whichever is cheaper: their tables, or the words' posting lists."""
    by_index = False
    prepare(prior, window, status, scratch, i)
    if status[0].family == MULTINOMIAL:
        lo, hi = window.starts[i], window.starts[i + 1]
        n_entries = 0
        for entry in range(lo, hi):
            n_entries += postings.length[window.features[entry]]
        by_index = n_entries < 4 * m * (hi - lo)
    n_touched = 0
    if by_index:
        scale = growth(status, window.docs[i].time)
        for entry in range(window.starts[i], window.starts[i + 1]):
            n_touched = word_gains(postings, prior, window, scratch, window.starts[i], entry, n_touched, scale)
    score_candidates(clusters, tables, prior, window, links, status, scratch, i, m, by_index, fresh)
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
def take_out(clusters, tables, postings, prior, window, links, status, i):
    """Document i leaves its cluster; returns the slot (which may now be empty)."""
    c = window.docs[i].slot
    unlink(links, status[0].kind, c, i, status[0].tol)
    clusters.record[c].stamp = status[0].stamp_now
    add_document(clusters, tables, postings, prior, window, status, c, i, -1.0)
    return c


@kernel
def put_in(clusters, tables, postings, prior, window, links, status, c, i, fresh):
    """Document i joins slot c."""
    p = predecessor(links, c, i, status[0].stamp_now, fresh)
    link(links, status[0].kind, c, i, p, status[0].tol)
    window.docs[i].slot = c
    add_document(clusters, tables, postings, prior, window, status, c, i, 1.0)
    heavy = clusters.record[c].log_u if status[0].kind == EXPONENTIAL else math.log(clusters.record[c].n_members)
    if math.isnan(clusters.record[c].established_at) and heavy >= LOG_MIN_REPORTED_SIZE:
        clusters.record[c].established_at = window.docs[i].time
    if clusters.record[c].log_u > clusters.record[c].peak:
        clusters.record[c].peak = clusters.record[c].log_u
        clusters.record[c].peak_time = window.docs[i].time


@kernel
def add_background(prior, window, i):
    """The running background, from which new clusters take the shape of their prior."""
    for entry in range(window.starts[i], window.starts[i + 1]):
        feature = window.features[entry]
        prior.seen[feature] += window.counts[entry]
        prior.blocks[prior.block[feature]].mass += window.counts[entry]


@kernel
def all_live(clusters, status, scratch):
    m = status[0].n_live
    for x in range(m):
        scratch.candidates[x] = clusters.live[x]
    return m
