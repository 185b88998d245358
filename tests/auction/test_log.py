import datetime

import numpy as np
import pandas as pd
import pytest

from shoal.auction import Market, Policy, Settings, optimize, read_log, replay
from shoal.auction.export import export_plan, write_log
from shoal.auction.result_pages import result_pages
from shoal.errors import BadInput, BadSource, MissingColumn

POLICY = {"alpha": 1.0, "reserve": 50, "sidebar_reserve": 5}


def tables(n_auctions=20, seed=0):
    rng = np.random.default_rng(seed)
    auctions = pd.DataFrame(
        {
            "auction_id": [f"a{i:03}" for i in range(n_auctions)],
            "keyword_id": rng.choice(["shoes", "hats", "bags"], n_auctions),
            "day": rng.integers(1, 4, n_auctions),
            "weight": rng.integers(1, 5, n_auctions),
        }
    )
    n = n_auctions * 4
    bids = pd.DataFrame(
        {
            "auction_id": np.repeat(auctions["auction_id"].to_numpy(), 4),
            "ad_id": np.tile(["w", "x", "y", "z"], n_auctions),
            "bid_cents": rng.integers(1, 200, n),
            "ctr": rng.uniform(0.01, 0.2, n),
        }
    )
    return bids, auctions


@pytest.fixture(scope="module")
def simulated():
    market = Market(60, n_days=3, page_views_per_day=400, random_state=1)
    return market.log(Policy.of(60, alpha=0.9, reserve=70, sidebar_reserve=4))


def test_a_log_survives_the_way_to_files_and_back(simulated, tmp_path):
    back = read_log(write_log(simulated, tmp_path / "log"))
    order = np.argsort(back.keywords.astype(str))  # names are sorted on reading
    assert sorted(simulated.keywords[np.unique(simulated.keyword)]) == back.keywords[order].tolist()
    assert (back.n_auctions, back.n_bids) == (simulated.n_auctions, simulated.n_bids)
    assert back.dropped == {}
    assert back.reference_ctr == simulated.reference_ctr
    for name in ("bid", "ctr", "clicked"):
        assert np.sort(getattr(back, name)) == pytest.approx(np.sort(getattr(simulated, name)))
    settings = Settings.relative(n_reserves=5)
    for part, wanted in zip(replay(back, settings).totals, replay(simulated, settings).totals, strict=True):
        np.testing.assert_allclose(part.sum(0), wanted.sum(0), rtol=1e-10)


def test_status_quo_replay_reproduces_the_logs_sections_and_prices(simulated, tmp_path):
    back = read_log(write_log(simulated, tmp_path / "log"))
    shown = result_pages(back)
    np.testing.assert_array_equal(shown.section, back.section)
    there = back.section > 0
    np.testing.assert_allclose(shown.price[there], back.price[there], rtol=1e-12)


def test_csv_parquet_frames_and_selects_give_the_same(tmp_path):
    bids, auctions = tables()
    bids.to_csv(tmp_path / "bids.csv", index=False)
    auctions.to_parquet(tmp_path / "auctions.parquet")
    wanted = read_log(bids, auctions, POLICY)
    for source in (
        (tmp_path / "bids.csv", tmp_path / "auctions.parquet", POLICY),
        (f"SELECT * FROM '{tmp_path}/bids.csv'", auctions, POLICY),
    ):
        found = read_log(*source)
        np.testing.assert_array_equal(found.starts, wanted.starts)
        np.testing.assert_allclose(found.bid, wanted.bid)
        np.testing.assert_allclose(found.weight, wanted.weight)
    assert wanted.days.tolist() == [1, 2, 3]
    assert (np.diff(wanted.keyword) >= 0).all()


def test_own_column_names_and_a_policy_table():
    bids, auctions = tables()
    policy = pd.DataFrame({"keyword_id": ["bags", "hats", "shoes"], "reserve": [10, 20, 30], "alpha": [1, 0.5, 2]})
    found = read_log(bids.rename(columns={"bid_cents": "cpc"}), auctions, policy, names={"bid_cents": "cpc"})
    assert found.policy.reserve.tolist() == [10, 20, 30]
    assert found.policy.alpha.tolist() == [1, 0.5, 2]
    with pytest.raises(BadInput, match="1 of 3 keywords have no reserve"):
        read_log(bids, auctions, policy.iloc[:2])


def test_unusable_rows_are_counted_with_the_reason():
    bids, auctions = tables()
    bids["bid_cents"] = bids["bid_cents"].astype(object)
    for row, (column, value) in enumerate(
        [("bid_cents", -3), ("bid_cents", 0), ("bid_cents", "free"), ("ctr", None), ("ctr", 0.0), ("ctr", 1.7)]
    ):
        bids.loc[row, column] = value
    bids["bid_cents"] = bids["bid_cents"].astype(str)
    bids.loc[6, "auction_id"] = "lost"
    auctions.loc[19, "weight"] = 0
    found = read_log(bids, auctions, POLICY)
    assert found.dropped == {
        "auction with a weight that is missing, negative or 0": 1,
        "bid of an auction that is not there": 5,  # the lost one, and the four of the auction without weight
        "bid missing or not a number": 1,
        "bid of 0 or less": 2,
        "click rate missing or not a number": 1,
        "click rate of 0 or less": 1,
        "click rate above 1": 1,
    }
    assert found.n_bids == 80 - 11


def test_an_advertiser_keeps_its_best_ad():
    bids, auctions = tables(2)
    bids["advertiser_id"] = ["A", "A", "B", "C"] * 2
    bids["bid_cents"], bids["ctr"] = [10, 90, 30, 30] * 2, 0.04
    found = read_log(bids, auctions, POLICY)
    assert found.dropped == {"second bid of an advertiser in the same auction (the best is kept)": 2}
    assert sorted(found.bid.tolist()) == [30, 30, 30, 30, 90, 90]


def test_empty_auctions_are_page_views_too():
    bids, auctions = tables(5)
    found = read_log(bids[bids["auction_id"] != "a002"], auctions, POLICY)
    assert found.n_auctions == 5
    assert (np.diff(found.starts) == 0).sum() == 1
    assert found.page_views().sum() == auctions["weight"].sum()


def test_a_day_without_traffic_is_a_day():
    bids, auctions = tables()
    auctions["day"] = [datetime.date(2024, 3, 1) if i % 2 else datetime.date(2024, 3, 3) for i in range(20)]
    found = read_log(bids, auctions, POLICY)
    assert found.days.tolist() == ["2024-03-01", "2024-03-02", "2024-03-03"]
    assert set(found.day.tolist()) == {0, 2}


@pytest.mark.parametrize("column", ["ctr", "bid_cents", "auction_id"])
def test_a_missing_column_is_named(column):
    bids, auctions = tables()
    with pytest.raises(MissingColumn, match=f"no column '{column}'"):
        read_log(bids.drop(columns=column), auctions, POLICY)


def test_other_errors_say_what_to_do(tmp_path):
    bids, auctions = tables()
    with pytest.raises(BadInput, match="give policy="):
        read_log(bids, auctions)
    with pytest.raises(BadInput, match=r"'a000' appears 2 times"):
        read_log(bids, pd.concat([auctions, auctions.head(1)]), POLICY)
    with pytest.raises(BadSource, match="no bids table"):
        read_log(tmp_path)
    with pytest.raises(BadInput, match="no usable bid"):
        read_log(bids.assign(bid_cents=-1), auctions, POLICY)
    with pytest.raises(BadInput, match="'top'"):
        read_log(bids.assign(section="top"), auctions, POLICY)


def test_one_keyword_with_very_many_bids():
    n = 20_000
    rng = np.random.default_rng(0)
    bids = pd.DataFrame({"auction_id": np.repeat(np.arange(n), 10), "ad_id": np.tile(np.arange(10), n)})
    bids["bid_cents"], bids["ctr"] = rng.integers(1, 200, 10 * n), rng.uniform(0.01, 0.1, 10 * n)
    bids["keyword_id"], bids["day"] = "only", 1
    log = read_log(bids, policy=POLICY)
    assert (log.n_keywords, log.n_bids) == (1, 10 * n)
    assert replay(log, Settings.relative(n_reserves=3)).clicks.shape == (1, 15)


def test_reserve_tables_in_every_format(simulated, tmp_path):
    table = replay(simulated)
    for clusters in (None, np.arange(60) % 7):
        plan = optimize(table, clusters=clusters)
        folder = tmp_path / str(clusters is None)
        files = export_plan(plan, simulated, table, folder)
        assert sorted(file.name for file in files) == sorted(
            [f"{name}.{kind}" for name in ("reserves", "keywords") for kind in ("csv", "json", "parquet")]
            + ["plan.json"]
        )
        frames = [pd.read_csv(folder / "reserves.csv"), pd.read_parquet(folder / "reserves.parquet")]
        assert frames[0].shape == frames[1].shape
        assert frames[0]["keywords"].sum() == 60
        keywords = pd.read_json(folder / "keywords.json")
        multiplier = frames[1].set_index("group")["reserve_multiplier"][keywords["group"]].to_numpy()
        np.testing.assert_allclose(keywords["reserve"], keywords["logged_reserve"] * multiplier)
    with pytest.raises(BadInput, match="xlsx"):
        export_plan(plan, simulated, table, tmp_path, formats=["xlsx"])
