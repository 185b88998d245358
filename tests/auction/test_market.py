import numpy as np
import pytest

from shoal.auction import Market, Policy, baseline_policy, landscapes
from shoal.auction.calibrate import calibrate
from shoal.auction.cluster import METHODS, cluster_keywords
from shoal.auction.landscape import COORDINATES
from shoal.densities import read_observations
from shoal.errors import BadInput


@pytest.fixture(scope="module")
def market():
    return Market(80, n_days=4, page_views_per_day=900, random_state=3)


@pytest.fixture(scope="module")
def log(market):
    return market.log(Policy.of(80, alpha=0.8, reserve=60, sidebar_reserve=4))


def test_the_seed_decides(market, log):
    again = Market(80, n_days=4, page_views_per_day=900, random_state=3).log(log.policy)
    other = Market(80, n_days=4, page_views_per_day=900, random_state=4).log(log.policy)
    np.testing.assert_array_equal(again.bid, log.bid)
    np.testing.assert_array_equal(again.clicked, log.clicked)
    assert other.n_bids != log.n_bids


def test_common_random_numbers(market, log):
    """Other reserves, same traffic, participants and click rates; only the bids of those who react differ."""
    dearer = market.log(Policy.of(80, alpha=0.8, reserve=120, sidebar_reserve=4))
    for name in ("starts", "keyword", "day", "weight", "ctr", "ad"):
        np.testing.assert_array_equal(getattr(dearer, name), getattr(log, name))
    moved = dearer.bid != log.bid
    assert moved.any()
    assert market.reacts[log.ad[moved]].all()
    nobody = Market(80, n_days=4, page_views_per_day=900, reacting=0.0, random_state=3)
    np.testing.assert_array_equal(nobody.log(log.policy).bid, nobody.log(dearer.policy).bid)


def test_bids_are_whole_cents_and_rates_are_rates(log):
    assert (log.bid >= 1).all()
    assert (log.bid == np.round(log.bid)).all()
    for rates in (log.ctr, log.true_ctr):
        assert ((rates > 0) & (rates <= 0.9)).all()
    assert (np.diff(log.keyword) >= 0).all()
    assert log.clicked[log.section == 0].sum() == 0


def test_the_baseline_policy_is_one_that_shows_about_as_much_as_asked(market):
    made = baseline_policy(market, tuning="coarse")
    shown = market.log(made.policy)
    mainline_yield = (shown.weight[shown.auction_of_bids()] * (shown.section == 1)).sum() / shown.weight.sum()
    assert 0.5 < mainline_yield < 2.5
    assert made.bins.max() < 20


def test_landscapes_are_the_smoothed_moments_of_shown_bids(log):
    land = landscapes(log, coordinates="logbid_ctr")
    assert land.agrees == 1.0
    keyword = int(np.argmax(land.n_bids))
    mine = (log.keyword[log.auction_of_bids()] == keyword) & (log.section == 1)
    values, weights = np.log(log.bid[mine]) * log.ctr[mine], log.weight[log.auction_of_bids()][mine]
    exact = np.average(values, weights=weights)
    assert land.mixtures[keyword, 2] == pytest.approx(exact, rel=0.1)  # drawn a little towards all keywords
    np.testing.assert_allclose(land.mixtures[:, :2].sum(1), 1)
    assert (land.mixtures[:, 4:] > 0).all()


def test_unsmoothed_landscapes_equal_the_general_reader(log):
    """The auction's own pass and shoal.densities.read see the same moments."""
    shown = log.section > 0
    auction = log.auction_of_bids()
    table = {
        "keyword": log.keyword[auction][shown],
        "section": log.section[shown],
        "x": (np.log(log.bid) * log.ctr)[shown],
        "w": log.weight[auction][shown],
    }
    general = read_observations(
        table, key="keyword", value="x", component="section", weight="w", family="gaussian_mixture", pseudo_count=0
    )
    land = landscapes(log, coordinates="logbid_ctr", pseudo_count=1e-12)
    rows = land.mixtures[general.keys.astype(int)]
    both = (general.X[:, :2] > 1e-6).all(1)
    np.testing.assert_allclose(rows[both][:, :4], general.X[both][:, :4], rtol=1e-6)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_clusters_every_landscape(log, coordinates, method):
    land = landscapes(log, coordinates=coordinates, sections="replayed")
    labels = cluster_keywords(land, 6, method=method, random_state=0)
    assert labels.shape == (80,)
    assert set(labels) <= set(range(6))


def test_calibration_finds_a_planted_error(log):
    """Estimates twice too high, and with differences exaggerated, are put right by the log's own clicks."""
    rng = np.random.default_rng(0)
    planted = Market(80, n_days=4, page_views_per_day=30_000, ctr_error=0.0, sampled_per_day=200, random_state=1)
    good = planted.log(Policy.of(80, reserve=60, sidebar_reserve=4))
    right = calibrate(good)
    assert right.level == pytest.approx(0, abs=0.03)
    assert right.slope == pytest.approx(1, abs=0.06)  # rates are clipped at 0.9, and clicks are few
    good.ctr = np.minimum(good.ctr * 2, 0.99)
    assert calibrate(good).level == pytest.approx(np.log(0.5), abs=0.05)
    noisy = planted.log(Policy.of(80, reserve=60, sidebar_reserve=4))
    noise = rng.normal(0, 0.5, planted.ctr.size)[noisy.ad]
    noisy.ctr = np.minimum(noisy.ctr * np.exp(noise), 0.99)
    assert calibrate(noisy).slope < 0.85


def test_errors_say_what_to_do(log):
    with pytest.raises(BadInput, match="reacting is 2"):
        Market(5, reacting=2)
    with pytest.raises(BadInput, match="n_days is 0"):
        Market(5, n_days=0)
    with pytest.raises(BadInput, match="coordinates is 'x'"):
        landscapes(log, coordinates="x")
    with pytest.raises(BadInput, match="method is 'k'"):
        cluster_keywords(landscapes(log), 3, method="k")
    log.clicked, kept = None, log.clicked
    with pytest.raises(BadInput, match="no clicks to calibrate"):
        calibrate(log)
    log.clicked = kept
