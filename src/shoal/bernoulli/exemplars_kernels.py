# mypy: ignore-errors
"""Suggestion by profiles of single rows and single keywords."""

from __future__ import annotations

import numpy as np

from shoal.bernoulli.suggestion_kernels import offer
from shoal.jit import kernel

FAR = 25.0  # rows that are e^-25 times as likely as the likeliest are left out


@kernel
def vote_of_rows(observed, rejected, rows, strength, absent, likeness, touched_rows, votes, touched, mark):
    """Every remembered row is a cluster of one: add its keywords to ``votes``, by how likely it is; return how many.

    A row's belief in a keyword is (strength b + x) / (strength + 1); keywords that were not given count as absent by
    the part ``absent``.
    """
    n_rows = 0
    for feature in observed:
        gain = np.log1p(1.0 / (strength * rows.background[feature]))
        for at in range(rows.row_ptr[feature], rows.row_ptr[feature + 1]):
            row = rows.rows[at]
            if likeness[row] == 0.0:
                touched_rows[n_rows] = row
                n_rows += 1
            likeness[row] += gain
    for feature in rejected:
        fall = np.log1p(1.0 / strength)
        for at in range(rows.row_ptr[feature], rows.row_ptr[feature + 1]):
            if likeness[rows.rows[at]] > 0.0:
                likeness[rows.rows[at]] = max(likeness[rows.rows[at]] - fall, 1e-300)
    best = -np.inf
    for number in range(n_rows):
        row = touched_rows[number]
        length = rows.feature_ptr[row + 1] - rows.feature_ptr[row]
        best = max(best, likeness[row] - absent * length)
    total, n_touched = 0.0, 0
    for number in range(n_rows):
        row = touched_rows[number]
        first, last = rows.feature_ptr[row], rows.feature_ptr[row + 1]
        score = likeness[row] - absent * (last - first) - best
        likeness[row] = 0.0
        if score < -FAR:
            continue
        weight = np.exp(score)
        total += weight
        for at in range(first, last):
            feature = rows.features[at]
            if mark[feature] == 0:
                mark[feature] = 1
                touched[n_touched] = feature
                n_touched += 1
            votes[feature] += weight
    for number in range(n_touched):
        votes[touched[number]] /= total
    return n_touched


@kernel
def vote_of_keywords(observed, rows, strength, evidence, touched, n_touched, mark):
    """Every keyword is a cluster of the rows that have it: add up what the observed ones say for it, in nats.

    ``evidence`` receives, for keywords met with an observed one, the sum of log p(e | d) / p(e | not d) above what it
    is for a keyword never met; return how many keywords are touched by now.
    """
    for given in observed:
        b = rows.background[given]
        of_given = rows.seen[given]
        for at in range(rows.pair_ptr[given], rows.pair_ptr[given + 1]):
            feature, together = rows.pair_features[at], rows.pair_counts[at]
            if feature == given:
                continue
            if mark[feature] == 0:
                mark[feature] = 1
                touched[n_touched] = feature
                n_touched += 1
            never = np.log(strength * b) - np.log(of_given + strength * b)
            met = np.log(together + strength * b) - np.log(max(of_given - together, 0.0) + strength * b)
            evidence[feature] += met - never
    return n_touched


@kernel
def never_met(observed, rows, strength):
    """The part of the evidence for a keyword never met with any observed one that depends on the observed alone."""
    total = 0.0
    for given in observed:
        b = rows.background[given]
        total += np.log(strength * b) - np.log(rows.seen[given] + strength * b)
    return total


@kernel
def suggest_by_voices(indptr, indices, no_indptr, no_indices, rows, settings, popular, out_features, out_probs):
    """For each row of observed keywords, the likeliest others by a pool of both voices.

    ``settings``: strength and absent part for rows; strength and trust for keywords; weight of the rows' voice.
    """
    strength, absent, keyword_strength, trust, blend = settings[0], settings[1], settings[2], settings[3], settings[4]
    n_features, n_memory = rows.background.size, rows.feature_ptr.size - 1
    likeness, touched_rows = np.zeros(n_memory), np.zeros(n_memory, np.int64)
    votes, evidence = np.zeros(n_features), np.zeros(n_features)
    mark, touched = np.zeros(n_features, np.int8), np.zeros(n_features, np.int64)
    n = rows.seen[-1]
    for ad in range(indptr.size - 1):
        observed, rejected = indices[indptr[ad] : indptr[ad + 1]], no_indices[no_indptr[ad] : no_indptr[ad + 1]]
        n_touched = vote_of_rows(
            observed, rejected, rows, strength, absent, likeness, touched_rows, votes, touched, mark
        )
        n_touched = vote_of_keywords(observed, rows, keyword_strength, evidence, touched, n_touched, mark)
        base = never_met(observed, rows, keyword_strength)
        for feature in observed:
            mark[feature] = 2
        for feature in rejected:
            mark[feature] = 2
        out_features[ad, :], out_probs[ad, :] = -1, 0.0
        n_popular = 0
        for number in range(n_touched + popular.size):
            if number < n_touched:
                feature = touched[number]
                if mark[feature] == 2:
                    continue
            else:
                feature = popular[number - n_touched]
                if mark[feature] != 0:
                    continue
                n_popular += 1
                if n_popular > out_features.shape[1]:
                    break
            b, seen = rows.background[feature], rows.seen[feature]
            odds = np.log(n - seen + keyword_strength) - np.log(seen + keyword_strength)
            log_odds = np.log(b / (1.0 - b)) + trust * (evidence[feature] + base + observed.size * odds)
            by_keywords = -np.log1p(np.exp(-log_odds)) if log_odds > -30.0 else log_odds
            by_rows = np.log(votes[feature] + 0.01 * b)
            offer(feature, np.exp(blend * by_rows + (1.0 - blend) * by_keywords), out_features[ad], out_probs[ad])
        for number in range(n_touched):
            feature = touched[number]
            votes[feature], evidence[feature], mark[feature] = 0.0, 0.0, 0
        for feature in observed:
            mark[feature] = 0
        for feature in rejected:
            mark[feature] = 0
