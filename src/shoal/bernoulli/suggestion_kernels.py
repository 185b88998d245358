# mypy: ignore-errors
"""Which features go with those observed: all others are unknown, not absent."""

from __future__ import annotations

import math

import numpy as np

from shoal.bernoulli.entries_kernels import COMMON_FROM, default_mean
from shoal.jit import inline_kernel, kernel


@inline_kernel
def log_default_over(b, s):
    """log(1 - b + s b)."""
    x = (s - 1.0) * b
    return x * (1.0 - x * (0.5 - x / 3.0)) if abs(x) < 0.01 else math.log1p(x)


@kernel
def score_observed(observed, rejected, profiles, means, log_weights, scores):
    """log gamma_l + sum of log mu over observed + sum of log(1 - mu) over rejected features."""
    ratio, log_ratio = profiles.ratio, profiles.log_ratio
    uninformative, background, head = profiles.uninformative, profiles.background, profiles.head
    cluster, next_of_feature = profiles.cluster, profiles.next_of_feature
    scores[:] = log_weights
    for feature in observed:
        if uninformative[feature]:
            continue
        b = background[feature]
        log_b = math.log(b)
        for row in range(scores.size):
            scores[row] += log_ratio[row] + log_b - log_default_over(b, ratio[row])
        slot = head[feature]
        while slot >= 0:
            row = cluster[slot]
            scores[row] += math.log(means[slot]) - (log_ratio[row] + log_b - log_default_over(b, ratio[row]))
            slot = next_of_feature[slot]
    for feature in rejected:
        if uninformative[feature]:
            continue
        b = background[feature]
        log_rest = math.log1p(-b)
        for row in range(scores.size):
            scores[row] += log_rest - log_default_over(b, ratio[row])
        slot = head[feature]
        while slot >= 0:
            row = cluster[slot]
            scores[row] += math.log1p(-means[slot]) - (log_rest - log_default_over(b, ratio[row]))
            slot = next_of_feature[slot]


@kernel
def offer(feature, probability, features, probabilities):
    """Keep the n largest, in falling order; equal ones in order of arrival."""
    n = features.size
    if n == 0 or (features[n - 1] >= 0 and probability <= probabilities[n - 1]):
        return
    at = n - 1
    while at > 0 and (features[at - 1] < 0 or probabilities[at - 1] < probability):
        features[at], probabilities[at] = features[at - 1], probabilities[at - 1]
        at -= 1
    features[at], probabilities[at] = feature, probability


@kernel
def add_powers(share, s, powers):
    """Add a cluster's part to the power series of sum_l r_l mu_l in b, where no cluster has an entry."""
    term = share * s
    for at in range(powers.size):
        powers[at] += term
        term *= 1.0 - s


@kernel
def default_part(b, informative, powers, n_near, near, shares, ratio):
    """The probability of a feature in each cluster, if none has an entry for it."""
    if not informative:
        return b
    if b < COMMON_FROM:
        return b * (powers[0] + b * (powers[1] + b * (powers[2] + b * powers[3])))
    total = 0.0
    for at in range(n_near):
        total += shares[at] * default_mean(b, ratio[near[at]])
    return total


@kernel
def suggest_rows(
    indptr, indices, no_indptr, no_indices, profiles, means, above_default, log_weights, popular, negligible,
    out_features, out_probs,
):  # fmt: skip
    """For each row of observed (and rejected) features, the likeliest others and their probabilities.

    ``above_default`` is what each entry's mean is above that of the default; ``popular`` lists all features, most
    common first. Rows of ``out_features`` are padded with -1. Clusters with less than ``negligible`` of the largest
    responsibility are left out, and the others' made to sum to one.
    """
    n_rows, n_features = profiles.mass.size, profiles.background.size
    ratio, background, uninformative = profiles.ratio, profiles.background, profiles.uninformative
    first, next_of_cluster, feature_of = profiles.first, profiles.next_of_cluster, profiles.feature
    scores, extra, shares = np.zeros(n_rows), np.zeros(n_features), np.zeros(n_rows)
    state = np.zeros(n_features, np.int8)  # 1: has extra probability, 2: given by the user
    touched, near, powers = np.zeros(n_features, np.int64), np.zeros(n_rows, np.int64), np.zeros(4)
    for place in range(indptr.size - 1):
        observed = indices[indptr[place] : indptr[place + 1]]
        rejected = no_indices[no_indptr[place] : no_indptr[place + 1]]
        score_observed(observed, rejected, profiles, means, log_weights, scores)
        best, total, n_near = scores.max(), 0.0, 0
        for row in range(n_rows):
            share = math.exp(scores[row] - best)
            if share >= negligible:
                near[n_near], shares[n_near] = row, share
                n_near += 1
                total += share
        for feature in observed:
            state[feature] = 2
        for feature in rejected:
            state[feature] = 2
        n_touched = 0
        powers[:] = 0.0
        for at in range(n_near):
            shares[at] /= total
            add_powers(shares[at], ratio[near[at]], powers)
            row = near[at]
            slot = first[row]
            while slot >= 0:
                feature = feature_of[slot]
                if state[feature] != 2 and not uninformative[feature]:
                    if state[feature] == 0:
                        state[feature] = 1
                        touched[n_touched] = feature
                        n_touched += 1
                    extra[feature] += shares[at] * above_default[slot]
                slot = next_of_cluster[slot]
        out_features[place, :], out_probs[place, :] = -1, 0.0
        for number in range(n_touched):
            feature = touched[number]
            probability = extra[feature] + default_part(
                background[feature], True, powers, n_near, near, shares, ratio
            )  # fmt: skip
            offer(feature, min(max(probability, 0.0), 1.0), out_features[place], out_probs[place])
        n_offered = 0
        for feature in popular:
            if n_offered == out_features.shape[1]:
                break
            if state[feature] == 0:
                probability = default_part(
                    background[feature], not uninformative[feature], powers, n_near, near, shares, ratio
                )  # fmt: skip
                offer(feature, min(probability, 1.0), out_features[place], out_probs[place])
                n_offered += 1
        for number in range(n_touched):
            state[touched[number]], extra[touched[number]] = 0, 0.0
        for feature in observed:
            state[feature] = 0
        for feature in rejected:
            state[feature] = 0
