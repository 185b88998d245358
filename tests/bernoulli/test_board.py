"""The board is a faster way to the same answers: with it, without it, or with room for some keywords only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.bernoulli import profiles as layout
from shoal.bernoulli.adf import filtered
from shoal.bernoulli.births import seeded
from shoal.bernoulli.profiles import board_of, copied, empty_profiles
from shoal.bernoulli.scoring import labelled, likelihoods
from shoal.datasets import zipf_ads


def started(seed, n=600, d=400, k=20):
    ads = zipf_ads(n, n_features=d, n_clusters=k, keywords_per_item=6.0, random_state=seed)
    seen = np.append(np.asarray(ads.X.sum(axis=0)).ravel(), n)
    profiles = empty_profiles(seen, k, clutter=True, strength=2.0, weight=1.0, flat=False)
    return seeded(profiles, ads.X, np.arange(k), 1 + np.arange(k), 1.0), ads.X


def read(profiles, rows):
    n = rows.shape[0]
    return filtered(copied(profiles), rows, np.ones(n), np.arange(n), negligible=0.01, width=4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_every_entry_has_its_place_on_the_board(seed):
    profiles, _ = read(*started(seed))
    board = board_of(profiles)
    used = profiles.n_entries
    feature, cluster = profiles.feature[:used], profiles.cluster[:used]
    np.testing.assert_array_equal(board.n_of, np.bincount(feature, minlength=profiles.n_features))
    on_board = board.line_of[feature] >= 0
    np.testing.assert_array_equal(on_board, board.n_of[feature] >= board.least[0])
    assert 0 < on_board.sum() < used
    lines = board.line_of[feature[on_board]]
    np.testing.assert_array_equal(board.slots[lines, cluster[on_board]], np.flatnonzero(on_board) + 1)
    np.testing.assert_allclose(board.lifts[lines, cluster[on_board]], profiles.lift[:used][on_board], rtol=1e-6)
    assert np.count_nonzero(board.slots) == on_board.sum()


@pytest.mark.parametrize("lines", [0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_answers_do_not_depend_on_the_board(monkeypatch, seed, lines):
    profiles, rows = started(seed)
    whole, shares = read(profiles, rows)
    scores, labels = likelihoods(whole, rows), labelled(whole, rows).rows
    monkeypatch.setattr(layout, "MOST_CELLS", lines * profiles.n_rows)
    assert board_of(profiles).lifts.shape[0] == lines
    few, same_shares = read(profiles, rows)
    np.testing.assert_array_equal(shares.rows, same_shares.rows)
    np.testing.assert_allclose(shares.values, same_shares.values, atol=1e-4)
    np.testing.assert_array_equal(few.feature[: few.n_entries], whole.feature[: whole.n_entries])
    np.testing.assert_allclose(few.hits[: few.n_entries], whole.hits[: whole.n_entries], atol=1e-3)
    np.testing.assert_allclose(few.mass, whole.mass, atol=1e-3)
    np.testing.assert_allclose(likelihoods(few, rows), scores, atol=1e-3)
    np.testing.assert_array_equal(labelled(few, rows).rows, labels)
