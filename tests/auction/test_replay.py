import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auction.samples import random_log
from oracles import auction as oracle
from shoal.auction.auction_log import PageLayout, Policy
from shoal.auction.replay import Settings, replay, replay_policy
from shoal.auction.result_pages import result_pages
from shoal.errors import BadInput

RESERVES = np.array([1.0, 4.0, 20.0, 35.5, 40.0, 60.0, 90.0, 500.0])
PAGE_EFFECTS = PageLayout(
    np.linspace(1, 0.3, 12).reshape(4, 3), np.array([[0.3, 0.2], [0.25, 0.2], [0.2, 0.1], [0.1, 0.05]])
)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(wanted).max()))


@given(seed=st.integers(0, 100_000), page_effects=st.booleans())
@settings(max_examples=25)
def test_every_setting_equals_the_auction_played_by_the_book(seed, page_effects):
    """Ties, empty auctions, one bidder, crowds, reserves below the sidebar's: all in the sample."""
    log = random_log(seed, n_auctions=25, layout=PAGE_EFFECTS if page_effects else None)
    choice = Settings(np.array([0.5, 1.0]), RESERVES, is_relative=False)
    table = replay(log, choice, clicks_from="true")
    for j in range(choice.n):
        policy = choice.policy(log.policy, np.full(log.n_keywords, j))
        wanted = oracle.replay(log, policy, log.true_ctr)
        for part, column in zip(table.totals, wanted.T, strict=True):
            close(part[:, j], column)


@pytest.mark.parametrize("seed", range(4))
def test_relative_settings_change_each_keywords_own_policy(seed):
    log = random_log(seed)
    choice = Settings.relative(alphas=(-0.5, 0.0, 0.2), n_reserves=5)
    table = replay(log, choice)
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, choice.n, log.n_keywords)
    wanted = oracle.replay(log, choice.policy(log.policy, picked))
    for part, column in zip(table.totals, wanted.T, strict=True):
        close(part[np.arange(log.n_keywords), picked], column)
    as_logged = oracle.replay(log, log.policy)
    for part, quo, column in zip(table.totals, table.status_quo, as_logged.T, strict=True):
        close(part[:, choice.status_quo], column)
        close(quo, column)
    assert table.baseline().clicks == pytest.approx(as_logged[:, 0].sum())


def test_days_and_clusters_add_up():
    log = random_log(3, n_auctions=200)
    by_day, whole = replay(log, by_day=True), replay(log)
    for part, wanted in zip(by_day.over_days().totals, whole.totals, strict=True):
        close(part, wanted)
    first = replay(log.on_days([0]))
    for part, wanted in zip(by_day.over_days([0]).totals, first.totals, strict=True):
        close(part, wanted)
    labels = np.array([0, 2, 0, 2, 2])
    clusters = whole.grouped(labels, 4)
    close(clusters.revenue[2], whole.revenue[labels == 2].sum(0))
    assert not clusters.clicks[[1, 3]].any()
    assert by_day.page_views.sum() == pytest.approx(log.weight.sum())


@given(seed=st.integers(0, 100_000))
@settings(max_examples=20)
def test_pages_equal_the_auction_played_by_the_book(seed):
    log = random_log(seed, n_auctions=30)
    shown = result_pages(log)
    for auction in range(log.n_auctions):
        q, at = log.keyword[auction], slice(log.starts[auction], log.starts[auction + 1])
        policy = [log.policy.alpha[q], log.policy.reserve[q], log.policy.sidebar_reserve[q], log.reference_ctr]
        page = oracle.play(log.bid[at], log.ctr[at], *policy, 4, 5)
        section, position, price = (np.array(part[at]) for part in shown)
        assert (section > 0).sum() == len(page)
        for i, wanted_section, place, wanted_price in page:
            assert (section[i], position[i]) == (wanted_section, place)
            assert price[i] == pytest.approx(wanted_price, rel=1e-12)
    there = shown.section > 0
    assert (shown.price[there] <= log.bid[there] * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_higher_reserve_never_shows_more(seed):
    log = random_log(seed)
    choice = Settings(np.array([1.0]), RESERVES, is_relative=False)
    table = replay(log, choice)
    for part in (table.mainline, table.clicks):
        assert (np.diff(part, axis=1) <= 1e-9).all()


def test_one_policy_and_the_thread_count(monkeypatch):
    log = random_log(1, n_auctions=300)
    policy = Policy.of(5, alpha=0.9, reserve=[1, 30, 40, 50, 300], sidebar_reserve=2)
    wanted = oracle.replay(log, policy)
    for module in ("replay", "result_pages"):
        monkeypatch.setattr(sys.modules[f"shoal.auction.{module}"], "AUCTIONS_PER_BLOCK", 17)
    for threads in ("1", "2"):
        monkeypatch.setenv("SHOAL_NUM_THREADS", threads)
        for part, column in zip(replay_policy(log, policy), wanted.T, strict=True):
            close(part, column)
        assert result_pages(log, policy).section.max() == 2


def test_errors_say_what_to_do():
    log = random_log(0)
    log.true_ctr = None
    with pytest.raises(BadInput, match="clicks_from='estimated'"):
        replay(log, clicks_from="true")
    with pytest.raises(BadInput, match="ascending"):
        Settings(np.array([1.0]), np.array([2.0, 1.0]))
    with pytest.raises(BadInput, match="by_day=True"):
        replay(log).over_days([0])
    with pytest.raises(BadInput, match="between 0 and 1"):
        PageLayout(mainline=(2.0,))
