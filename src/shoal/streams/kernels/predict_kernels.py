# mypy: ignore-errors
"""Asking about documents without learning from them."""

import math

from shoal.jit import kernel
from shoal.streams.kernels.likelihood_kernels import gain_of, growth, prepare
from shoal.streams.kernels.visit_kernels import all_live, pick, score_candidates


@kernel
def score_only(clusters, tables, prior, window, links, status, scratch, lo, hi, best, log_prob):
    """For documents that are only asked about: the best live slot (-1: a new cluster) and its log probability."""
    for i in range(lo, hi):
        prepare(prior, window, status, scratch, i)
        m = all_live(clusters, status, scratch)
        score_candidates(clusters, tables, prior, window, links, status, scratch, i, m, False, True)
        choice = pick(scratch.scores, m, -1.0)
        top = scratch.scores[choice] if choice >= 0 else 0.0
        total = math.exp(-top)
        for x in range(m):
            total += math.exp(scratch.scores[x] - top)
        best[i - lo] = scratch.candidates[choice] if choice >= 0 else -1
        log_prob[i - lo] = -math.log(total)


@kernel
def all_probabilities(clusters, tables, prior, window, links, status, scratch, lo, hi, out):
    """out[i] over the live slots in order, and last a new cluster."""
    for i in range(lo, hi):
        prepare(prior, window, status, scratch, i)
        m = all_live(clusters, status, scratch)
        score_candidates(clusters, tables, prior, window, links, status, scratch, i, m, False, True)
        top = 0.0
        for x in range(m):
            top = max(top, scratch.scores[x])
        total = math.exp(-top)
        for x in range(m):
            total += math.exp(scratch.scores[x] - top)
        for x in range(m):
            out[i - lo, x] = math.exp(scratch.scores[x] - top) / total
        out[i - lo, m] = math.exp(-top) / total


@kernel
def own_gains(clusters, tables, prior, window, status, scratch, n_docs, out):
    """How well each document of the window fits the cluster it is in."""
    for i in range(n_docs):
        scale = growth(status, window.docs[i].time)
        prepare(prior, window, status, scratch, i)
        out[i] = gain_of(clusters, tables, prior, window, status, scratch, window.docs[i].slot, i, scale)
