"""Collapsed Gibbs for Gaussian clusters of standardized measurements: all clusters at once, in single precision first.

With the same degrees of freedom in every coordinate, the product of the coordinates' Student t densities has one
logarithm: log p(x) = constant - power * log prod_j (1 + (x_j - m_j)^2 inv_j). Clusters within reach of the best are
then scored again in double precision, so the draw is exact.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.counts_kernels import no_longer_empty, now_empty
from shoal.families.kernels.gibbs_kernels import split_exponents
from shoal.families.kernels.random_kernels import below, uniform
from shoal.families.kernels.scores_kernels import LOG_ZERO
from shoal.families.kernels.size_prior_kernels import empty_weight
from shoal.jit import kernel, sum_kernel

LOG_2 = math.log(2.0)
REACH = 40.0


class GaussPrior(NamedTuple):
    """Normal-Gamma prior around 0 of standardized coordinates, and the prior over labels."""

    kappa: float  # pseudo-rows of the mean
    a: float  # shape of the precision
    b: float  # rate of the precision: b / a is the variance expected within a cluster
    spherical: bool
    alpha: float
    dp_concentration: float


class GaussClusters(NamedTuple):
    """Which row is where, and the sums of each cluster."""

    labels: np.ndarray  # (n,) int32
    size: np.ndarray  # (k,) int64
    sums: np.ndarray  # (k, d)
    squares: np.ndarray  # (k, d)
    constant: np.ndarray  # (k,) log weight and what of the log predictive does not depend on the row
    power: np.ndarray  # (k,)
    mean: np.ndarray  # (d, k) float32
    inverse: np.ndarray  # (d, k) float32: 1 / (degrees of freedom * scale^2)
    empty: np.ndarray  # (k + 1,) int64
    place: np.ndarray  # (k,) int64


@kernel
def posterior_rate(prior, n, total, square):
    """The precision's posterior rate in one coordinate, beyond the prior's, and the posterior mean."""
    kappa = prior.kappa + n
    mean = total / kappa
    return max(0.5 * (square - kappa * mean * mean), 0.0), mean


@kernel
def log_constant(prior, n, d, log_rates):
    """The log predictive's part without the row, given the sum over coordinates of log(rate)."""
    kappa = prior.kappa + n
    widen = math.log(2 * math.pi * (kappa + 1) / kappa)
    if prior.spherical:
        a = prior.a + 0.5 * n * d
        return math.lgamma(a + 0.5 * d) - math.lgamma(a) - 0.5 * d * (widen + log_rates)
    a = prior.a + 0.5 * n
    return d * (math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * widen) - 0.5 * log_rates


@kernel
def predictive_power(prior, n, d):
    return prior.a + 0.5 * (n + 1) * d if prior.spherical else prior.a + 0.5 * (n + 1)


@kernel
def score_gauss(x, prior, n, sums, squares, sign):
    """Exact log predictive of x under a cluster; sign = -1 takes x itself out of the sums first, 0 leaves them."""
    d = len(x)
    n = n + sign
    kappa = prior.kappa + n
    shrink = kappa / (2 * (kappa + 1))
    total, product, log_rates, rates, far = 0.0, 1.0, 0.0, 0.0, 0.0
    for j in range(d):
        rate, mean = posterior_rate(prior, n, sums[j] + sign * x[j], squares[j] + sign * x[j] * x[j])
        gap = (x[j] - mean) * (x[j] - mean)
        if prior.spherical:
            rates += rate
            far += gap
        else:
            rate += prior.b
            log_rates += math.log(rate)
            product *= 1 + gap * shrink / rate
            if product > 1e200:
                total += math.log(product)
                product = 1.0
    if prior.spherical:
        rate = prior.b + rates
        log_rates = math.log(rate)
        product = 1 + far * shrink / rate
    total += math.log(product)
    return log_constant(prior, n, d, log_rates) - predictive_power(prior, n, d) * total


@kernel
def refresh_gauss(prior, clusters, cluster):
    """After a cluster's sums changed: what the coarse scores need."""
    n, d = clusters.size[cluster], clusters.sums.shape[1]
    kappa = prior.kappa + n
    shrink = kappa / (2 * (kappa + 1))
    log_rates, rates = 0.0, 0.0
    for j in range(d):
        rate, mean = posterior_rate(prior, n, clusters.sums[cluster, j], clusters.squares[cluster, j])
        clusters.mean[j, cluster] = mean
        rates += rate
        if not prior.spherical:
            clusters.inverse[j, cluster] = shrink / (prior.b + rate)
            log_rates += math.log(prior.b + rate)
    if prior.spherical:
        log_rates = math.log(prior.b + rates)
        for j in range(d):
            clusters.inverse[j, cluster] = shrink / (prior.b + rates)
    clusters.power[cluster] = predictive_power(prior, n, d)
    clusters.constant[cluster] = log_constant(prior, n, d, log_rates) + math.log(n + prior.alpha + 1e-300)


@kernel
def fill_gauss(X, prior, clusters):
    """Sums from the labels, in the order of the rows."""
    clusters.size[:] = 0
    clusters.sums[:] = 0.0
    clusters.squares[:] = 0.0
    for row in range(len(X)):
        cluster = clusters.labels[row]
        clusters.size[cluster] += 1
        for j in range(X.shape[1]):
            clusters.sums[cluster, j] += X[row, j]
            clusters.squares[cluster, j] += X[row, j] * X[row, j]
    for cluster in range(len(clusters.size)):
        refresh_gauss(prior, clusters, cluster)


@kernel
def shift_row(X, clusters, row, cluster, sign):
    clusters.size[cluster] += sign
    for j in range(X.shape[1]):
        clusters.sums[cluster, j] += sign * X[row, j]
        clusters.squares[cluster, j] += sign * X[row, j] * X[row, j]


@kernel
def move_gauss(X, prior, clusters, row, source, target):
    if clusters.size[target] == 0:
        no_longer_empty(clusters, target)
    shift_row(X, clusters, row, source, -1)
    shift_row(X, clusters, row, target, 1)
    if clusters.size[source] == 0:
        now_empty(clusters, source)
        clusters.sums[source] = 0.0
        clusters.squares[source] = 0.0
    clusters.labels[row] = target
    refresh_gauss(prior, clusters, source)
    refresh_gauss(prior, clusters, target)


@sum_kernel
def times_coordinate(product, mean, inverse, x):
    for cluster in range(len(product)):
        gap = x - mean[cluster]
        product[cluster] *= 1 + gap * gap * inverse[cluster]


@sum_kernel
def plus_coordinate(product, mean, inverse, x):
    for cluster in range(len(product)):
        gap = x - mean[cluster]
        product[cluster] += gap * gap * inverse[cluster]


@sum_kernel
def coarse_gauss(clusters, product, exponents, scores):
    """constant - power * log(product * 2 ** exponents), the logarithm by its series: about six digits."""
    for cluster in range(len(scores)):
        s = (product[cluster] - 1) / (product[cluster] + 1)
        t = s * s
        log_product = 2 * s * (1 + t * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t / 11)))))
        scores[cluster] = clusters.constant[cluster] - clusters.power[cluster] * (
            log_product + exponents[cluster] * LOG_2
        )


@kernel
def all_gauss(x, prior, clusters, product, bits, exponents, scores):
    """Coarse scores of a row under all clusters."""
    product[:] = 1.0
    exponents[:] = 0
    for j in range(len(x)):
        if prior.spherical:
            plus_coordinate(product, clusters.mean[j], clusters.inverse[j], np.float32(x[j]))
        else:
            times_coordinate(product, clusters.mean[j], clusters.inverse[j], np.float32(x[j]))
            if j % 4 == 3:
                split_exponents(bits, exponents)
    split_exponents(bits, exponents)
    coarse_gauss(clusters, product, exponents, scores)


@kernel
def empty_gauss(x, prior, clusters, n_empty, nothing):
    """Log weight and log predictive of a row under the empty clusters together."""
    return math.log(empty_weight(prior, n_empty)) + score_gauss(x, prior, 0, nothing, nothing, 0)


@kernel
def own_gauss(x, prior, clusters, own, nothing):
    """The row's score where it is, itself left out."""
    if clusters.size[own] > 1:
        n = clusters.size[own]
        score = score_gauss(x, prior, n, clusters.sums[own], clusters.squares[own], -1)
        return score + math.log(n - 1 + prior.alpha)
    n_empty = clusters.empty[len(clusters.size)] + 1
    return empty_gauss(x, prior, clusters, n_empty, nothing) - math.log(n_empty)


@kernel
def other_gauss(x, prior, clusters, cluster):
    """Exact score of a row under a live cluster it is not in."""
    n = clusters.size[cluster]
    score = score_gauss(x, prior, n, clusters.sums[cluster], clusters.squares[cluster], 0)
    return score + math.log(n + prior.alpha)


@kernel
def gibbs_gauss(X, prior, clusters, first, last, state, tally, work):
    """One visit to each of the rows first .. last - 1."""
    product, bits, exponents, scores, nothing = work
    n_clusters = len(clusters.size)
    for row in range(first, last):
        x, own = X[row], clusters.labels[row]
        all_gauss(x, prior, clusters, product, bits, exponents, scores)
        own_score = own_gauss(x, prior, clusters, own, nothing)
        n_empty = clusters.empty[n_clusters] + (1 if clusters.size[own] == 1 else 0)
        empty_score = empty_gauss(x, prior, clusters, n_empty, nothing) if n_empty > 0 else LOG_ZERO
        best = max(own_score, empty_score)
        for cluster in range(n_clusters):
            if cluster == own or clusters.size[cluster] == 0:
                scores[cluster] = LOG_ZERO
            best = max(best, scores[cluster])
        mass_empty = math.exp(empty_score - best) if n_empty > 0 else 0.0
        mass = mass_empty
        for cluster in range(n_clusters):
            if scores[cluster] > best - REACH:
                scores[cluster] = math.exp(other_gauss(x, prior, clusters, cluster) - best)
            elif cluster == own and clusters.size[own] > 1:
                scores[cluster] = math.exp(own_score - best)
            else:
                scores[cluster] = 0.0
            mass += scores[cluster]
        draw = uniform(state) * mass - mass_empty
        target = own
        if draw <= 0 and n_empty > 0:
            place = below(state, n_empty)
            target = own if place == clusters.empty[n_clusters] else clusters.empty[place]
        else:
            for cluster in range(n_clusters):
                draw -= scores[cluster]
                if draw <= 0 and scores[cluster] > 0:
                    target = cluster
                    break
        tally[0] += 1
        if target != own:
            move_gauss(X, prior, clusters, row, own, target)
            tally[1] += 1


@kernel
def marginals_gauss(prior, size, sums, squares, out):
    """log p(the rows of each cluster), of standardized coordinates."""
    d = sums.shape[1]
    for cluster in range(len(size)):
        n = size[cluster]
        out[cluster] = 0.0
        if n == 0:
            continue
        value = 0.5 * d * math.log(prior.kappa / (prior.kappa + n)) - 0.5 * n * d * math.log(2 * math.pi)
        rates, log_rates = 0.0, 0.0
        for j in range(d):
            rate, _ = posterior_rate(prior, n, sums[cluster, j], squares[cluster, j])
            rates += rate
            log_rates += math.log(prior.b + rate)
        if prior.spherical:
            a = prior.a + 0.5 * n * d
            value += math.lgamma(a) - math.lgamma(prior.a) + prior.a * math.log(prior.b) - a * math.log(prior.b + rates)
        else:
            a = prior.a + 0.5 * n
            value += d * (math.lgamma(a) - math.lgamma(prior.a) + prior.a * math.log(prior.b)) - a * log_rates
        out[cluster] = value


@kernel
def predict_gauss(X, prior, size, sums, squares, out):
    """out[row, cluster] = log p(row | the cluster's rows)"""
    for row in range(len(X)):
        for cluster in range(len(size)):
            out[row, cluster] = score_gauss(X[row], prior, size[cluster], sums[cluster], squares[cluster], 0)


@kernel
def predict_gauss_at(X, prior, size, sums, squares, labels, nothing, out):
    """out[row] = log p(row | the rows of cluster labels[row]); -1 means an empty cluster."""
    for row in range(len(X)):
        cluster = labels[row]
        if cluster < 0:
            out[row] = score_gauss(X[row], prior, 0, nothing, nothing, 0)
        else:
            out[row] = score_gauss(X[row], prior, size[cluster], sums[cluster], squares[cluster], 0)


@kernel
def predict_gauss_left_out(X, prior, size, sums, squares, labels, out):
    """out[row] = log p(row | the other rows of cluster labels[row], which counts it among its rows)."""
    for row in range(len(X)):
        cluster = labels[row]
        out[row] = score_gauss(X[row], prior, size[cluster], sums[cluster], squares[cluster], -1)
