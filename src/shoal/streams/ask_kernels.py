# mypy: ignore-errors
"""Asking about documents without learning from them."""

import math

from shoal.jit import kernel
from shoal.streams.likelihood_kernels import gain_of, growth, prepare
from shoal.streams.state import SLOT, TIME
from shoal.streams.visit_kernels import all_live, pick, score_candidates


@kernel
def score_only(clusters, tables, prior, window, links, counters, numbers, scratch, lo, hi, best, log_prob):
    """For documents that are only asked about: the best live slot (-1: a new cluster) and its log probability."""
    for i in range(lo, hi):
        prepare(prior, window, numbers, scratch, i)
        m = all_live(clusters, counters, scratch)
        score_candidates(clusters, tables, prior, window, links, counters, numbers, scratch, i, m, False, True)
        choice = pick(scratch.scores, m, -1.0)
        top = scratch.scores[choice] if choice >= 0 else 0.0
        total = math.exp(-top)
        for x in range(m):
            total += math.exp(scratch.scores[x] - top)
        best[i - lo] = scratch.candidates[choice] if choice >= 0 else -1
        log_prob[i - lo] = -math.log(total)


@kernel
def all_probabilities(clusters, tables, prior, window, links, counters, numbers, scratch, lo, hi, out):
    """out[i] over the live slots in order, and last a new cluster."""
    for i in range(lo, hi):
        prepare(prior, window, numbers, scratch, i)
        m = all_live(clusters, counters, scratch)
        score_candidates(clusters, tables, prior, window, links, counters, numbers, scratch, i, m, False, True)
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
def own_gains(clusters, tables, prior, window, counters, numbers, scratch, n_docs, out):
    """How well each document of the window fits the cluster it is in."""
    for i in range(n_docs):
        scale = growth(numbers, window.doc_real[i, TIME])
        prepare(prior, window, numbers, scratch, i)
        out[i] = gain_of(clusters, tables, prior, window, counters, numbers, scratch, window.doc[i, SLOT], i, scale)
