"""FastEx (Ahmed et al., NIPS 2012) for rows of counts: proposals from hashes of the clusters' parameters.

theta_cv is measured from that of an empty cluster, so it is 0 for features the cluster has not seen, and the
projections of a cluster change only in the features of the row that moved. The inner product <x, theta_c> is estimated
by |x| |theta_c| cos(pi z), z the share of bits in which the hashes differ. The row is taken out of its own cluster's
projection first, so that the proposal depends on the other rows only.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.candidates_kernels import offer
from shoal.families.kernels.counts_kernels import count_of, has_room
from shoal.families.kernels.hashing_kernels import add_signs, distance, sign_words
from shoal.families.kernels.indexed_kernels import propose_row
from shoal.families.kernels.metropolis_hastings_kernels import (
    ACCEPTED,
    LISTED,
    PROPOSED,
    is_accepted,
    move_row,
    score_candidates,
    score_own,
)
from shoal.families.kernels.random_kernels import uniform
from shoal.families.kernels.scores_kernels import (
    LOG_ZERO,
    UNKNOWN_SCORE,
    absent_without,
    are_sets,
    cluster_term,
    log_empty_weight,
    rank_terms,
    score_empty,
    score_row,
)
from shoal.jit import kernel


class Hashes(NamedTuple):
    """Hashes of rows and clusters, and what is needed to keep the latter up to date."""

    published: bool  # propose by the bound itself (equation 8); else the hashes only rank candidates
    signs: np.ndarray  # (d, words) int64
    scale: np.ndarray  # (d,) rows are hashed as scale * x, clusters as theta / scale
    row_bits: np.ndarray  # (n, words) int64
    row_norm: np.ndarray  # (n,)
    projection: np.ndarray  # (k + 1, n_bits); the last is scratch for a row's own cluster without it
    cluster_bits: np.ndarray  # (k + 1, words) int64
    square: np.ndarray  # (k + 1,) |theta / scale|^2
    along: np.ndarray  # (k + 1,) <theta / scale, center / scale>
    center: np.ndarray  # (d,) subtracted from every cluster's theta: the same for all, so it cancels
    center_projection: np.ndarray  # (n_bits,)
    center_square: float
    cosine: np.ndarray  # (n_bits + 1,)


@kernel
def digamma(x):
    """psi(x) for x > 0."""
    shift = 0.0
    while x < 6.0:
        shift -= 1 / x
        x += 1
    inverse = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252))


@kernel
def digamma_rise(a, x):
    """psi(a + x) - psi(a)"""
    if x == 1.0:
        return 1 / a
    if x == 2.0:
        return 1 / a + 1 / (a + 1)
    return digamma(a + x) - digamma(a)


@kernel
def theta_of(prior, hashes, feature, seen):
    """A feature's natural parameter in a cluster, beyond that in an empty one."""
    if seen <= 0:
        return 0.0
    a = prior.shape[feature]
    if hashes.published:
        return digamma_rise(a, seen * prior.unit)
    return math.log1p(seen * prior.unit / a)


@kernel
def shift_theta(hashes, at, feature, before, after):
    """A feature's theta changed in the cluster whose hash is kept in place `at`."""
    before, after = before / hashes.scale[feature], after / hashes.scale[feature]
    add_signs(hashes.projection[at], hashes.signs[feature], after - before)
    hashes.square[at] += after * after - before * before
    hashes.along[at] += (after - before) * hashes.center[feature] / hashes.scale[feature]


@kernel
def hash_rows(items, hashes, unit):
    projection = np.zeros(hashes.projection.shape[1])
    zero = np.zeros(hashes.projection.shape[1])
    for row in range(len(items.length)):
        projection[:] = 0.0
        square = 0.0
        for at in range(items.ptr[row], items.ptr[row + 1]):
            value = items.counts[at] * unit * hashes.scale[items.features[at]]
            add_signs(projection, hashes.signs[items.features[at]], value)
            square += value * value
        hashes.row_norm[row] = math.sqrt(square)
        sign_words(projection, zero, hashes.row_bits[row])


@kernel
def hash_clusters(prior, clusters, hashes):
    """All clusters' hashes afresh from their counts."""
    hashes.projection[:] = 0.0
    hashes.square[:] = 0.0
    hashes.along[:] = 0.0
    for cluster in range(len(clusters.size)):
        start = clusters.start[cluster]
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
            if feature >= 0 and seen > 0:
                shift_theta(hashes, cluster, feature, 0.0, theta_of(prior, hashes, feature, seen))
        sign_words(hashes.projection[cluster], hashes.center_projection, hashes.cluster_bits[cluster])


@kernel
def project_center(hashes):
    for feature in range(len(hashes.center)):
        if hashes.center[feature] != 0.0:
            value = hashes.center[feature] / hashes.scale[feature]
            add_signs(hashes.center_projection, hashes.signs[feature], value)


@kernel
def hash_without(items, prior, clusters, hashes, row, own):
    """In the scratch place: the hash of the row's own cluster without the row."""
    scratch = len(clusters.size)
    hashes.projection[scratch] = hashes.projection[own]
    hashes.square[scratch] = hashes.square[own]
    hashes.along[scratch] = hashes.along[own]
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature, count = items.features[at], items.counts[at]
        seen = count_of(clusters, own, feature)
        before = theta_of(prior, hashes, feature, seen)
        shift_theta(hashes, scratch, feature, before, theta_of(prior, hashes, feature, seen - count))
    sign_words(hashes.projection[scratch], hashes.center_projection, hashes.cluster_bits[scratch])


@kernel
def move_hashed(items, prior, clusters, postings, hashes, row, own, target, marked):
    """Carry out a move, with both clusters' projections and hashes."""
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature, count = items.features[at], items.counts[at]
        for side in range(2):
            cluster, sign = (own, -1) if side == 0 else (target, 1)
            seen = count_of(clusters, cluster, feature)
            before = theta_of(prior, hashes, feature, seen)
            shift_theta(hashes, cluster, feature, before, theta_of(prior, hashes, feature, seen + sign * count))
    move_row(items, prior, clusters, postings, row, own, target, marked)
    sign_words(hashes.projection[own], hashes.center_projection, hashes.cluster_bits[own])
    sign_words(hashes.projection[target], hashes.center_projection, hashes.cluster_bits[target])


@kernel
def estimate(items, prior, clusters, hashes, row, own, per_empty, marked, out):
    """out[c]: log weight and estimated log predictive (equations 7 and 8), the row left out of its own cluster."""
    n_clusters = len(clusters.size)
    length = items.length[row]
    for cluster in range(n_clusters):
        at = n_clusters if cluster == own else cluster
        n, total, absent = clusters.size[cluster], clusters.total[cluster], clusters.absent[cluster]
        if cluster == own:
            n, total = n - 1, total - length
            if are_sets(prior):
                absent = absent_without(items, prior, clusters, row, own, n, marked) if n > 0 else 0.0
        if n == 0:
            out[cluster] = per_empty + cluster_term(prior, 0, 0, length)
            if not hashes.published:
                out[cluster] = LOG_ZERO  # empty clusters are one candidate of their own
                continue
        else:
            weight, slope = rank_terms(prior, n, total, absent)
            if are_sets(prior):
                out[cluster] = weight - length * slope
            else:
                out[cluster] = math.log(n + prior.alpha) + cluster_term(prior, n, total, length)
        norm = math.sqrt(max(hashes.square[at] - 2 * hashes.along[at] + hashes.center_square, 0.0))
        bits = distance(hashes.row_bits[row], hashes.cluster_bits[at])
        out[cluster] += norm * hashes.row_norm[row] * hashes.cosine[bits]


@kernel
def draw_by_bound(scores, own, state):
    """(a cluster drawn in proportion to exp(score), log q(own) - log q(it))"""
    best = scores.max()
    mass = 0.0
    for cluster in range(len(scores)):
        mass += math.exp(max(scores[cluster] - best, -700.0))
    draw = uniform(state) * mass
    target = len(scores) - 1
    for cluster in range(len(scores)):
        draw -= math.exp(max(scores[cluster] - best, -700.0))
        if draw <= 0:
            target = cluster
            break
    return target, max(scores[own] - best, -700.0) - max(scores[target] - best, -700.0)


@kernel
def propose_published(items, prior, clusters, hashes, row, own, own_score, n_empty, scores, state, work):
    """Propose by the bound, correct by two exact scores."""
    per_empty = log_empty_weight(prior, n_empty) - math.log(max(n_empty, 1))
    estimate(items, prior, clusters, hashes, row, own, per_empty, work.marked, scores)
    target, log_back = draw_by_bound(scores, own, state)
    if target == own:
        return own, 0.0
    if clusters.size[target] == 0:
        target_score = score_empty(items, prior, clusters, row, n_empty) - math.log(n_empty)
    else:
        target_score = score_row(items, prior, clusters, row, target, False, work.marked)
    return target, target_score - own_score + log_back


@kernel
def propose_ranked(items, prior, clusters, hashes, row, own, own_score, tuning, scores, state, tally, work):
    """The hashes rank; the best few are scored exactly and one of them, or an empty cluster, is proposed."""
    estimate(items, prior, clusters, hashes, row, own, 0.0, work.marked, scores)
    n_chosen, most = 0, len(work.chosen) - 2
    for cluster in range(len(scores)):
        if scores[cluster] > LOG_ZERO:
            n_chosen = offer(work, n_chosen, most, cluster, scores[cluster])
    work.scores[:n_chosen] = UNKNOWN_SCORE
    score_candidates(items, prior, clusters, row, own, own_score, n_chosen, tally, work)
    return propose_row(items, prior, clusters, row, own, own_score, n_chosen, tuning, state, work)


@kernel
def hash_sample_rows(items, prior, clusters, postings, hashes, tuning, first, last, scores, state, tally, work):
    """One visit to each of the rows first .. last - 1; returns the row to go on with, as sample_rows does."""
    for row in range(first, last):
        own, before = clusters.labels[row], state[0]
        n_empty = clusters.empty[len(clusters.size)] + (1 if clusters.size[own] == 1 else 0)
        hash_without(items, prior, clusters, hashes, row, own)
        own_score = score_own(items, prior, clusters, row, own, work)
        if hashes.published:
            target, log_ratio = propose_published(
                items, prior, clusters, hashes, row, own, own_score, n_empty, scores, state, work
            )
        else:
            target, log_ratio = propose_ranked(
                items, prior, clusters, hashes, row, own, own_score, tuning, scores, state, tally, work
            )
        tally[LISTED] += 1
        if target == own:
            continue
        if is_accepted(log_ratio, state):
            if not has_room(clusters, target, items.ptr[row + 1] - items.ptr[row]):
                state[0] = before
                return row
            move_hashed(items, prior, clusters, postings, hashes, row, own, target, work.marked)
            tally[ACCEPTED] += 1
        tally[PROPOSED] += 1
    return last
