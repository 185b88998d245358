"""Six people, each with files as they have them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd

SHOPS = {
    "bikes": ["wheel", "chain", "pedal", "helmet", "saddle"],
    "cakes": ["flour", "sugar", "butter", "eggs", "oven"],
    "pets": ["dog", "cat", "leash", "bowl", "litter"],
}


def shop_ads(n, seed=0):
    rng = np.random.default_rng(seed)
    kinds = [list(SHOPS)[at % len(SHOPS)] for at in range(n)]
    return kinds, [rng.choice(SHOPS[kind], 3, replace=False).tolist() for kind in kinds]


def test_the_installed_package_is_the_one_that_runs(person):
    assert person.python("import shoal; print(shoal.__file__)").startswith(str(person.site))


def test_an_ad_engineer_finds_what_to_bid_on(person):
    """Lists as pandas writes them, semicolons, ids that come twice; tomorrow's file has braces instead."""
    kinds, words = shop_ads(300)
    ids = [f"ad{at // 2}" for at in range(300)]  # each id twice: two versions of an ad
    table = pd.DataFrame({"ad_id": ids, "keywords": words, "advertiser": kinds, "budget": 1.5})
    table.to_csv(person.folder / "ads.csv", sep=";", index=False)
    person.shoal("fit", "ads.csv", "-m", "bernoulli", "-k", 6, "--item", "ad_id", "--features", "keywords",
                 "--out", "ads.shoal", "--quiet")  # fmt: skip
    cards = json.loads(person.shoal("show", "ads.shoal", "--json").out)
    assert {name for card in cards for name in card["distinctive"]} <= {word for ws in SHOPS.values() for word in ws}
    said = person.shoal("suggest", "ads.shoal", "wheel", "chain", "-n", 3, "--json").out
    assert {one["name"] for one in json.loads(said)} == set(SHOPS["bikes"]) - {"wheel", "chain"}
    new = pd.DataFrame({"ad_id": ["x", "y", "z"], "keywords": ["{wheel,pedal}", "{cat,dog}", "{moon,star}"]})
    new.to_csv(person.folder / "new.csv", index=False)
    person.shoal("assign", "ads.shoal", "new.csv", "--out", "assigned.csv", "--quiet")
    rows = list(csv.DictReader((person.folder / "assigned.csv").read_text().splitlines()))
    assert [row["item"] for row in rows] == ["x", "y", "z"]
    assert rows[0]["cluster"] != rows[1]["cluster"]
    assert (rows[2]["cluster"], rows[2]["score"]) == ("-1", "")


def test_a_data_scientist_puts_it_into_a_pipeline(person):
    """A vectorizer's pipeline whose cards speak words; then a CSV of numbers that the command line takes by itself."""
    printed = person.python(
        """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
import pandas as pd, shoal
texts = ["red wine and white wine", "wine from red grapes", "grapes for wine", "bread from rye flour",
         "white flour for bread", "rye bread and flour"] * 5
pipeline = make_pipeline(TfidfVectorizer(stop_words="english"), shoal.SphericalKMeans(2, random_state=0)).fit(texts)
print(sorted(word for card in shoal.cluster_cards(pipeline) for word in card.distinctive[:1]))
frame = pd.DataFrame({"text": texts})
model = shoal.SphericalKMeans(2, random_state=0).fit(frame["text"])
print(model.predict(["more wine", "more bread"]).tolist(), shoal.cluster_cards(model)[0].items[0][0] in texts)
"""
    )
    first, second = printed.splitlines()
    assert first == "['bread', 'wine']" or first == "['flour', 'wine']"
    assert second in ("[0, 1] True", "[1, 0] True")
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 60)
    table = {"id": [f"f{at}" for at in range(120)], "length": 1.5 + 3 * kind + 0.1 * rng.normal(size=120),
             "width": 0.3 + 1.2 * kind + 0.1 * rng.normal(size=120)}  # fmt: skip
    pd.DataFrame(table).to_csv(person.folder / "flowers.csv", index=False)
    said = person.shoal("fit", "flowers.csv", "-m", "auto", "-k", 4, "--out", "flowers.shoal")
    assert "--model auto takes mixture: the rows are measurements" in said.err
    cards = json.loads(person.shoal("show", "flowers.shoal", "--json").out)
    assert sorted(card["size"] for card in cards) == [60, 60]
    assert {phrase.rsplit(" ", 1)[1] for card in cards for phrase in card["distinctive"]} == {"(low)", "(high)"}


def test_a_newsroom_sees_stories_begin(person):
    """dd/mm/yyyy in a file of headlines, a report with stories over time, then a burst on a live pipe."""
    stories = {"fire": "fire in the old church tower", "vote": "parliament votes on the budget law",
               "cup": "the home team wins the cup final"}  # fmt: skip
    rows = [
        {
            "published": f"{1 + 9 * at + day % 9:02d}/03/2024",
            "headline": f"{text} {('today', 'again', 'live')[day % 3]}",
        }
        for at, text in enumerate(stories.values())
        for day in range(30)
    ]
    pd.DataFrame(rows).to_csv(person.folder / "news.csv", index=False)
    columns = ["--text", "headline", "--time", "published"]
    refused = person.shoal("fit", "news.csv", "-m", "stream", *columns, code=2)
    assert "--time-format 'dd/mm/yyyy'" in refused.err
    person.shoal("fit", "news.csv", "-m", "stream", *columns, "--time-format", "dd/mm/yyyy", "--set",
                 "kernel=exponential:half_life=2d", "--out", "news.shoal", "--report", "news.html", "-q")  # fmt: skip
    cards = json.loads(person.shoal("show", "news.shoal", "--json").out)
    named = " ".join(word for card in cards for word in card["distinctive"])
    assert all(word in named for word in ("church", "budget", "cup"))
    assert any(card["items"][0][0].startswith("fire in the old church") for card in cards)
    page = (person.folder / "news.html").read_text()
    assert '"time": {"start": 1709251200' in page
    burst = [
        {"id": f"m{at}", "time": 1_711_000_000 + 60 * at, "text": "storm closes the harbor bridge"} for at in range(12)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in burst)
    answers = person.shoal("stream", "news.shoal", "--dir", "live", stdin=lines).out.splitlines()
    clusters = [json.loads(line)["cluster"] for line in answers if '"cluster"' in line and '"id"' in line]
    assert len(clusters) >= 12
    assert len(set(clusters[-10:])) == 1


def test_a_statistician_describes_a_mixed_table(person):
    """Numbers, counts and categories with holes in them: clusters with intervals, and what the holes may hold."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    table = pd.DataFrame(
        {
            "age": np.where(kind, 70, 30) + 4 * rng.normal(size=300),
            "visits": rng.poisson(np.where(kind, 9, 1)),
            "plan": np.where(rng.random(300) < 0.9, np.where(kind, "gold", "basic"), "other"),
        }
    )
    table.loc[::7, "age"] = np.nan
    table.to_csv(person.folder / "patients.csv", index=False)
    printed = person.python(
        """
import pandas as pd, numpy as np, shoal
table = pd.read_csv("patients.csv")
model = shoal.ExponentialFamilyMixture(6, family="mixed", random_state=0).fit(table)
cards = shoal.cluster_cards(model)
print(len(cards), all(card.features[0].low <= card.features[0].value <= card.features[0].high for card in cards))
print("; ".join(card.name for card in cards))
filled = model.impute(table)["age"]
print(bool(np.isfinite(np.asarray(filled.values, dtype=float)).all()))
print(shoal.choose_n_clusters(shoal.ExponentialFamilyMixture(family="gaussian"), table[["visits"]].to_numpy(float)
      + 0.1 * np.arange(300)[:, None] / 300, [2, 3], n_resamples=2, random_state=0).n_clusters in (2, 3))
"""
    )
    count, names, filled, chosen = printed.splitlines()
    assert count == "2 True"
    assert "(high)" in names
    assert "(low)" in names
    assert (filled, chosen) == ("True", "True")


def test_a_marketplace_manager_gets_a_plan_that_keeps_its_limits(person):
    """Own column names, dollars, no policy in the log, a limit for every keyword, and a page for the meeting."""
    rng = np.random.default_rng(0)
    n = 900
    auction = np.repeat(np.arange(n // 3), 3)
    log = pd.DataFrame(
        {"auction_id": auction, "ad_id": np.tile([1, 2, 3], n // 3), "max_cpc": rng.uniform(0.2, 2.0, n).round(2),
         "pctr": rng.uniform(0.01, 0.1, n), "query": np.repeat(rng.choice(["shoes", "$5 boots_$6", "[/x]"], n // 3), 3),
         "day": auction % 6}
    )  # fmt: skip
    log.to_csv(person.folder / "bids.csv", index=False)
    own = ["--names", "bid_cents=max_cpc", "--names", "ctr=pctr", "--names", "keyword_id=query", "--units", "whole",
           "--reserve", "0.9", "--sidebar-reserve", "0.1", "--currency", "USD", "-q"]  # fmt: skip
    said = person.shoal(
        "auction", "optimize", "bids.csv", *own, "--keyword-clicks", 0.8, "-k", 2, "--json", "--out", "plan"
    )
    plan = json.loads(said.out)
    assert (plan["probability"], plan["revenue"]["currency"]) == (0.9, "USD")
    keywords = pd.read_csv(person.folder / "plan" / "keywords.csv")
    assert keywords["logged_reserve"].unique().tolist() == [0.9]  # in the unit of the log
    assert set(keywords["keyword_id"]) == {"shoes", "$5 boots_$6", "[/x]"}
    person.shoal("auction", "report", "bids.csv", *own, "-k", 2, "--out", "meeting.html")
    assert "USD per click" in (person.folder / "meeting.html").read_text()
    assert "--units" in person.shoal("auction", "optimize", "--help").out


def test_a_careless_one_loses_nothing(person):
    """Another delimiter, the output onto the input, a device, names that are markup: refused in a line, or harmless."""
    _, words = shop_ads(120)
    rows = pd.DataFrame(
        {"id": [f"$x_{at} [/x]" for at in range(120)], "tags": ["|".join([*w, "$a_b$", "[/x]"]) for w in words]}
    )
    rows.to_csv(person.folder / "shops.csv", index=False)
    columns = ["--item", "id", "--features", "tags", "--delimiter", "|"]
    before = (person.folder / "shops.csv").read_bytes()
    refused = person.shoal("fit", "shops.csv", *columns, "-k", 3, "--out", "shops.csv", code=2)
    assert "also an input" in refused.err
    refused = person.shoal("fit", "shops.csv", *columns, "-k", 3, "--out", "/dev/full", code=2)
    assert "it is a device" in refused.err
    assert (person.folder / "shops.csv").read_bytes() == before
    shown = person.shoal("fit", "shops.csv", *columns, "-k", 3, "--out", "shops.shoal", "--report", "shops.html", "-q")
    assert "$x_" in shown.out
    assert "[/x]" in shown.out
    assert "$a_b$" in (person.folder / "shops.html").read_text()
    rows.assign(tags=[";".join(w) for w in words]).to_csv(person.folder / "semicolons.csv", index=False)
    refused = person.shoal("assign", "shops.shoal", "semicolons.csv", code=2)
    assert "no row has a known feature" in refused.err
    assert "--delimiter" in refused.err
    again = person.shoal("assign", "shops.shoal", "semicolons.csv", "--delimiter", ";", "-q")
    assert len(again.out.splitlines()) == 121
    refused = person.shoal("show", "shops.shoal", "--cluster", 99, code=2)
    assert len(refused.err.splitlines()) == 1
