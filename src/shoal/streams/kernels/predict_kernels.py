# mypy: ignore-errors
"""Asking about documents without learning from them: they stand in a window of their own."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.likelihood_kernels import gain_of, growth, prepare
from shoal.streams.kernels.visit_kernels import all_live
from shoal.streams.kernels.weight_kernels import log_ratio


@kernel
def score_query(clusters, tables, prior, links, status, query, scratch, i):
    """scores[:m] of every live cluster for document i of the query, a new cluster being 0; returns m."""
    t = query.docs[i].time
    scale = growth(status, t)
    prepare(prior, query, status, scratch, i)
    m = all_live(clusters, status, scratch)
    for x in range(m):
        c = scratch.candidates[x]
        p = links.record[c].last
        while p >= 0 and links.docs[p].time > t:
            p = links.docs[p].previous
        q = links.docs[p].next if p >= 0 else links.record[c].first
        score = log_ratio(links, status[0].kind, c, p, q, t, status[0].u_max, status[0].eps) - status[0].log_alpha
        scratch.scores[x] = score + gain_of(clusters, tables, prior, query, status, scratch, c, i, scale)
    return m


@kernel
def story_probabilities(clusters, tables, prior, links, status, query, scratch, i, column, out):
    """out[column of its story] += probability of each live cluster; the last column is a new cluster."""
    m = score_query(clusters, tables, prior, links, status, query, scratch, i)
    top = 0.0
    for x in range(m):
        top = max(top, scratch.scores[x])
    total = math.exp(-top)
    for x in range(m):
        total += math.exp(scratch.scores[x] - top)
    out[:] = 0.0
    for x in range(m):
        out[column[scratch.candidates[x]]] += math.exp(scratch.scores[x] - top) / total
    out[len(out) - 1] += math.exp(-top) / total


@kernel
def best_stories(clusters, tables, prior, links, status, query, n, scratch, column, row, best, log_prob):
    """For each of n documents the likeliest story's column and its log probability; row is work space."""
    for i in range(n):
        story_probabilities(clusters, tables, prior, links, status, query, scratch, i, column, row)
        choice = 0
        for x in range(1, len(row)):
            if row[x] > row[choice]:
                choice = x
        best[i] = choice
        log_prob[i] = math.log(row[choice])


@kernel
def all_probabilities(clusters, tables, prior, links, status, query, n, scratch, column, out):
    """out[i] over stories, and last a new cluster."""
    for i in range(n):
        story_probabilities(clusters, tables, prior, links, status, query, scratch, i, column, out[i])


@kernel
def own_gains(clusters, tables, prior, window, status, scratch, n_docs, out):
    """How well each document of the window fits the cluster it is in."""
    for i in range(n_docs):
        scale = growth(status, window.docs[i].time)
        prepare(prior, window, status, scratch, i)
        out[i] = gain_of(clusters, tables, prior, window, status, scratch, window.docs[i].slot, i, scale)
