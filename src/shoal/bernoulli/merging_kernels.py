# mypy: ignore-errors
"""What is lost when two clusters become one: in evidence of what was learned, and in likelihood of new rows."""

from __future__ import annotations

import math

import numpy as np

from shoal.bernoulli.adf_kernels import responsibilities, score_row
from shoal.jit import kernel

LEAST_SHARE = 0.01  # rows of which two clusters hold less do not count for or against their merger


@kernel
def shared_absence(q, one, other):
    """ln B terms of a feature that neither cluster has seen: q = s (1 - b)."""
    return math.lgamma(q + one) + math.lgamma(q + other) - math.lgamma(q + one + other) - math.lgamma(q)


@kernel
def evidence_losses(counts, mass, background, strength, pairs, out):
    """Log evidence lost when the two clusters of each pair (rows of ``counts``) become one."""
    s = strength
    for number in range(pairs.shape[0]):
        i, j = pairs[number, 0], pairs[number, 1]
        at_s = shared_absence(s, mass[i], mass[j])
        slope = (at_s - shared_absence(0.98 * s, mass[i], mass[j])) / (0.02 * s)
        total = 0.0
        for d in range(background.size):
            c, e, b = counts[i, d], counts[j, d], background[d]
            if c < 1e-9 and e < 1e-9 and b < 0.05:
                total -= s * b * slope  # to first order in b; what remains cancels with the terms of alpha + beta
                continue
            a, q = s * b, s * (1.0 - b)
            total += math.lgamma(a + c) + math.lgamma(a + e) - math.lgamma(a + c + e) - math.lgamma(a)
            total += math.lgamma(q + max(mass[i] - c, 0.0)) + math.lgamma(q + max(mass[j] - e, 0.0))
            total -= math.lgamma(q + max(mass[i] + mass[j] - c - e, 0.0)) + math.lgamma(q) + at_s
        out[number] = total + math.lgamma(1 + mass[i]) + math.lgamma(1 + mass[j]) - math.lgamma(1 + mass[i] + mass[j])


@kernel
def pair_score(features, pair, merged, dense):
    """Score of a row under one merged cluster."""
    score = merged.base[pair]
    for feature in features:
        if merged.uninformative[feature]:
            continue
        score += merged.log_ratio[pair]
        line = dense.line_of[feature]
        if line >= 0:
            score += dense.lifts[line, pair]
            continue
        slot = merged.head[feature]
        while slot >= 0:
            if merged.cluster[slot] == pair:
                score += merged.lift[slot]
                break
            slot = merged.next_of_feature[slot]
    return score


@kernel
def merger_gains(
    indptr, indices, weights, profiles, dense, pairs_ptr, pairs_of, first, second, merged, merged_dense, gains
):
    """Add to ``gains`` how much likelier the rows are when the two clusters of a pair are one.

    One row: log(1 - r_a - r_b + p_merged(x) / p(x)), over the rows of which the two hold more than 1 %. ``pairs_of``
    lists each cluster's pairs.
    """
    scores, shares, share_of = np.zeros(profiles.mass.size), np.zeros(profiles.mass.size), np.zeros(profiles.mass.size)
    touched = np.zeros(profiles.mass.size, np.int64)
    for place in range(indptr.size - 1):
        features = indices[indptr[place] : indptr[place + 1]]
        score_row(features, profiles, dense, scores)
        n, log_norm = responsibilities(scores, LEAST_SHARE / 2, touched, shares)
        for at in range(n):
            share_of[touched[at]] = shares[at]
        for at in range(n):
            row = touched[at]
            for number in range(pairs_ptr[row], pairs_ptr[row + 1]):
                pair = pairs_of[number]
                if row == second[pair] and share_of[first[pair]] > 0:
                    continue  # counted at the other one
                held = share_of[first[pair]] + share_of[second[pair]]
                if held > LEAST_SHARE:
                    together = math.exp(min(pair_score(features, pair, merged, merged_dense) - log_norm, 50.0))
                    gains[pair] += weights[place] * math.log(max(1.0 - held, 0.0) + together)
        for at in range(n):
            share_of[touched[at]] = 0.0


@kernel
def clutter_gains(
    indptr, indices, weights, profiles, dense, ratio_base, log_ratio, flat_base, flat_step, gains, rows_of
):
    """Add up what each cluster's own Betas earn over one parameter for all features, on its share of the rows.

    The one parameter scales the background (first column of ``gains``) or is the same for all features (second).
    ``flat_step`` is what a present feature adds there, by cluster, before its log-odds of the background.
    """
    scores, shares = np.zeros(profiles.mass.size), np.zeros(profiles.mass.size)
    touched = np.zeros(profiles.mass.size, np.int64)
    for place in range(indptr.size - 1):
        features = indices[indptr[place] : indptr[place + 1]]
        score_row(features, profiles, dense, scores)
        n, _ = responsibilities(scores, LEAST_SHARE, touched, shares)
        n_present, of_background = 0, 0.0
        for feature in features:
            if not profiles.uninformative[feature]:
                b = profiles.background[feature]
                n_present += 1
                of_background += math.log(b / (1.0 - b))
        for at in range(n):
            row, share = touched[at], weights[place] * shares[at]
            rows_of[row] += share
            gains[row, 0] += share * (scores[row] - ratio_base[row] - n_present * log_ratio[row])
            gains[row, 1] += share * (scores[row] - flat_base[row] - n_present * flat_step[row] + of_background)
