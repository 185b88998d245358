# mypy: ignore-errors
"""Passes over documents: arrivals, re-sampling of the window, record Gibbs sweeps, and settling what leaves it."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.candidate_kernels import indexed_candidates
from shoal.streams.kernels.visit_kernels import (
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
from shoal.streams.kernels.weight_kernels import carry_to, refresh_tail
from shoal.streams.state.arrays import (
    EXPONENTIAL,
    HISTORY_BINS,
)


@kernel
def arrive(
    clusters, tables, postings, prior, window, links, status, scratch, events,
    lo, hi, rate, budget, n_best, running, uniforms,
):  # fmt: skip
    """Give documents lo..hi-1 a cluster, one after another. Returns the first that did not fit (hi if all did).

    budget < 0 scores every live cluster; otherwise the index proposes n_best. A negative uniform takes the best.
    """
    status[0].stamp_now += 1
    for i in range(lo, hi):
        if not enough_room(clusters, tables, postings, window, status, events, i):
            return i
        if running:
            add_background(prior, window, i)
        if budget < 0:
            m = all_live(clusters, status, scratch)
            exact_scores(clusters, tables, postings, prior, window, links, status, scratch, i, m, True)
        else:
            m = indexed_candidates(clusters, tables, postings, prior, window, links, status, scratch, i, budget, n_best)
            score_candidates(clusters, tables, prior, window, links, status, scratch, i, m, False, True)
        choice = pick(scratch.scores, m, uniforms[i - lo])
        window.docs[i].margin = margin_of(scratch.scores, m, choice)
        if choice < 0:
            c = open_cluster(clusters, tables, status, window.docs[i].time, rate)
        else:
            c = scratch.candidates[choice]
        put_in(clusters, tables, postings, prior, window, links, status, c, i, True)
    return hi


@kernel
def place(
    clusters, tables, postings, prior, window, links, status, scratch, events, lo, hi, rate, labels, slots,
):  # fmt: skip
    """Put documents lo..hi-1 where the labels say; slots[label] is -1 until the label has a cluster."""
    status[0].stamp_now += 1
    for i in range(lo, hi):
        if not enough_room(clusters, tables, postings, window, status, events, i):
            return i
        if slots[labels[i]] < 0:
            slots[labels[i]] = open_cluster(clusters, tables, status, window.docs[i].time, rate)
        put_in(clusters, tables, postings, prior, window, links, status, slots[labels[i]], i, True)
    return hi


@kernel
def note_emptied(clusters, status, events, old, into):
    """A cluster lost its last document to another: the user's eyes saw a merge."""
    at = status[0].n_events
    events[at, 0], events[at, 1] = clusters.record[old].id, clusters.record[into].id
    status[0].n_events += 1


@kernel
def resample(
    clusters, tables, postings, prior, window, links, status, scratch, events,
    lo, hi, rate, budget, n_best, margin, births, uniforms,
):  # fmt: skip
    """One Gibbs pass over documents lo..hi-1 of the window, in time order; index or every live cluster as in arrive.

    Documents whose last choice won by more than `margin` nats keep it. Without births a document whose cluster has
    other members takes the best cluster there is.
    """
    for i in range(lo, hi):
        if window.docs[i].margin > margin:
            c = window.docs[i].slot
            if clusters.record[c].stamp == status[0].stamp_now:
                clusters.record[c].here = i
            continue
        if not enough_room(clusters, tables, postings, window, status, events, i):
            return i
        old = take_out(clusters, tables, postings, prior, window, links, status, i)
        empty = clusters.record[old].n_members == 0
        if budget < 0:
            m = all_live(clusters, status, scratch)
            if empty:
                m = leave_out(scratch, m, old)
            exact_scores(clusters, tables, postings, prior, window, links, status, scratch, i, m, False)
        else:
            m = indexed_candidates(clusters, tables, postings, prior, window, links, status, scratch, i, budget, n_best)
            m = leave_out(scratch, m, old)
            if not empty:
                scratch.candidates[m] = old
                m += 1
            score_candidates(clusters, tables, prior, window, links, status, scratch, i, m, False, False)
        choice = pick(scratch.scores, m, uniforms[i - lo])
        if choice < 0 and not empty and not births:
            choice = largest_score(scratch.scores, m)
        window.docs[i].margin = margin_of(scratch.scores, m, choice)
        if choice >= 0:
            c = scratch.candidates[choice]
            if empty:
                note_emptied(clusters, status, events, old, c)
                close_cluster(clusters, tables, postings, status, old)
        elif empty:
            c = old  # a cluster of its own again: it keeps its name
        else:
            c = open_cluster(clusters, tables, status, window.docs[i].time, rate)
            clusters.record[c].stamp = status[0].stamp_now
        put_in(clusters, tables, postings, prior, window, links, status, c, i, False)
    return hi


@kernel
def largest_score(scores, m):
    best = 0
    for x in range(1, m):
        if scores[x] > scores[best]:
            best = x
    return best


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
    clusters, tables, postings, prior, window, links, status, scratch, active, active_at,
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
        t = window.docs[i].time
        if not enough_room(clusters, tables, postings, window, status, scratch.scores, i):
            return n_written
        while progress[1] < hi and window.docs[progress[1]].time <= t + reach:
            enter(active, active_at, progress, window.docs[progress[1]].slot)
            progress[1] += 1
        old = take_out(clusters, tables, postings, prior, window, links, status, i)
        empty = clusters.record[old].n_members == 0
        m = 0
        x = 0
        while x < progress[2]:
            c = active[x]
            if c == old and empty:
                x += 1
            elif window.docs[links.record[c].last].time < t - reach:
                leave(active, active_at, progress, c)
            else:
                scratch.candidates[m] = c
                m += 1
                x += 1
        exact_scores(clusters, tables, postings, prior, window, links, status, scratch, i, m, False)
        if i == watched:
            n_written = write_conditional(clusters, scratch, m, log_probs, ids)
        choice = pick(scratch.scores, m, uniforms[i])
        if choice >= 0:
            c = scratch.candidates[choice]
            if empty:
                leave(active, active_at, progress, old)
                close_cluster(clusters, tables, postings, status, old)
        elif empty:
            c = old
        else:
            c = open_cluster(clusters, tables, status, t, rate)
            clusters.record[c].stamp = status[0].stamp_now
            enter(active, active_at, progress, c)
        put_in(clusters, tables, postings, prior, window, links, status, c, i, False)
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
        ids[x] = clusters.record[scratch.candidates[x]].id
    log_probs[m] = -log_total
    ids[m] = -1
    return m + 1


@kernel
def recompute(links, kind, live, n_live):
    """All sums over time from scratch, after the kernel's parameters have changed."""
    for x in range(n_live):
        c = live[x]
        if kind != 0:
            j = links.record[c].first
            while j >= 0:
                carry_to(links, kind, c, j)
                j = links.docs[j].next
        refresh_tail(links, kind, c)


@kernel
def settle(clusters, window, links, kind, upto, labels, slots):
    """Documents 0..upto-1 leave the window: each becomes part of its cluster's base. Needs them in time order."""
    for i in range(upto):
        c = window.docs[i].slot
        t = window.docs[i].time
        slots[i] = c
        labels[i] = clusters.record[c].id
        if kind == EXPONENTIAL:
            clusters.record[c].base_u = window.docs[i].u
        else:
            for q in range(links.waves.shape[1]):
                clusters.base_wave[c, q, 0] = window.doc_wave[i, q, 0]
                clusters.base_wave[c, q, 1] = window.doc_wave[i, q, 1]
        clusters.record[c].base_time = t
        clusters.record[c].n_settled += 1
        follower = window.docs[i].next
        clusters.record[c].first = follower
        if follower >= 0:
            window.docs[follower].previous = -1
        else:
            clusters.record[c].last = -1
        age_bin(clusters, c, t)


@kernel
def age_bin(clusters, c, t):
    """Count a member in the cluster's life; when the life outgrows its bins, pairs of bins become one."""
    age = t - clusters.record[c].born
    if age <= 0.0:
        clusters.activity[c, 0] += 1
        return
    if clusters.record[c].bin_width == 0.0:
        clusters.record[c].bin_width = age
    while age >= HISTORY_BINS * clusters.record[c].bin_width:
        for b in range(HISTORY_BINS):
            merged = clusters.activity[c, 2 * b] + clusters.activity[c, 2 * b + 1] if 2 * b < HISTORY_BINS else 0.0
            clusters.activity[c, b] = merged
        clusters.record[c].bin_width *= 2.0
    clusters.activity[c, int(age / clusters.record[c].bin_width)] += 1


@kernel
def shift_lists(clusters, status, window, n_docs, upto):
    """Renumber what points into the window after its first documents were taken off."""
    for i in range(n_docs):
        if window.docs[i].previous >= 0:
            window.docs[i].previous -= upto
        if window.docs[i].next >= 0:
            window.docs[i].next -= upto
    for x in range(status[0].n_live):
        c = clusters.live[x]
        if clusters.record[c].first >= 0:
            clusters.record[c].first -= upto
            clusters.record[c].last -= upto


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
