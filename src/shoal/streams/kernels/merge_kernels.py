# mypy: ignore-errors
"""Merging whole clusters where log P(labels | times) + log P(documents | labels) rises (batch inference)."""

import math

import numpy as np

from shoal.jit import kernel
from shoal.streams.kernels.candidate_kernels import keep_best
from shoal.streams.kernels.evidence_kernels import evidence_together, log_members, table_of
from shoal.streams.kernels.likelihood_kernels import log_gamma, pseudo_count, refresh_absent
from shoal.streams.kernels.table_kernels import add_term
from shoal.streams.kernels.visit_kernels import close_cluster
from shoal.streams.kernels.weight_kernels import carry_to, refresh_tail
from shoal.streams.state.arrays import BERNOULLI, GAUSSIAN, POSTINGS, SMALLEST_POSTING, SMALLEST_TABLE, TABLES


@kernel
def gather(links, a, b, order):
    """Documents of a (and of b, if b >= 0) in order of time; returns how many."""
    i, j, n = links.record[a].first, links.record[b].first if b >= 0 else -1, 0
    while i >= 0 or j >= 0:
        if j < 0 or (i >= 0 and i < j):
            order[n] = i
            i = links.docs[i].next
        else:
            order[n] = j
            j = links.docs[j].next
        n += 1
    return n


@kernel
def relink(links, kind, c, order, n):
    """Make these documents, in order of time, the members of cluster c."""
    before = -1
    links.record[c].first = order[0]
    for x in range(n):
        i = order[x]
        links.docs[i].slot = c
        links.docs[i].previous = before
        links.docs[i].next = order[x + 1] if x + 1 < n else -1
        carry_to(links, kind, c, i)
        before = i
    links.record[c].last = before
    links.record[c].here = -1
    links.record[c].stamp = -1
    links.record[c].n_members = n
    refresh_tail(links, kind, c)


@kernel
def refresh_totals(clusters, tables, prior, status, c):
    """What is kept of a cluster's totals."""
    for block in range(clusters.totals.shape[1]):
        strength = prior.blocks[block].strength
        clusters.log_gamma[c, block] = log_gamma(clusters.totals[c, block] + strength)
        clusters.log_unit[c, block] = math.log1p(clusters.totals[c, block] / strength)
    if status[0].family == BERNOULLI:
        refresh_absent(clusters, tables, prior, status, c)


@kernel
def room_for_words(clusters, tables, postings, status, c, n_terms):
    """Whether all words of c fit into another table with n_terms words; otherwise status.need says what does not."""
    start, size = table_of(clusters.record, c)
    need = 0
    for at in range(start, start + size):
        feature = tables.keys[at]
        if feature >= 0:
            size_class = postings.size_class[feature]
            if postings.length[feature] == SMALLEST_POSTING << size_class:
                need += SMALLEST_POSTING << (size_class + 1)
    if status[0].posting_top + need > len(postings.slot):
        status[0].need = POSTINGS
        return False
    if status[0].table_top + 16 * (clusters.record[c].n_terms + n_terms) + 8 * SMALLEST_TABLE > len(tables.keys):
        status[0].need = TABLES
        return False
    return True


@kernel
def join(clusters, tables, postings, prior, links, status, a, b, order):
    """Cluster a becomes part of b; the caller has checked that there is room."""
    n = gather(links, a, b, order)
    start, size = table_of(clusters.record, a)
    for at in range(start, start + size):
        if tables.keys[at] >= 0 and tables.counts[at] > 0.0:
            add_term(clusters.record, tables, postings, status, b, tables.keys[at], tables.counts[at])
    for block in range(clusters.totals.shape[1]):
        clusters.totals[b, block] += clusters.totals[a, block]
    for v in range(clusters.moments.shape[1]):
        clusters.moments[b, v, 0] += clusters.moments[a, v, 0]
        clusters.moments[b, v, 1] += clusters.moments[a, v, 1]
    clusters.record[b].born = min(clusters.record[b].born, clusters.record[a].born)
    relink(links, status[0].kind, b, order, n)
    refresh_totals(clusters, tables, prior, status, b)
    close_cluster(clusters, tables, postings, status, a)


@kernel
def shared_words(clusters, tables, postings, prior, status, scratch, c, budget):
    """Add to scratch.gain what each cluster's words in common with c promise, rarest words first within a budget.

    Returns (how many clusters were touched, the share of c's words that was looked at).
    """
    start, size = table_of(clusters.record, c)
    entries, rarity = np.empty(size, np.int64), np.empty(size)
    n = 0
    for at in range(start, start + size):
        if tables.keys[at] >= 0 and tables.counts[at] > 0.0:
            entries[n] = at
            rarity[n] = postings.length[tables.keys[at]] / tables.counts[at]
            n += 1
    used, n_touched, looked, total = 0, 0, 0.0, 0.0
    for place in np.argsort(rarity[:n]):
        at = entries[place]
        feature, x = tables.keys[at], float(tables.counts[at])
        total += x
        if used > 0 and used + postings.length[feature] > budget:
            continue
        used += postings.length[feature]
        looked += x
        block = prior.block[feature]
        base = pseudo_count(prior.seen, prior.blocks, status[0].floor, feature, block)
        weight = prior.blocks[block].evidence_weight
        for entry in range(postings.start[feature], postings.start[feature] + postings.length[feature]):
            k, y = postings.slot[entry], float(postings.amount[entry])
            if k == c or y <= 0.0:
                continue
            if scratch.gain[k] == 0.0:
                scratch.touched[n_touched] = k
                n_touched += 1
            low = min(x, y)
            # log_rising(max, base, low) to within a few per cent, and above 0 in any case
            scratch.gain[k] += weight * low * math.log(1.0 + max(x, y) / (base + 0.5 * (low - 1.0))) + 1e-12
    return n_touched, looked / total if total > 0.0 else 1.0


@kernel
def partners(clusters, tables, postings, prior, status, scratch, c, budget, n_best):
    """candidates[:m]: the clusters that promise most from a merge with c."""
    m = 0
    if status[0].family == GAUSSIAN:
        for x in range(status[0].n_live):
            k = clusters.live[x]
            if k != c:
                apart = 0.0
                for v in range(clusters.moments.shape[1]):
                    one = clusters.moments[c, v, 0] / clusters.record[c].n_members
                    other = clusters.moments[k, v, 0] / clusters.record[k].n_members
                    apart += (one - other) ** 2 / prior.gaussian[v, 3]
                m = keep_best(scratch.scores, scratch.candidates, m, n_best, -apart, k)
        return m
    n_touched, share = shared_words(clusters, tables, postings, prior, status, scratch, c, budget)
    for x in range(n_touched):
        k = scratch.touched[x]
        score = scratch.gain[k]
        scratch.gain[k] = 0.0
        for block in range(prior.blocks.shape[0]):
            strength = prior.blocks[block].strength
            a, b = clusters.totals[c, block], clusters.totals[k, block]
            more = log_gamma(strength + a) + log_gamma(strength + b) - log_gamma(strength) - log_gamma(strength + a + b)
            score += share * prior.blocks[block].evidence_weight * more
        m = keep_best(scratch.scores, scratch.candidates, m, n_best, score, k)
    return m


@kernel
def merge_gain(clusters, tables, prior, links, status, a, b, wave):
    """By how much the log joint grows when a and b become one."""
    kind = status[0].kind
    gain = evidence_together(clusters, tables, prior, status, a, b) - status[0].log_alpha
    gain += log_members(links, kind, a, b, wave)
    return gain - log_members(links, kind, a, -1, wave) - log_members(links, kind, b, -1, wave)


@kernel
def merge_pass(clusters, tables, postings, prior, links, status, scratch, queue, at, limits, order, won):
    """Each of these clusters joins the best of its partners if the log joint rises; won[:2] counts merges and nats.

    Returns the next cluster to look at: len(slots) when done, earlier when status.need has to be enlarged first.
    """
    slots, ids = queue
    budget, n_best = limits
    wave = np.zeros((links.waves.shape[1], 2))
    while at < len(slots):
        c = slots[at]
        if clusters.record[c].id != ids[at]:  # it has been merged in the meantime
            at += 1
            continue
        m = partners(clusters, tables, postings, prior, status, scratch, c, budget, n_best)
        top, into = 1e-9, -1
        for x in range(m):
            gain = merge_gain(clusters, tables, prior, links, status, c, scratch.candidates[x], wave)
            if gain > top:
                top, into = gain, scratch.candidates[x]
        if into >= 0:
            if clusters.record[c].n_terms > clusters.record[into].n_terms:
                c, into = into, c
            if not room_for_words(clusters, tables, postings, status, c, clusters.record[into].n_terms):
                return at
            join(clusters, tables, postings, prior, links, status, c, into, order)
            won[0] += 1.0
            won[1] += top
        at += 1
    return at
