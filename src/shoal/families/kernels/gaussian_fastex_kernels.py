"""FastEx for measurements: hashes of (x, x^2) and of the clusters' natural parameters, dense and low-dimensional."""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.candidates_kernels import offer
from shoal.families.kernels.fastex_kernels import draw_by_bound
from shoal.families.kernels.gaussian_kernels import (
    empty_gauss,
    move_gauss,
    other_gauss,
    own_gauss,
    posterior_rate,
)
from shoal.families.kernels.hashing_kernels import distance, sign_words
from shoal.families.kernels.metropolis_hastings_kernels import ACCEPTED, LISTED, PROPOSED, SCORED, is_accepted, propose
from shoal.families.kernels.scores_kernels import LOG_ZERO, UNKNOWN_SCORE
from shoal.families.kernels.size_prior_kernels import empty_weight
from shoal.jit import kernel, sum_kernel


class GaussHashes(NamedTuple):
    """Hashes of rows and clusters."""

    published: bool
    directions: np.ndarray  # (2 d, n_bits)
    shift: float  # rows are hashed as (x, x^2 - shift)
    center: np.ndarray  # (2 d,) subtracted from every cluster's theta
    row_bits: np.ndarray  # (n, words) int64
    row_norm: np.ndarray  # (n,)
    cluster_bits: np.ndarray  # (k + 1, words) int64; the last is a row's own cluster without it
    norm: np.ndarray  # (k + 1,)
    offset: np.ndarray  # (k + 1,) - g(theta), and what the shift took away
    cosine: np.ndarray  # (n_bits + 1,)


@sum_kernel
def project(vector, directions, out):
    out[:] = 0.0
    for at in range(len(vector)):
        value = vector[at]
        for bit in range(len(out)):
            out[bit] += value * directions[at, bit]


@kernel
def hash_gauss(prior, hashes, at, n, sums, squares, x, sign, theta, projection, zero):
    """Hash a cluster's parameters into place `at`; sign = -1 takes the row x out of it first."""
    d = len(sums)
    n = n + sign
    a = prior.a + (0.5 * n * d if prior.spherical else 0.5 * n)
    rates = 0.0
    for j in range(d):
        rate, mean = posterior_rate(prior, n, sums[j] + sign * x[j], squares[j] + sign * x[j] * x[j])
        theta[j] = mean
        theta[d + j] = prior.b + rate
        rates += rate
    offset, square = 0.0, 0.0
    for j in range(d):
        mean, rate = theta[j], prior.b + rates if prior.spherical else theta[d + j]
        precision = a / rate
        offset += (
            0.5 * math.log(precision / (2 * math.pi)) - 0.5 * mean * mean * precision - 0.5 * precision * hashes.shift
        )
        theta[j] = mean * precision - hashes.center[j]
        theta[d + j] = -0.5 * precision - hashes.center[d + j]
        square += theta[j] * theta[j] + theta[d + j] * theta[d + j]
    project(theta, hashes.directions, projection)
    sign_words(projection, zero, hashes.cluster_bits[at])
    hashes.norm[at] = math.sqrt(square)
    hashes.offset[at] = offset


@kernel
def hash_all_gauss(prior, clusters, hashes, theta, projection, zero):
    for cluster in range(len(clusters.size)):
        n = clusters.size[cluster]
        sums, squares = clusters.sums[cluster], clusters.squares[cluster]
        hash_gauss(prior, hashes, cluster, n, sums, squares, sums, 0, theta, projection, zero)


@kernel
def hash_rows_gauss(X, hashes):
    d, n_bits = X.shape[1], hashes.directions.shape[1]
    phi, projection, zero = np.zeros(2 * d), np.zeros(n_bits), np.zeros(n_bits)
    for row in range(len(X)):
        square = 0.0
        for j in range(d):
            phi[j] = X[row, j]
            phi[d + j] = X[row, j] * X[row, j] - hashes.shift
            square += phi[j] * phi[j] + phi[d + j] * phi[d + j]
        project(phi, hashes.directions, projection)
        sign_words(projection, zero, hashes.row_bits[row])
        hashes.row_norm[row] = math.sqrt(square)


@kernel
def estimate_gauss(prior, clusters, hashes, row, own, per_empty, scores):
    """Estimated scores under all clusters, the row left out of its own."""
    n_clusters = len(clusters.size)
    for cluster in range(n_clusters):
        at = n_clusters if cluster == own else cluster
        n = clusters.size[cluster] - (1 if cluster == own else 0)
        if n == 0 and not hashes.published:
            scores[cluster] = LOG_ZERO
            continue
        bits = distance(hashes.row_bits[row], hashes.cluster_bits[at])
        weight = math.log(n + prior.alpha) if n > 0 else per_empty
        scores[cluster] = weight + hashes.offset[at] + hashes.norm[at] * hashes.row_norm[row] * hashes.cosine[bits]


@kernel
def target_of_ranks(
    x, prior, clusters, own, own_score, empty_score, n_empty, share_uniform, scores, state, tally, work
):
    """The best-ranked few are scored exactly: (target, its score or UNKNOWN_SCORE, log q(own) - log q(it))."""
    n_chosen, most = 0, len(work.chosen) - 2
    for cluster in range(len(scores)):
        if scores[cluster] > LOG_ZERO:
            n_chosen = offer(work, n_chosen, most, cluster, scores[cluster])
    for at in range(n_chosen):
        cluster = work.chosen[at]
        work.scores[at] = own_score if cluster == own else other_gauss(x, prior, clusters, cluster)
        tally[SCORED] += 1
    return propose(clusters, own, own_score, empty_score, n_empty, n_chosen, share_uniform, state, work)


@kernel
def hash_sample_gauss(X, prior, clusters, hashes, share_uniform, first, last, scores, scratch, state, tally, work):
    """One visit to each of the rows first .. last - 1."""
    theta, projection, zero, nothing = scratch
    n_clusters = len(clusters.size)
    for row in range(first, last):
        x, own = X[row], clusters.labels[row]
        n_empty = clusters.empty[n_clusters] + (1 if clusters.size[own] == 1 else 0)
        own_score = own_gauss(x, prior, clusters, own, nothing)
        empty_score = empty_gauss(x, prior, clusters, n_empty, nothing) if n_empty > 0 else LOG_ZERO
        sums, squares = clusters.sums[own], clusters.squares[own]
        hash_gauss(prior, hashes, n_clusters, clusters.size[own], sums, squares, x, -1, theta, projection, zero)
        per_empty = math.log(max(empty_weight(prior, n_empty), 1e-300) / max(n_empty, 1))
        estimate_gauss(prior, clusters, hashes, row, own, per_empty, scores)
        if hashes.published:
            target, log_q = draw_by_bound(scores, own, state)
            score = UNKNOWN_SCORE
        else:
            target, score, log_q = target_of_ranks(
                x, prior, clusters, own, own_score, empty_score, n_empty, share_uniform, scores, state, tally, work
            )
        tally[LISTED] += 1
        if target == own:
            continue
        if clusters.size[target] == 0:
            score = empty_score - math.log(n_empty)
        elif score == UNKNOWN_SCORE:
            score = other_gauss(x, prior, clusters, target)
        log_ratio = score - own_score + log_q
        tally[PROPOSED] += 1
        if is_accepted(log_ratio, state):
            move_gauss(X, prior, clusters, row, own, target)
            for side in range(2):
                changed = own if side == 0 else target
                n, sums, squares = clusters.size[changed], clusters.sums[changed], clusters.squares[changed]
                hash_gauss(prior, hashes, changed, n, sums, squares, x, 0, theta, projection, zero)
            tally[ACCEPTED] += 1
