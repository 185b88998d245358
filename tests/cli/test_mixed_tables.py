"""From a CSV file of numbers, or of mixed columns with gaps, to named clusters."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

import shoal as library
from shoal.errors import BadInput

GROUPS = np.arange(120) % 3


def numbers() -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(size=(120, 2))
    return pd.DataFrame(np.array([[0.0, 5], [6, -1], [-5, -7]])[GROUPS] + noise, columns=["a", "b"])


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "age": (np.array([25, 45, 70])[GROUPS] + rng.normal(size=120)).round(1),
        "smoker": np.array(["no", "yes", "no"])[GROUPS],
        "city": np.array(["Rome", "Oslo", "Paris"])[GROUPS],
        "since": np.array(["2001-02-03", "2011-02-03", "2021-02-03"])[GROUPS],
        "code": [f"c{at}" for at in range(120)],
    }).astype(object)  # fmt: skip
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.insert(0, "id", [f"p{at}" for at in range(120)])
    return frame


def counts(rate: float, n_columns: int) -> pd.DataFrame:
    drawn = np.random.default_rng(2).poisson(rate, (120, n_columns))
    return pd.DataFrame(drawn, columns=[f"w{at}" for at in range(n_columns)])


@pytest.mark.parametrize(
    ("frame", "family"),
    [
        (numbers(), "gaussian"),
        (numbers().mask(np.arange(240).reshape(120, 2) % 7 == 0), "mixed"),
        (numbers().abs().mul(1000).round(), "gaussian"),
        (counts(0.3, 5), "multinomial"),
        (counts(4.0, 5), "poisson"),
        (counts(0.3, 5).clip(upper=1), "bernoulli"),
    ],
)
def test_numeric_columns_choose_the_family_of_a_mixture(shoal, tmp_path, frame, family):
    frame.to_csv(tmp_path / "n.csv", index=False)
    fit = ("fit", tmp_path / "n.csv", "--model", "mixture", "--numeric", "--out", tmp_path / "n.shoal", "--json")
    done = shoal(*fit)
    assert (done.code, f"family={family} is taken" in done.err) == (0, True), done.err
    assert library.load(tmp_path / "n.shoal").family == family
    if family == "gaussian" and frame.min().min() < 0:
        assert json.loads(done.out)["clusters"] == 3


def test_a_family_that_is_given_wins(shoal, tmp_path):
    counts(4.0, 3).to_csv(tmp_path / "n.csv", index=False)
    done = shoal("fit", tmp_path / "n.csv", "-m", "mixture", "--numeric", "-s", "family=gaussian", "-o", tmp_path / "m")
    assert (done.code, "is taken" in done.err) == (0, False), done.err
    assert library.load(tmp_path / "m").family == "gaussian"


@pytest.mark.parametrize("options", [["--model", "auto"], ["--model", "mixture", "--set", "family=mixed"]])
def test_mixed_columns_with_gaps_become_named_clusters(shoal, tmp_path, options):
    file, model = tmp_path / "people.csv", tmp_path / "people.shoal"
    people().to_csv(file, index=False)
    done = shoal("fit", file, *options, "--out", model, "--json")
    assert (done.code, json.loads(done.out)["clusters"]) == (0, 3), done.err
    assert "another text in nearly every row: code" in done.err
    shown = shoal("show", model)
    assert (shown.code, "city = Oslo" in shown.out, "p" in shown.out) == (0, True, True), shown.err
    rows = list(csv.DictReader(shoal("assign", model, file).out.splitlines()))
    assert [row["item"] for row in rows] == [f"p{at}" for at in range(120)]
    assert [int(row["cluster"]) for row in rows] == library.load(model).labels_.tolist()
    assert library.metrics.normalized_mutual_information(GROUPS, [int(row["cluster"]) for row in rows]) > 0.9
    done = shoal("report", model, file, "--out", tmp_path / "people.html")
    assert (done.code, "Oslo" in (tmp_path / "people.html").read_text()) == (0, True), done.err
    (tmp_path / "new.csv").write_text("id,age,smoker,city,since\nx,?,NA,Rome,\ny,,,,\n")
    new = shoal("assign", model, tmp_path / "new.csv")
    assert [row["cluster"] == "-1" for row in csv.DictReader(new.out.splitlines())] == [False, True]
    assert "dates, 1 values cannot be read: taken as missing" in new.err
    learned = shoal("learn", model, file)
    assert (learned.code, shoal("show", model).code) == (0, 0), learned.err


def test_auto_with_numeric_takes_the_numbers_and_their_gaps(shoal, tmp_path):
    frame = people().assign(visits=GROUPS * 10.0)
    frame.to_csv(tmp_path / "p.csv", index=False)
    done = shoal("fit", tmp_path / "p.csv", "--model", "auto", "--numeric", "--out", tmp_path / "p.shoal")
    assert done.code == 0, done.err
    model = library.load(tmp_path / "p.shoal")
    assert (model.family, list(model.vocabulary_)) == ("mixed", ["age", "visits"])


def test_a_table_of_mixed_columns_is_read_as_it_is():
    dataset = library.read(people(), table=True)
    assert dict(zip(dataset.recipe.columns, dataset.recipe.kinds, strict=True)) == {
        "age": "number", "smoker": "text", "city": "text", "since": "time",
    }  # fmt: skip
    assert dataset.X.nnz == sum(len(column) - column.null_count for column in dataset.table.columns)
    assert dataset.rows([5, 3]).table["age"].to_pylist() == dataset.table["age"].take([5, 3]).to_pylist()
    again = library.read(people(), recipe=dataset)
    assert again.table.equals(dataset.table)
    with pytest.raises(BadInput, match="family='mixed'"):
        library.SphericalKMeans(2).fit(dataset)
    with pytest.raises(BadInput, match="leave out max_features="):
        library.read(people(), table=True, max_features=3)
