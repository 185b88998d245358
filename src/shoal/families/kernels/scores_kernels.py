"""The exact log predictive of a sparse row under a cluster, for the three families of counts.

All three split into a term of the cluster alone, and a sum over the row's own features:

    multinomial   lnG(A) - lnG(A + L)                    + sum_v lnG(a_v + f_v + x_v) - lnG(a_v + f_v)
    Poisson       A log(B / (B + 1)) - L log(B + 1)      + the same sum                     (- sum_v log x_v!)
    Bernoulli     sum over all v of log P(v absent)      + sum_v log(a_v + f_v) - log(t - a_v + n - f_v)

f: the cluster's counts, F their sum, n its rows; L = sum x; A = sum a + F; B = rate + n; t: strength of the Beta prior.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.families.kernels.counts_kernels import count_of, slot_of
from shoal.families.kernels.size_prior_kernels import LOG_ZERO, log_empty_weight, log_rows_weight
from shoal.jit import inline_kernel, kernel

MULTINOMIAL, POISSON, BERNOULLI = 0, 1, 2
UNKNOWN_SCORE = LOG_ZERO  # the score of what has not been scored: no exact score is as low
FINE = float(1 << 30)


class Prior(NamedTuple):
    """The conjugate prior of a family of counts and the prior over labels, as kernels read them."""

    kind: int  # MULTINOMIAL, POISSON or BERNOULLI
    unit: float  # what a count of 1 in the tables is worth: 1, or 1/1024 for fractional data
    shape: np.ndarray  # (d,) a_v: Dirichlet, Gamma shape, or Beta's first parameter
    shape_total: float  # sum of a_v
    rate: float  # Poisson: the Gamma's rate; Bernoulli: the Beta's strength t = a_v + b_v
    absent: np.ndarray  # Bernoulli: (n + 2,) sum_v log((t - a_v + m) / (t + m)) for m rows; else (1,)
    alpha: float  # pseudo-count of every live cluster
    dp_concentration: float  # Dirichlet process: weight of all empty clusters together; 0: each empty one weighs alpha

    @property
    def sets(self):
        return self.kind == BERNOULLI

    @property
    def length_given(self):
        return self.kind == MULTINOMIAL


@inline_kernel
def are_sets(prior):
    """Whether the absence of a feature counts, too: every coordinate is drawn for every row."""
    return prior.kind == BERNOULLI


@inline_kernel
def is_length_given(prior):
    """Whether a row's features are drawn given its length: shares, not rates."""
    return prior.kind == MULTINOMIAL


@kernel
def log_gamma_ratio(a, x):
    """lnG(a + x) - lnG(a), without the cancellation of two large numbers."""
    if a < 16.0:
        return math.lgamma(a + x) - math.lgamma(a)
    # Stirling's series for both; the next term is below 3e-12 at a = 16.
    end = a + x
    series = (1 / end - 1 / a) / 12 - (1 / end**3 - 1 / a**3) / 360 + (1 / end**5 - 1 / a**5) / 1260
    return (end - 0.5) * math.log1p(x / a) + x * math.log(a) - x + series


@kernel
def cluster_term(prior, n, total, length):
    """The part of a row's log predictive that its features do not enter, save by their number."""
    if is_length_given(prior):
        return -log_gamma_ratio(prior.shape_total + total * prior.unit, length * prior.unit)
    if not are_sets(prior):
        rate = prior.rate + n
        log_more = math.log(rate + 1)
        return (prior.shape_total + total * prior.unit) * (math.log(rate) - log_more) - length * prior.unit * log_more
    return prior.absent[n]


@kernel
def log_rising(a, count, unit):
    """lnG(a + count * unit) - lnG(a)"""
    if unit != 1.0:
        return log_gamma_ratio(a, count * unit)
    if count > 16:
        return log_gamma_ratio(a, float(count))
    product = 1.0
    for step in range(count):
        product *= a + step
    return math.log(product)


@kernel
def fill_base(items, prior):
    """The features' part of each row's log predictive under an empty cluster."""
    once = np.empty(len(prior.shape))  # most counts are 1: one logarithm a feature, not one a value
    for feature in range(len(once)):
        a = prior.shape[feature]
        once[feature] = math.log(a / (prior.rate - a)) if are_sets(prior) else log_rising(a, 1, prior.unit)
    for row in range(len(items.base)):
        score = 0.0
        for at in range(items.ptr[row], items.ptr[row + 1]):
            feature, count = items.features[at], items.counts[at]
            if count == 1 or are_sets(prior):
                score += once[feature]
            else:
                score += log_rising(prior.shape[feature], count, prior.unit)
        items.base[row] = score


@kernel
def score_counts(items, prior, clusters, row, cluster, own):
    """Multinomial and Poisson: log weight and log predictive; `own` leaves the row itself out of its cluster."""
    n, total = clusters.size[cluster], clusters.total[cluster]
    if own:
        n -= 1
        total -= items.length[row]
    score = log_rows_weight(prior, n) + cluster_term(prior, n, total, items.length[row])
    slots, start, bits, unit = clusters.slots, clusters.start[cluster], clusters.bits[cluster], prior.unit
    # A product, and a logarithm only when it leaves the range of numbers, is much cheaper than a sum of logarithms.
    product = 1.0
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature, count = items.features[at], items.counts[at]
        slot = slot_of(slots, start, bits, feature)
        seen = slots[slot, 1] if slots[slot, 0] >= 0 else 0
        if own:
            seen -= count
        a = prior.shape[feature] + seen * unit
        if count == 1 and unit == 1.0:
            product *= a
        elif count <= 16 and unit == 1.0:
            rising = 1.0
            for step in range(count):
                rising *= a + step
            product *= rising
        else:
            score += log_gamma_ratio(a, count * unit)
        if product > 1e150 or product < 1e-150:
            score += math.log(product)
            product = 1.0
    return score + math.log(product)


@kernel
def absent_of(prior, clusters, cluster, n, marked):
    """Bernoulli: sum over the cluster's features that are not marked of log((t - a + n - f) / (t - a + n))."""
    total, product = 0.0, 1.0
    start = clusters.start[cluster]
    for at in range(start, start + (1 << clusters.bits[cluster])):
        feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
        if feature >= 0 and seen > 0 and not marked[feature]:
            product *= 1 - seen / (prior.rate - prior.shape[feature] + n)
            if product < 1e-200:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


@kernel
def mark(items, row, marked, value):
    for at in range(items.ptr[row], items.ptr[row + 1]):
        marked[items.features[at]] = value


@kernel
def absent_without(items, prior, clusters, row, cluster, n, marked):
    """Bernoulli: what `absent` of the row's own cluster would be without the row; n counts the others."""
    mark(items, row, marked, True)
    total = absent_of(prior, clusters, cluster, n, marked)
    mark(items, row, marked, False)
    for at in range(items.ptr[row], items.ptr[row + 1]):
        feature = items.features[at]
        others = count_of(clusters, cluster, feature) - 1
        total += math.log1p(-others / (prior.rate - prior.shape[feature] + n))
    return total


@kernel
def score_set(items, prior, clusters, row, cluster, own, marked):
    """Bernoulli: log weight and log predictive; `own` leaves the row itself out of its cluster."""
    n = clusters.size[cluster] - (1 if own else 0)
    score = log_rows_weight(prior, n) + prior.absent[n]
    first, last = items.ptr[row], items.ptr[row + 1]
    if own:
        mark(items, row, marked, True)
        score += absent_of(prior, clusters, cluster, n, marked)
        mark(items, row, marked, False)
    else:
        score += clusters.absent[cluster]
    product = 1.0
    for at in range(first, last):
        feature = items.features[at]
        a, seen = prior.shape[feature], count_of(clusters, cluster, feature)
        # Left out of its own cluster, the row's features were never in the sum of absences, so nothing is taken back.
        if own:
            product *= (a + seen - 1) / (prior.rate - a + n)
        else:
            product *= (a + seen) / (prior.rate - a + n - seen)
        if product > 1e150 or product < 1e-150:
            score += math.log(product)
            product = 1.0
    return score + math.log(product)


@kernel
def score_row(items, prior, clusters, row, cluster, own, marked):
    """Log weight and exact log predictive of a row under a cluster that holds other rows."""
    if are_sets(prior):
        return score_set(items, prior, clusters, row, cluster, own, marked)
    return score_counts(items, prior, clusters, row, cluster, own)


@kernel
def score_empty(items, prior, clusters, row, n_empty):
    """Log weight and exact log predictive of a row under the empty clusters together."""
    return log_empty_weight(prior, n_empty) + cluster_term(prior, 0, 0, items.length[row]) + items.base[row]


@kernel
def score_alone(items, prior, out):
    """out[row]: exact log predictive of each row under an empty cluster."""
    for row in range(len(out)):
        out[row] = cluster_term(prior, 0, 0, items.length[row]) + items.base[row]


@kernel
def rank_terms(prior, n, total, absent):
    """(weight, slope): terms added to the gains of postings to rank candidates, relative to an empty cluster."""
    weight = math.log(n + prior.alpha + 1e-300)
    if is_length_given(prior):
        return weight, math.log1p(total * prior.unit / prior.shape_total)
    if not are_sets(prior):
        rate = prior.rate + n
        offset = (prior.shape_total + total * prior.unit) * math.log(rate / (rate + 1))
        return weight + offset, math.log((rate + 1) / (prior.rate + 1))
    return weight + prior.absent[n] + absent, math.log1p(n / prior.rate)


@kernel
def refresh_cluster(prior, clusters, cluster, marked):
    """After a cluster's counts changed: what is kept of it for scoring. `marked` is all False."""
    n = clusters.size[cluster]
    if are_sets(prior):
        clusters.absent[cluster] = absent_of(prior, clusters, cluster, n, marked) if n > 0 else 0.0
    weight, slope = rank_terms(prior, n, clusters.total[cluster], clusters.absent[cluster])
    clusters.weight[cluster], clusters.slope[cluster] = weight, slope


@kernel
def refresh_clusters(prior, clusters, marked):
    for cluster in range(len(clusters.size)):
        refresh_cluster(prior, clusters, cluster, marked)


@kernel
def log_marginals(prior, clusters, wanted, falling, out):
    """For each cluster wanted, log p(its rows | prior); constants of the data alone (log x!) are left out.

    `falling`: Bernoulli, (n + 2,): sum over all features of lnB(a, t - a + m) - lnB(a, t - a) for m empty rows."""
    for cluster in range(len(clusters.size)):
        if not wanted[cluster]:
            continue
        n = clusters.size[cluster]
        total = clusters.total[cluster] * prior.unit
        value = 0.0
        if n == 0:
            out[cluster] = 0.0
            continue
        if is_length_given(prior):
            value = -log_gamma_ratio(prior.shape_total, total)
        elif not are_sets(prior):
            value = prior.shape_total * math.log(prior.rate) - (prior.shape_total + total) * math.log(prior.rate + n)
        else:
            value = falling[n]
        start = clusters.start[cluster]
        whole = np.int64(0)  # in units of 2 ** -30: a sum of whole numbers does not depend on the order of the table
        for at in range(start, start + (1 << clusters.bits[cluster])):
            feature, seen = clusters.slots[at, 0], clusters.slots[at, 1]
            if feature >= 0 and seen > 0:
                a = prior.shape[feature]
                term = log_rising(a, seen, prior.unit)
                if are_sets(prior):
                    term -= log_gamma_ratio(prior.rate - a + n - seen, float(seen))
                whole += np.int64(np.rint(term * FINE))
        out[cluster] = value + whole / FINE
