"""Dense lines are a faster way to the same answers: with them, without, or with room for some features only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.bernoulli import profiles as layout
from shoal.bernoulli.adf import Block, counted, filtered, wholly
from shoal.bernoulli.profiles import dense_lines, empty_profiles
from shoal.bernoulli.scoring import scored
from shoal.datasets import make_zipf_ads


def started(seed, n=600, d=400, k=20):
    X = make_zipf_ads(n, n_features=d, n_clusters=k, keywords_per_item=6.0, random_state=seed).X
    seen = np.append(np.asarray(X.sum(axis=0)).ravel(), n)
    profiles = empty_profiles(seen, k, clutter=True, strength=2.0)
    return counted(profiles, Block(X[:k], np.ones(k)), wholly(1 + np.arange(k))), X


def read(profiles, rows):
    return filtered(profiles, Block(rows, np.ones(rows.shape[0])), width=4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_every_entry_has_its_place(seed):
    profiles, _ = read(*started(seed))
    dense = dense_lines(profiles)
    used = profiles.n_entries
    feature, cluster = profiles.feature[:used], profiles.cluster[:used]
    np.testing.assert_array_equal(dense.n_of, np.bincount(feature, minlength=profiles.n_features))
    inside = dense.line_of[feature] >= 0
    np.testing.assert_array_equal(inside, dense.n_of[feature] >= dense.least[0])
    assert 0 < inside.sum() < used
    lines = dense.line_of[feature[inside]]
    np.testing.assert_array_equal(dense.slots[lines, cluster[inside]], np.flatnonzero(inside) + 1)
    np.testing.assert_allclose(dense.lifts[lines, cluster[inside]], profiles.lift[:used][inside], rtol=1e-6)
    assert np.count_nonzero(dense.slots) == inside.sum()


@pytest.mark.parametrize("lines", [0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_answers_do_not_depend_on_them(monkeypatch, seed, lines):
    profiles, rows = started(seed)
    whole, shares = read(profiles, rows)
    all_lines = scored(whole, rows)
    monkeypatch.setattr(layout, "MOST_CELLS", lines * profiles.n_rows)
    assert dense_lines(profiles).lifts.shape[0] == lines
    few, same_shares = read(profiles, rows)
    np.testing.assert_array_equal(shares.rows, same_shares.rows)
    np.testing.assert_allclose(shares.values, same_shares.values, atol=1e-4)
    np.testing.assert_array_equal(few.feature[: few.n_entries], whole.feature[: whole.n_entries])
    np.testing.assert_allclose(few.hits[: few.n_entries], whole.hits[: whole.n_entries], atol=1e-3)
    np.testing.assert_allclose(few.mass, whole.mass, atol=1e-3)
    again = scored(few, rows)
    np.testing.assert_allclose(again.log_ratios, all_lines.log_ratios, atol=1e-3)
    np.testing.assert_array_equal(again.rows, all_lines.rows)
