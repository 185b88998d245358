"""From tables to plans: levels, margins, held-out days, reports."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student_t

from auction.samples import random_log
from shoal.auction import (
    Infeasible,
    Market,
    Settings,
    baseline_policy,
    evaluate,
    optimize,
    recommend,
    replay,
    replay_blocks,
)
from shoal.auction.evaluate import OURS, UNGUARDED, adjusted, day_intervals
from shoal.auction.optimize import shrunken
from shoal.auction.plots import drawing
from shoal.auction.recommend import Level, _guarded_margins, hold_out, levels_for, margins_from
from shoal.auction.report import write_report
from shoal.auction.statistics import accumulate, merge
from shoal.errors import BadInput, CannotMerge, MissingExtra

QUICK = Settings.relative(alphas=(-0.2, 0.0, 0.2), n_reserves=9)


@pytest.fixture(scope="module")
def market():
    return Market(60, n_days=6, page_views_per_day=700, random_state=0)


@pytest.fixture(scope="module")
def log(market):
    return market.log(baseline_policy(market, tuning="coarse").policy)


@pytest.fixture(scope="module")
def table(log):
    return replay(log, QUICK, by_day=True)


def test_keyword_level_is_never_worse_in_sample(table):
    clusters = np.arange(60) % 8
    keyword, cluster = optimize(table, seconds=60), optimize(table, clusters=clusters, seconds=60)
    assert keyword.predicted.clicks >= cluster.predicted.clicks - 1e-6 * keyword.predicted.clicks
    for plan in (keyword, cluster):
        assert plan.lift()["revenue"] >= -1e-9
        assert plan.lift()["mainline_yield"] <= 0.05 + 1e-9
        assert plan.gap <= 1e-3  # certified, whatever time the machine had
    assert all(len(set(cluster.choice[clusters == c])) == 1 for c in range(8))


def test_objectives_and_limits(table):
    plan = optimize(table, maximize="revenue", clicks=0.98, mainline_yield=None, ad_yield=1.0)
    assert plan.lift()["revenue"] > 0
    assert plan.lift()["clicks"] >= -0.02 - 1e-9
    assert plan.lift()["ad_yield"] <= 1e-9
    assert set(plan.shadow_prices) == {"clicks", "ad_yield"}
    free = optimize(table, revenue=None, mainline_yield=None)
    assert free.predicted.clicks == pytest.approx(table.over_days().clicks.max(1).sum())


def test_infeasible_names_the_limit_and_what_can_be_reached(table):
    with pytest.raises(Infeasible, match=r"revenue of 9 times the log's cannot be reached: it is at most") as caught:
        optimize(table, revenue=9.0)
    reachable = caught.value.achievable["revenue"]
    assert 1 < reachable < 9
    optimize(table, revenue=0.999 * reachable, mainline_yield=None)
    with pytest.raises(Infeasible, match="cannot all be kept together") as caught:
        optimize(table, revenue=0.97 * reachable, mainline_yield=0.6)
    assert set(caught.value.achievable) == {"revenue", "mainline_yield"}
    with pytest.raises(BadInput, match="maximize is 'fame'"):
        optimize(table, maximize="fame")


def test_shrinking_runs_from_keywords_to_clusters(table):
    clusters, whole = np.arange(60) % 5, table.over_days()
    np.testing.assert_allclose(shrunken(whole, clusters, 0.0).clicks, whole.clicks)
    far = shrunken(whole, clusters, 1e12)
    rates = far.clicks / np.maximum(whole.page_views, 1e-12)[:, None]
    inside = np.flatnonzero((clusters == 2) & (whole.page_views > 0))
    np.testing.assert_allclose(rates[inside], rates[inside[:1]].repeat(inside.size, 0), rtol=1e-6)
    halfway = shrunken(whole, clusters, 30.0)
    np.testing.assert_allclose(halfway.grouped(clusters).page_views, whole.grouped(clusters).page_views)


def test_held_out_days_are_really_left_out(table):
    held = hold_out(table, Level("keyword"), {})
    assert len(held.by_day) == 6
    plan = optimize(table.over_days([0, 1, 2, 4, 5]), tol=1e-3, seconds=2)
    day = table.over_days([3])
    change = day.under(plan.choice).clicks / day.baseline().clicks - 1
    assert held.by_day[3]["clicks"] == pytest.approx(change, abs=2e-3)
    limits = {"revenue": 1.0, "mainline_yield": 1.05}
    margins = margins_from(held, limits)
    days = np.array([day["revenue"] for day in held.by_day])
    drift = max(held.lift["revenue"] - held.later["revenue"], held.lift["revenue"] - held.earlier["revenue"], 0)
    noise = student_t.ppf(0.95, 5) * days.std(ddof=1) * np.sqrt(2 / 6)  # 90 % shared by two limits; 6 days, 6 ahead
    assert margins["revenue"] == pytest.approx(np.clip(-held.lift["revenue"] + 2**0.5 * drift + noise, -0.05, 0.3))
    assert margins_from(held, limits, probability=0.99)["revenue"] >= margins["revenue"]


def test_margins_are_those_of_plans_that_have_margins(table, monkeypatch):
    held, limits = hold_out(table, Level("cluster", np.arange(60) % 8), {}), {"revenue": 1.0, "mainline_yield": 1.05}
    first, asked = margins_from(held, limits), []

    def noted(table, level, goals):
        asked.append(goals["margins"])
        return replace(held, lift=held.lift | {"revenue": first["revenue"] - 0.02})

    monkeypatch.setattr(sys.modules["shoal.auction.recommend"], "hold_out", noted)
    margins = _guarded_margins(table, held, limits, {}, 0.9)
    assert asked == [first]  # the back-test is of a plan that has them
    assert margins["revenue"] > 0.02 / (1 + first["revenue"])  # what was missed of the limit that was moved
    monkeypatch.setattr(sys.modules["shoal.auction.recommend"], "hold_out", cannot_be_kept)
    assert _guarded_margins(table, held, limits, {}, 0.9) == first


def cannot_be_kept(table, level, goals):
    raise Infeasible("too much", {})


@pytest.mark.parametrize("clusters", [None, np.arange(60) % 8])
@pytest.mark.parametrize("shrinkage", [None, 20.0])
def test_no_keyword_loses_more_than_its_limit(table, clusters, shrinkage):
    if clusters is None and shrinkage is not None:
        return
    limits = {"clicks": 0.95, "revenue": 0.8}
    plan = optimize(table, keyword_limits=limits, clusters=clusters, shrinkage=shrinkage)
    per_keyword, rows = table.over_days(), np.arange(60)
    for name, limit in limits.items():
        after = getattr(per_keyword, name)[rows, plan.choice]
        assert (after >= limit * getattr(per_keyword.status_quo, name) * (1 - 1e-6)).all()
    free = optimize(table, clusters=clusters, shrinkage=shrinkage)
    assert plan.predicted.clicks <= free.predicted.clicks * (1 + 1e-3)
    with pytest.raises(BadInput, match="between 0 and 1"):
        optimize(table, keyword_limits={"clicks": 2.0})
    with pytest.raises(BadInput, match="may limit clicks and revenue"):
        optimize(table, keyword_limits={"ads": 0.5})


def test_parts_of_a_log_are_replayed_like_the_whole(log):
    parts = [log.on_days([0, 1]), log.on_days([2]), log.on_days([3, 4, 5])]
    for by_day in (False, True):
        whole = replay(log, QUICK, by_day=by_day)
        folded = replay_blocks(iter(parts), QUICK, by_day=by_day)
        for one, other in zip(whole.totals, folded.totals, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(whole.page_views, folded.page_views)
    one, other = (accumulate(parts[0], settings)[0] for settings in (QUICK, Settings.relative()))
    with pytest.raises(CannotMerge):
        merge(one, other)


def test_days_without_traffic_are_skipped():
    log = random_log(0, n_auctions=400, n_days=4, ties=False)
    log = log.on_days([0, 1, 3])
    plan = recommend(log, settings=QUICK, n_clusters=2)
    assert plan.facts["days"] == ["0", "1", "3"]


@pytest.mark.parametrize("level", ["cluster", "keyword", "shrunken", "auto"])
def test_recommend(log, table, level):
    plan = recommend(log, table=table, n_clusters=6, level=level)
    names = [lvl.name for lvl in levels_for(np.zeros(60, int))]
    wanted = {"cluster": names[:1], "keyword": names[-1:], "shrunken": names[1:-1], "auto": names}[level]
    assert set(plan.facts["held out"]) == set(wanted)
    assert plan.facts["level"] in wanted
    assert plan.choice.shape == (60,)
    json.dumps(plan.facts)
    with pytest.raises(BadInput, match="level is 'x'"):
        recommend(log, table=table, n_clusters=6, level="x")


def test_held_out_days_choose_among_numbers_of_clusters(log, table):
    plan = recommend(log, table=table, n_clusters=(4, 12), level="cluster")
    assert len(plan.facts["held out"]) == 2


def test_evaluation_side_by_side_and_the_report(log, market, tmp_path):
    methods = ("k-GMM", "keyword", ("halves", np.arange(60) // 30), OURS, UNGUARDED)
    found = evaluate(log, methods=methods, n_clusters=6, settings=QUICK, market=market, seconds=0.3)
    assert [result.method for result in found.results] == ["k-GMM", "keyword", "halves", OURS, UNGUARDED]
    ours = found[OURS]
    low, high = ours.interval["clicks"]
    assert low <= ours.held_out["clicks"] <= high
    assert ours.reacting is not None
    assert found.train_days == ["0", "1", "2"]
    assert "shoal, no margins" in found.table()
    train = log.on_days(found.fitted)
    page = write_report(tmp_path / "r.html", train, ours.plan, replay(train, QUICK), evaluation=found)
    text = page.read_text()
    assert text.count('<svg role="img" aria-label="') >= 5
    assert 'aria-label=""' not in text
    assert "Bids are held fixed" in text
    assert "Plotly.newPlot" in text
    outside = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"(?!data:)([^\"]+)\"", text)
    assert outside == []  # opens without a network
    table = replay(train, QUICK)
    bare = write_report(tmp_path / "bare.html", train, ours.plan, table, keywords=["keyword 7"]).read_text()
    assert "in-sample: expect less" in bare
    with pytest.raises(BadInput, match="no keyword 'zebra'"):
        write_report(tmp_path / "bare.html", train, ours.plan, table, keywords=["zebra"])


def test_adjusted_charges_for_missed_revenue_and_credits_unused_room():
    limits, prices = {"revenue": 1.0, "mainline_yield": 1.05}, {"revenue": 0.5, "mainline_yield": 2.0}
    change = {"clicks": 0.10, "revenue": -0.02, "mainline_yield": 0.04}
    assert adjusted(change, limits, prices, "clicks") == pytest.approx(0.10 - 0.01 + 0.02)
    assert adjusted({**change, "revenue": 0.3}, limits, prices, "clicks") == pytest.approx(0.12)


def test_intervals_over_equal_days_are_points():
    after, before = np.tile([2.0, 3, 4, 5], (5, 1)), np.ones((5, 4))
    assert day_intervals(after, before)["clicks"] == (1.0, 1.0)


def test_without_the_report_extra_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shoal\[report\]'"), drawing():
        pass
