"""Learning more, editing and merging saved models, suggestions in bulk, automatic models."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal as library


@pytest.fixture
def model(shops, tmp_path):
    return shutil.copy(shops / "shops.shoal", tmp_path / "m.shoal")


def arrays_of(path):
    from shoal.store.container import ModelFile

    with ModelFile(path) as file:
        return file.arrays()


def same_models(a, b):
    """Every array of two models, bit for bit."""
    left, right = arrays_of(a), arrays_of(b)
    return left.keys() == right.keys() and all(left[name].tobytes() == right[name].tobytes() for name in left)


def test_learn_gives_the_model_that_partial_fit_gives(shoal, shops, model, tmp_path):
    loaded = library.load(model)
    last = None
    for last in library.read_batches(shops / "day2.parquet", recipe=loaded, grow=True, batch_rows=30):
        loaded.partial_fit(last)
    library.save(tmp_path / "by_hand.shoal", loaded, dataset=last)
    done = shoal("learn", model, shops / "day2.parquet", "--batch-rows", 30, "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert (facts["items"], facts["new_features"]) == (80, 1)
    assert same_models(model, tmp_path / "by_hand.shoal")
    learned = library.load(model)
    assert "new" in learned.vocabulary_
    assert shoal("assign", model, shops / "day2.parquet").code == 0
    assert shoal("show", model).code == 0


def test_learning_that_fails_leaves_the_model_as_it_was(shoal, shops, model, tmp_path):
    before = Path(model).read_bytes()
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "tags": ["wheel"]}\n{"id": "b", "tags": \n')
    done = shoal("learn", model, tmp_path / "bad.jsonl")
    assert done.code == 2
    assert Path(model).read_bytes() == before
    done = shoal("learn", model, shops / "day2.parquet", "--out", tmp_path / "new.shoal")
    assert done.code == 0
    assert Path(model).read_bytes() == before


def test_two_commands_do_not_change_a_model_at_once(shoal, shops, model):
    import fcntl

    with open(model, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = shoal("learn", model, shops / "day2.parquet")
    assert done.code == 2
    assert "another command is changing" in done.err


def test_a_killed_learn_leaves_the_old_model_or_the_new_one(shops, model, tmp_path):
    """The benchmark cli_kills.py does this many times."""
    before = Path(model).read_bytes()
    command = [sys.executable, "-m", "shoal", "learn", model, str(shops / "day2.parquet"), "--quiet"]
    began = time.monotonic()
    subprocess.run([*command, "--out", str(tmp_path / "new.shoal")], check=True, capture_output=True)
    seconds = time.monotonic() - began
    new = tmp_path / "new.shoal"
    for share in (0.6, 0.9, 1.0):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(share * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        whole = Path(model).read_bytes() == before or same_models(model, new)
        assert whole
        assert library.load(model).n_features_in_ in (8, 9)
        Path(model).write_bytes(before)


def test_edits_are_kept_and_reported(shoal, model, tmp_path):
    ids = [int(id_) for id_ in library.load(model).cluster_ids_]
    assert shoal("edit", model, "name", ids[0], "two wheels").code == 0
    assert "two wheels" in shoal("show", model).out
    assert shoal("edit", model, "pin", *ids).code == 0
    assert set(library.load(model).roster_.pinned) == set(ids)
    assert shoal("edit", model, "unpin", *ids).code == 0
    assert library.load(model).roster_.pinned == []
    out = tmp_path / "merged.shoal"
    done = shoal("edit", model, "merge", ids[1], "--into", ids[0], "--out", out, "--json")
    assert done.code == 0, done.err
    assert library.load(out).cluster_ids_.tolist() == [ids[0]]
    assert library.load(model).cluster_ids_.tolist() == ids


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["name", "0"], "a cluster and its name"),
        (["name", "99", "x"], "no cluster has id 99"),
        (["merge", "0"], "--into"),
        (["merge", "x", "--into", "0"], "'x' is not the id"),
        (["split", "0"], "--from SOURCE"),
        (["pin", "77"], "no cluster has id 77"),
        (["pin", "0", "--into", "1"], "--into is for merge"),
    ],
)
def test_edits_that_cannot_be(shoal, model, arguments, said):
    before = Path(model).read_bytes()
    done = shoal("edit", model, *arguments)
    assert (done.code, said in done.err) == (2, True), done.err
    assert Path(model).read_bytes() == before


def test_a_cluster_is_split_by_rows(shoal, shops, model):
    first = int(library.load(model).cluster_ids_[0])
    done = shoal("edit", model, "split", first, "--from", shops / "day1.parquet", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["new_cluster"] in library.load(model).cluster_ids_


def test_suggestions_for_a_file(shoal, shops, tmp_path):
    out = tmp_path / "s.csv"
    model, day = shops / "shops.shoal", shops / "day1.parquet"
    done = shoal("suggest", model, "--file", day, "--top", 2, "--out", out)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["item", "rank", "feature", "probability", "reason"]
    assert all("% from " in row["reason"] for row in rows)
    tags = {row["id"]: row["tags"] for row in pq.read_table(day).to_pylist()}
    assert len({row["item"] for row in rows}) == 80
    assert all(row["feature"] not in tags[row["item"]] for row in rows)
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    one = library.load(model).suggest(tags["bikes-1-0"], n=2)
    mine = [(row["feature"], float(row["probability"])) for row in rows if row["item"] == "bikes-1-0"]
    assert mine == [(s.name, pytest.approx(s.probability, rel=1e-6)) for s in one]
    rejected = shoal("suggest", model, "--file", day, "--top", 3, "--reject", "wheel", "--json")
    assert "wheel" not in {json.loads(line)["feature"] for line in rejected.out.splitlines()}
    assert rejected.out
    plain = shoal("suggest", model, "--file", day, "--top", 2, "--no-reasons", "--json")
    lines = [json.loads(line) for line in plain.out.splitlines()]
    assert list(lines[0]) == ["item", "rank", "feature", "probability"]
    assert [(line["item"], line["feature"]) for line in lines] == [(row["item"], row["feature"]) for row in rows]
    assert shoal("suggest", model, "wheel", "--hidden", "half").code == 2
    assert shoal("suggest", model).code == 2
    assert shoal("suggest", model, "wheel", "--file", day).code == 2


def test_a_suggester_from_the_command_line(shoal, shops, tmp_path):
    model, day = tmp_path / "s.shoal", shops / "day1.parquet"
    source = (day, "--item", "id", "--features", "tags")
    done = shoal("fit", *source, "--model", "suggester", "--set", f"clusters={shops / 'shops.shoal'}", "--out", model)
    assert done.code == 0, done.err
    assert type(library.load(model).clusters) is type(library.load(shops / "shops.shoal"))
    done = shoal("suggest", model, "--file", day, "--top", 3, "--hidden", "one", "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert list(lines[0]) == ["item", "rank", "feature", "probability", "reason"]
    given = pq.read_table(day).to_pylist()[0]
    one = library.load(model).suggest(given["tags"], n=3, hidden="one")
    mine = [(line["feature"], line["probability"]) for line in lines if line["item"] == given["id"]]
    assert mine == [(s.name, pytest.approx(s.probability, rel=1e-9)) for s in one]
    asked = shoal("suggest", model, "wheel", "no such thing")
    assert (asked.code, "'no such thing'" in asked.err) == (0, True)
    assert shoal("fit", *source, "--model", "suggester", "-k", 3).code == 2
    report = shoal("fit", *source, "--model", "suggester", "--report", tmp_path / "r.html")
    assert (report.code, "a suggester has no clusters" in report.err) == (2, True)
    assert (shoal("show", model).code, shoal("report", model, "--out", tmp_path / "r.html").code) == (2, 2)


def test_models_merge(shoal, shops, tmp_path):
    for day in (1, 2):
        shutil.copy(shops / "shops.shoal", tmp_path / f"{day}.shoal")
        assert shoal("learn", tmp_path / f"{day}.shoal", shops / f"day{day}.parquet").code == 0
    done = shoal("merge", tmp_path / "1.shoal", tmp_path / "2.shoal", "--base", shops / "shops.shoal",
                 "--out", tmp_path / "all.shoal", "--json")  # fmt: skip
    assert done.code == 0 or "without --base" in done.err, done.err


def test_models_of_two_kinds_do_not_merge(shoal, shops, tmp_path):
    dataset = library.read(shops / "day1.parquet", item="id", features="tags")
    library.save(tmp_path / "k.shoal", library.SphericalKMeans(2, random_state=0).fit(dataset), dataset=dataset)
    done = shoal("merge", shops / "shops.shoal", tmp_path / "k.shoal", "--out", tmp_path / "c.shoal")
    assert done.code == 2
    assert "two of one kind" in done.err


@pytest.mark.parametrize(
    ("columns", "model", "said"),
    [
        ({"id": [1, 2, 3], "tags": [["a", "b"], ["b"], ["c", "a"]]}, "BernoulliMixture", "set of features"),
        ({"text": ["red wine", "red meat", "fast cars"]}, "SphericalKMeans", "the rows are texts"),
        (
            {"text": ["red wine", "red meat", "fast cars"], "when": ["2020-01-01", "2020-01-02", "2020-01-03"]},
            "TimeSensitiveMixture",
            "with times (column 'when')",
        ),
        ({"x": [1.0, 1.1, 9.0], "y": [2.0, 2.2, 5.0]}, "ExponentialFamilyMixture", "measurements (2 columns"),
    ],
)
def test_model_auto_says_what_it_took_and_why(shoal, tmp_path, columns, model, said):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    done = shoal("fit", tmp_path / "t.parquet", "--model", "auto", "--json", *([] if "when" in columns else ["-k", 2]))
    assert done.code == 0, done.err
    assert json.loads(done.out)["model"] == model
    assert said in done.err


def test_model_auto_reads_standard_input():
    rows = "".join(json.dumps({"tags": ["a", "b"] if n % 2 else ["c"]}) + "\n" for n in range(10))
    command = [sys.executable, "-m", "shoal", "fit", "-", "--model", "auto", "-k", "2", "--json"]
    done = subprocess.run(command, input=rows, capture_output=True, text=True)
    assert json.loads(done.stdout)["items"] == 10, done.stderr


def test_numbers_are_the_features_of_a_gaussian_mixture(shoal, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(np.repeat([[0, 0], [9, 9]], 20, axis=0), 0.1), columns=["x", "y"])
    frame.assign(name=[f"n{at}" for at in range(40)]).to_csv(tmp_path / "n.csv", index=False)
    done = shoal("fit", tmp_path / "n.csv", "--model", "mixture", "--set", "family=gaussian", "-k", 2, "--json",
                 "--out", tmp_path / "n.shoal")  # fmt: skip
    assert (done.code, json.loads(done.out)["features"]) == (0, 2), done.err
    again = shoal("assign", tmp_path / "n.shoal", tmp_path / "n.csv")
    rows = list(csv.DictReader(again.out.splitlines()))
    assert rows[0]["item"] == "n0"
    assert len({row["cluster"] for row in rows[:20]}) == 1


@pytest.mark.parametrize("model", ["bernoulli", "kmeans"])
def test_batches_learn_the_whole_file(shoal, tmp_path, shops, model):
    done = shoal("fit", shops / "day1.parquet", "--model", model, "-k", 2, "--item", "id", "--features", "tags",
                 "--batch-rows", 30, "--out", tmp_path / "b.shoal", "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["items"] == 80
    found = shoal("evaluate", tmp_path / "b.shoal", shops / "day1.parquet", "--label", "kind", "--json")
    assert json.loads(found.out)["purity"] == 1


def test_time_kernels_by_name(shoal, tmp_path):
    table = {"text": ["red wine", "red meat"] * 5, "t": [f"2020-01-0{n % 9 + 1}" for n in range(10)]}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    fit = ["fit", tmp_path / "t.parquet", "--model", "stream", "--text", "text", "--time", "t", "--json"]
    done = shoal(*fit, "--set", "kernel=exponential:half_life=2h", "--out", tmp_path / "s.shoal")
    assert done.code == 0, done.err
    assert library.load(tmp_path / "s.shoal").kernel_.rate == pytest.approx(np.log(2) / 7200)
    for kernel, said in (
        ("gauss", "the names are exponential"),
        ("exponential:halflife=2h", "half_life"),
        ("step:x=1q", "1q"),
    ):
        done = shoal(*fit, "--set", f"kernel={kernel}")
        assert (done.code, said in done.err) == (2, True), done.err


def test_temporaries_are_not_left(tmp_path):
    assert not [name for name in os.listdir(tmp_path) if name.endswith((".tmp", ".part"))]
