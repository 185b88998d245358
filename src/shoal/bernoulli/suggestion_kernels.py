# mypy: ignore-errors
"""Which keywords go with those observed: all others are unknown, not absent."""

from __future__ import annotations

import numpy as np

from shoal.jit import kernel


@kernel
def score_observed(observed, rejected, profiles, means, log_weights, scores):
    """log gamma_l + sum of log mu over observed + sum of log(1 - mu) over rejected keywords."""
    scores[:] = log_weights
    for feature in observed:
        if profiles.shared[feature]:
            continue
        default = np.log(profiles.background[feature])
        for row in range(scores.size):
            scores[row] += profiles.log_ratio[row] + default
        slot = profiles.head[feature]
        while slot >= 0:
            row = profiles.cluster[slot]
            scores[row] += np.log(means[slot]) - profiles.log_ratio[row] - default
            slot = profiles.next_of_feature[slot]
    for feature in rejected:
        if profiles.shared[feature]:
            continue
        b = profiles.background[feature]
        for row in range(scores.size):
            scores[row] += np.log1p(-min(profiles.ratio[row] * b, 0.999))
        slot = profiles.head[feature]
        while slot >= 0:
            row = profiles.cluster[slot]
            scores[row] += np.log1p(-min(means[slot], 0.999999)) - np.log1p(-min(profiles.ratio[row] * b, 0.999))
            slot = profiles.next_of_feature[slot]


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
def suggest_rows(
    indptr, indices, no_indptr, no_indices, profiles, means, log_weights, popular, negligible, out_features, out_probs
):
    """For each row of observed (and rejected) keywords, the likeliest others and their probabilities.

    ``popular`` lists all keywords, most common first. Rows of ``out_features`` are padded with -1.
    """
    n_rows, n_features = profiles.mass.size, profiles.background.size
    scores, extra = np.zeros(n_rows), np.zeros(n_features)
    state = np.zeros(n_features, np.int8)  # 1: has extra probability, 2: given by the user
    touched = np.zeros(n_features, np.int64)
    for ad in range(indptr.size - 1):
        observed, rejected = indices[indptr[ad] : indptr[ad + 1]], no_indices[no_indptr[ad] : no_indptr[ad + 1]]
        score_observed(observed, rejected, profiles, means, log_weights, scores)
        best, total = scores.max(), 0.0
        for row in range(n_rows):
            scores[row] = np.exp(scores[row] - best)
            total += scores[row]
        for feature in observed:
            state[feature] = 2
        for feature in rejected:
            state[feature] = 2
        of_default, n_touched = 0.0, 0
        for row in range(n_rows):
            share = scores[row] / total
            of_default += share * profiles.ratio[row]
            if share < negligible:
                continue
            slot = profiles.first[row]
            while slot >= 0:
                feature = profiles.feature[slot]
                if state[feature] == 0:
                    state[feature] = 1
                    touched[n_touched] = feature
                    n_touched += 1
                extra[feature] += share * (means[slot] - profiles.ratio[row] * profiles.background[feature])
                slot = profiles.next_of_cluster[slot]
        out_features[ad, :], out_probs[ad, :] = -1, 0.0
        for number in range(n_touched):
            feature = touched[number]
            offer(feature, of_default * profiles.background[feature] + extra[feature], out_features[ad], out_probs[ad])
        n_offered = 0
        for feature in popular:
            if n_offered == out_features.shape[1]:
                break
            if state[feature] == 0:
                b = profiles.background[feature]
                offer(feature, b if profiles.shared[feature] else of_default * b, out_features[ad], out_probs[ad])
                n_offered += 1
        for number in range(n_touched):
            state[touched[number]], extra[touched[number]] = 0, 0.0
        for feature in observed:
            state[feature], extra[feature] = 0, 0.0
        for feature in rejected:
            state[feature], extra[feature] = 0, 0.0
