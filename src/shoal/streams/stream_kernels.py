# mypy: ignore-errors
"""Passes over documents: arrivals, re-sampling of the window, whole Gibbs sweeps, and settling what leaves it."""

import math

from shoal.jit import kernel
from shoal.streams.candidate_kernels import indexed_candidates
from shoal.streams.state import (
    BASE_TIME,
    BASE_U,
    BIN_WIDTH,
    BORN,
    COUNT,
    EXPONENTIAL,
    FIRST,
    HERE,
    ID,
    LAST,
    LIFE_BINS,
    MARGIN,
    N_BASE,
    N_EVENTS,
    NEXT,
    PREV,
    SLOT,
    STAMP,
    STAMP_NOW,
    TIME,
    U,
)
from shoal.streams.visit_kernels import (
    add_background,
    all_live,
    close_cluster,
    enough_room,
    exact_scores,
    margin_of,
    open_cluster,
    pick,
    put_in,
    score_candidates,
    take_out,
)
from shoal.streams.weight_kernels import carry_to, refresh_tail


@kernel
def arrive(
    clusters, tables, postings, prior, window, links, counters, numbers, scratch, events,
    lo, hi, rate, budget, n_best, running, uniforms,
):  # fmt: skip
    """Give documents lo..hi-1 a cluster, one after another. Returns the first that did not fit (hi if all did).

    budget < 0 scores every live cluster; otherwise the index proposes n_best. A negative uniform takes the best.
    """
    counters[STAMP_NOW] += 1
    for i in range(lo, hi):
        if not enough_room(clusters, tables, postings, window, counters, events, i):
            return i
        if running:
            add_background(prior, window, i)
        if budget < 0:
            m = all_live(clusters, counters, scratch)
            exact_scores(clusters, tables, postings, prior, window, links, counters, numbers, scratch, i, m, True)
        else:
            m = indexed_candidates(
                clusters, tables, postings, prior, window, links, counters, numbers, scratch, i, budget, n_best
            )
            score_candidates(clusters, tables, prior, window, links, counters, numbers, scratch, i, m, False, True)
        choice = pick(scratch.scores, m, uniforms[i - lo])
        window.doc_real[i, MARGIN] = margin_of(scratch.scores, m, choice)
        if choice < 0:
            c = open_cluster(clusters, tables, counters, window.doc_real[i, TIME], rate)
        else:
            c = scratch.candidates[choice]
        put_in(clusters, tables, postings, prior, window, links, counters, numbers, c, i, True)
    return hi


@kernel
def place(
    clusters, tables, postings, prior, window, links, counters, numbers, scratch, events, lo, hi, rate, labels, slots,
):  # fmt: skip
    """Put documents lo..hi-1 where the labels say; slots[label] is -1 until the label has a cluster."""
    counters[STAMP_NOW] += 1
    for i in range(lo, hi):
        if not enough_room(clusters, tables, postings, window, counters, events, i):
            return i
        if slots[labels[i]] < 0:
            slots[labels[i]] = open_cluster(clusters, tables, counters, window.doc_real[i, TIME], rate)
        put_in(clusters, tables, postings, prior, window, links, counters, numbers, slots[labels[i]], i, True)
    return hi


@kernel
def note_emptied(clusters, counters, events, old, into):
    """A cluster lost its last document to another: the user's eyes saw a merge."""
    at = counters[N_EVENTS]
    events[at, 0], events[at, 1] = clusters.whole[old, ID], clusters.whole[into, ID]
    counters[N_EVENTS] += 1


@kernel
def resample(
    clusters, tables, postings, prior, window, links, counters, numbers, scratch, events,
    lo, hi, rate, budget, n_best, sure, uniforms,
):  # fmt: skip
    """One Gibbs pass over documents lo..hi-1 of the window, in time order; index or every live cluster as in arrive.

    Documents whose last choice won by more than `sure` nats keep it.
    """
    for i in range(lo, hi):
        if window.doc_real[i, MARGIN] > sure:
            c = window.doc[i, SLOT]
            if clusters.whole[c, STAMP] == counters[STAMP_NOW]:
                clusters.whole[c, HERE] = i
            continue
        if not enough_room(clusters, tables, postings, window, counters, events, i):
            return i
        old = take_out(clusters, tables, postings, prior, window, links, counters, numbers, i)
        empty = clusters.whole[old, COUNT] == 0
        if budget < 0:
            m = all_live(clusters, counters, scratch)
            if empty:
                m = leave_out(scratch, m, old)
            exact_scores(clusters, tables, postings, prior, window, links, counters, numbers, scratch, i, m, False)
        else:
            m = indexed_candidates(
                clusters, tables, postings, prior, window, links, counters, numbers, scratch, i, budget, n_best
            )
            m = leave_out(scratch, m, old)
            if not empty:
                scratch.candidates[m] = old
                m += 1
            score_candidates(clusters, tables, prior, window, links, counters, numbers, scratch, i, m, False, False)
        choice = pick(scratch.scores, m, uniforms[i - lo])
        window.doc_real[i, MARGIN] = margin_of(scratch.scores, m, choice)
        if choice >= 0:
            c = scratch.candidates[choice]
            if empty:
                note_emptied(clusters, counters, events, old, c)
                close_cluster(clusters, tables, postings, counters, old)
        elif empty:
            c = old  # a cluster of its own again: it keeps its name
        else:
            c = open_cluster(clusters, tables, counters, window.doc_real[i, TIME], rate)
            clusters.whole[c, STAMP] = counters[STAMP_NOW]
        put_in(clusters, tables, postings, prior, window, links, counters, numbers, c, i, False)
    return hi


@kernel
def leave_out(scratch, m, slot):
    """candidates without this slot."""
    for x in range(m):
        if scratch.candidates[x] == slot:
            scratch.candidates[x] = scratch.candidates[m - 1]
            return m - 1
    return m


@kernel
def gibbs(
    clusters, tables, postings, prior, window, links, counters, numbers, scratch, active, active_at,
    progress, hi, rate, reach, uniforms, watched, log_probs, ids,
):  # fmt: skip
    """A sweep over all documents. Candidates: every cluster with a member within reach before and after.

    progress holds [next document, next to come within reach, active clusters], so that a sweep stopped for want of room
    goes on where it was. The conditional of the watched document is written to log_probs and ids (-1: new).
    Returns the number of candidates written.
    """
    n_written = 0
    while progress[0] < hi:
        i = progress[0]
        t = window.doc_real[i, TIME]
        if not enough_room(clusters, tables, postings, window, counters, scratch.scores, i):
            return n_written
        while progress[1] < hi and window.doc_real[progress[1], TIME] <= t + reach:
            enter(active, active_at, progress, window.doc[progress[1], SLOT])
            progress[1] += 1
        old = take_out(clusters, tables, postings, prior, window, links, counters, numbers, i)
        empty = clusters.whole[old, COUNT] == 0
        m = 0
        x = 0
        while x < progress[2]:
            c = active[x]
            if c == old and empty:
                x += 1
            elif window.doc_real[links.whole[c, LAST], TIME] < t - reach:
                leave(active, active_at, progress, c)
            else:
                scratch.candidates[m] = c
                m += 1
                x += 1
        exact_scores(clusters, tables, postings, prior, window, links, counters, numbers, scratch, i, m, False)
        if i == watched:
            n_written = write_conditional(clusters, scratch, m, log_probs, ids)
        choice = pick(scratch.scores, m, uniforms[i])
        if choice >= 0:
            c = scratch.candidates[choice]
            if empty:
                leave(active, active_at, progress, old)
                close_cluster(clusters, tables, postings, counters, old)
        elif empty:
            c = old
        else:
            c = open_cluster(clusters, tables, counters, t, rate)
            clusters.whole[c, STAMP] = counters[STAMP_NOW]
            enter(active, active_at, progress, c)
        put_in(clusters, tables, postings, prior, window, links, counters, numbers, c, i, False)
        progress[0] += 1
    return n_written


@kernel
def enter(active, active_at, progress, c):
    if active_at[c] < 0:
        active[progress[2]] = c
        active_at[c] = progress[2]
        progress[2] += 1


@kernel
def leave(active, active_at, progress, c):
    at = active_at[c]
    if at >= 0:
        progress[2] -= 1
        other = active[progress[2]]
        active[at] = other
        active_at[other] = at
        active_at[c] = -1


@kernel
def write_conditional(clusters, scratch, m, log_probs, ids):
    top = 0.0
    for x in range(m):
        top = max(top, scratch.scores[x])
    total = math.exp(-top)
    for x in range(m):
        total += math.exp(scratch.scores[x] - top)
    log_total = top + math.log(total)
    for x in range(m):
        log_probs[x] = scratch.scores[x] - log_total
        ids[x] = clusters.whole[scratch.candidates[x], ID]
    log_probs[m] = -log_total
    ids[m] = -1
    return m + 1


@kernel
def recompute(links, kind, live, n_live):
    """All sums over time from scratch, after the kernel's parameters have changed."""
    for x in range(n_live):
        c = live[x]
        if kind != 0:
            j = links.whole[c, FIRST]
            while j >= 0:
                carry_to(links, kind, c, j)
                j = links.doc[j, NEXT]
        refresh_tail(links, kind, c)


@kernel
def settle(clusters, window, links, kind, upto, labels, slots):
    """Documents 0..upto-1 leave the window: each becomes part of its cluster's base. Needs them in time order."""
    for i in range(upto):
        c = window.doc[i, SLOT]
        t = window.doc_real[i, TIME]
        slots[i] = c
        labels[i] = clusters.whole[c, ID]
        if kind == EXPONENTIAL:
            clusters.real[c, BASE_U] = window.doc_real[i, U]
        else:
            for q in range(links.waves.shape[1]):
                clusters.base_wave[c, q, 0] = window.doc_wave[i, q, 0]
                clusters.base_wave[c, q, 1] = window.doc_wave[i, q, 1]
        clusters.real[c, BASE_TIME] = t
        clusters.whole[c, N_BASE] += 1
        follower = window.doc[i, NEXT]
        clusters.whole[c, FIRST] = follower
        if follower >= 0:
            window.doc[follower, PREV] = -1
        else:
            clusters.whole[c, LAST] = -1
        age_bin(clusters, c, t)


@kernel
def age_bin(clusters, c, t):
    """Count a member in the cluster's life; when the life outgrows its bins, pairs of bins become one."""
    age = t - clusters.real[c, BORN]
    if age <= 0.0:
        clusters.life[c, 0] += 1
        return
    if clusters.real[c, BIN_WIDTH] == 0.0:
        clusters.real[c, BIN_WIDTH] = age
    while age >= LIFE_BINS * clusters.real[c, BIN_WIDTH]:
        for b in range(LIFE_BINS):
            merged = clusters.life[c, 2 * b] + clusters.life[c, 2 * b + 1] if 2 * b < LIFE_BINS else 0.0
            clusters.life[c, b] = merged
        clusters.real[c, BIN_WIDTH] *= 2.0
    clusters.life[c, int(age / clusters.real[c, BIN_WIDTH])] += 1


@kernel
def shift_lists(clusters, counters, window, n_docs, upto):
    """Renumber what points into the window after its first documents were taken off."""
    for i in range(n_docs):
        if window.doc[i, PREV] >= 0:
            window.doc[i, PREV] -= upto
        if window.doc[i, NEXT] >= 0:
            window.doc[i, NEXT] -= upto
    for x in range(counters[0]):
        c = clusters.live[x]
        if clusters.whole[c, FIRST] >= 0:
            clusters.whole[c, FIRST] -= upto
            clusters.whole[c, LAST] -= upto


@kernel
def largest_total(times, rate):
    """max_i T_i, the sum of the kernel over all earlier documents: it bounds every cluster's weight."""
    total = most = 0.0
    for i in range(1, len(times)):
        total = (total + 1.0) * math.exp(-rate * max(0.0, times[i] - times[i - 1]))
        most = max(most, total)
    return most


@kernel
def same_pairs(labels, out):
    """out[i, j] += 1 where items i and j share a cluster."""
    n = len(labels)
    for i in range(n):
        for j in range(n):
            if labels[i] == labels[j]:
                out[i, j] += 1.0
