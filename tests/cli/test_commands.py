"""The command line as a person uses it: real files, a real process, exit codes, what goes where."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def shoal(
    *arguments: str | Path, stdin: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shoal", *map(str, arguments)], capture_output=True, text=True, input=stdin, cwd=cwd
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kinds of shop: bikes and cakes, with a saved model."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    themes = {"bikes": ["wheel", "chain", "pedal", "helmet"], "cakes": ["flour", "sugar", "butter", "eggs"]}
    rows = [
        {
            "id": f"{kind}-{n}",
            "tags": sorted(rng.choice(words, 3, replace=False).tolist()),
            "kind": kind,
            "shop": n % 5,
        }
        for n in range(40)
        for kind, words in themes.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "shops.parquet")
    (folder / "shops.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = shoal(
        "fit", folder / "shops.parquet", "-k", 2, "--item", "id", "--features", "tags", "--out", folder / "shops.shoal",
        "--report", folder / "shops.html",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "fit.out").write_text(done.stdout)
    (folder / "fit.err").write_text(done.stderr)
    return folder


def test_fit_shows_clusters_on_stdout_and_progress_on_stderr(folder):
    out, err = (folder / "fit.out").read_text(), (folder / "fit.err").read_text()
    assert "wheel" in out
    assert "flour" in out
    assert "read 80 items" in err
    assert (folder / "shops.shoal").exists()
    assert "wheel" in (folder / "shops.html").read_text()


def test_fit_prints_json_for_scripts_and_is_quiet_when_asked(folder):
    done = shoal("fit", folder / "shops.jsonl", "-k", 2, "--item", "id", "--features", "tags", "--json", "--quiet")
    facts = json.loads(done.stdout)
    assert facts["clusters"] == 2
    assert facts["items"] == 80
    assert done.stderr == ""


def test_fit_reads_standard_input(folder):
    text = (folder / "shops.jsonl").read_text()
    done = shoal("fit", "-", "-k", 2, "--item", "id", "--features", "tags", "--json", stdin=text)
    assert json.loads(done.stdout)["items"] == 80


def test_assign_writes_every_item_with_its_cluster(folder):
    done = shoal("assign", folder / "shops.shoal", folder / "shops.parquet", "--out", folder / "assigned.csv")
    assert done.returncode == 0, done.stderr
    with open(folder / "assigned.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 80
    by_kind = {kind: {row["cluster"] for row in rows if row["item"].startswith(kind)} for kind in ("bikes", "cakes")}
    assert len(by_kind["bikes"]) == len(by_kind["cakes"]) == 1
    assert by_kind["bikes"] != by_kind["cakes"]
    assert all(0 < float(row["score"]) <= 1 + 1e-9 for row in rows)


def test_assign_ignores_counts_and_reports_unknown_features(folder):
    new = '{"id": "x", "tags": ["wheel", "rocket"]}\n{"id": "y", "tags": ["moon"]}\n'
    done = shoal("assign", folder / "shops.shoal", "-", "--json", stdin=new)
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["item"] == "x"
    assert first["cluster"] >= 0
    assert second["cluster"] == -1
    assert "2 features of items are not in the vocabulary and were ignored" in done.stderr


def test_show_lists_clusters_and_one_in_full(folder):
    listed = shoal("show", folder / "shops.shoal")
    assert "wheel" in listed.stdout
    card = json.loads(shoal("show", folder / "shops.shoal", "--cluster", 0, "--json").stdout)
    assert card["size"] == 40
    assert card["items"][0][0].split("-")[0] in ("bikes", "cakes")
    missing = shoal("show", folder / "shops.shoal", "--cluster", 9)
    assert missing.returncode == 2
    assert "0 to 1" in missing.stderr


def test_evaluate_compares_with_labels_and_owners(folder):
    done = shoal(
        "evaluate", folder / "shops.shoal", folder / "shops.parquet", "--label", "kind", "--owner", "shop", "--json"
    )
    facts = json.loads(done.stdout)
    assert facts["purity"] == 1
    assert facts["vi_nats"] == pytest.approx(0, abs=1e-12)
    assert facts["owner_entropy"] == pytest.approx(np.log(2), rel=1e-9)


def test_report_of_a_saved_model_is_one_file(folder):
    done = shoal("report", folder / "shops.shoal", "--out", folder / "again.html")
    assert done.stdout.strip() == str(folder / "again.html")
    page = (folder / "again.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "bikes-" in page


@pytest.fixture(scope="module")
def profiles(folder: Path) -> Path:
    """A saved model that suggests."""
    fit = ["fit", folder / "shops.parquet", "--model", "bernoulli", "-k", 2, "--item", "id", "--features", "tags"]
    done = shoal(*fit, "--out", folder / "profiles.shoal", "--report", folder / "profiles.html")
    assert done.returncode == 0, done.stderr
    return folder / "profiles.shoal"


def test_every_model_fits_saves_assigns_and_reports(folder):
    """The two kinds of shop are told apart by sampled mixtures and in a stream as well."""
    for name, more in (("mixture", ["-k", 4]), ("stream", [])):
        saved = folder / f"{name}.shoal"
        fit = ["fit", folder / "shops.parquet", "--model", name, *more, "--item", "id", "--features", "tags"]
        done = shoal(*fit, "--out", saved, "--report", folder / f"{name}.html", "--json")
        assert done.returncode == 0, done.stderr
        scores = json.loads(shoal("evaluate", saved, folder / "shops.parquet", "--label", "kind", "--json").stdout)
        assert scores["purity"] == 1, name
        assert shoal("show", saved).returncode == 0


def test_suggest_gives_what_goes_together_and_why(profiles):
    done = shoal("suggest", profiles, "wheel", "chain", "-n", 2, "--json")
    suggestions = json.loads(done.stdout)
    assert {suggestion["name"] for suggestion in suggestions} == {"pedal", "helmet"}
    assert all(0.2 < suggestion["probability"] < 1 for suggestion in suggestions)
    assert "chain" in suggestions[0]["reasons"][0]["because"]
    assert "pedal" in shoal("suggest", profiles, "wheel").stdout


def test_a_rejected_feature_is_not_suggested_again(profiles):
    done = shoal("suggest", profiles, "wheel", "--reject", "pedal", "-n", 8, "--json")
    assert "pedal" not in {suggestion["name"] for suggestion in json.loads(done.stdout)}


def test_an_unknown_feature_is_named_beside_near_ones(profiles):
    done = shoal("suggest", profiles, "wheels")
    assert done.returncode == 2
    assert "'wheel'" in done.stderr


def test_a_model_that_does_not_suggest_says_which_does(folder):
    done = shoal("suggest", folder / "shops.shoal", "wheel")
    assert done.returncode == 2
    assert "--model bernoulli" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fit", "no-such-file.csv", "-k", "2"], "no-such-file.csv"),
        (["fit", "shops.parquet", "-k", "2", "--item", "id", "--features", "tag"], "tags"),
        (["fit", "shops.parquet", "-k", "0", "--item", "id", "--features", "tags"], "--clusters"),
        (["fit", "shops.parquet", "-k", "5000", "--item", "id", "--features", "tags"], "distinct"),
        (["fit", "shops.parquet", "--set", "colour=red", "--item", "id", "--features", "tags"], "max_iter"),
        (["fit", "shops.parquet", "--set", "colour", "--item", "id", "--features", "tags"], "NAME=VALUE"),
        (["show", "shops.parquet"], "shops.parquet"),
        (["show", "nothing.shoal"], "nothing.shoal"),
        (["evaluate", "shops.shoal", "shops.parquet"], "--label"),
        (["assign", "shops.shoal", "shops.parquet", "--out", "where.xls"], ".parquet"),
        (["assign", "shops.shoal", "shops.parquet", "--out", "no/such/folder/a.csv"], "no/such/folder"),
        (["report", "shops.shoal", "--out", "/proc/nothing/report.html"], "/proc/nothing"),
        (["fit"], "SOURCE"),
        (["fit", "shops.parquet", "--colour"], "--colour"),
        (["fit", "shops.parquet", "--model", "magic"], "kmeans"),
    ],
)
def test_wrong_input_exits_with_2_and_a_sentence(folder, arguments, says):
    done = shoal(*arguments, cwd=folder)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_saves_the_model_so_far(folder):
    rng = np.random.default_rng(1)
    words = [[f"w{n}" for n in row] for row in rng.integers(0, 1000, (3000, 10))]
    pq.write_table(pa.table({"id": np.arange(3000), "words": words}), folder / "long.parquet")
    command = [sys.executable, "-m", "shoal", "fit", "long.parquet", "--model", "mixture", "-k", "10", "--item", "id"]
    command += ["--features", "words", "--set", "n_sweeps=100000000", "--out", "long.shoal", "--json"]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    said = ""
    while "sampling:" not in said:  # the first line of progress: the sweeps have begun, and never end by themselves
        line = running.stderr.readline()
        assert line, said
        said += line
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 1, said + err
    assert "interrupted" in err
    assert json.loads(out)["saved"] == "long.shoal"
    assert shoal("show", "long.shoal", cwd=folder).returncode == 0


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys, shoal.cli.main; "
        "print([m for m in ('numba', 'duckdb', 'sklearn', 'numpy', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
    assert "fit" in shoal("--help").stdout
    assert shoal("--version").stdout.startswith("shoal ")


def test_every_command_has_a_runnable_example_in_its_help():
    from shoal.cli.main import app

    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    for command in (command for group in groups for command in group.registered_commands):
        assert re.search(r"Examples?: (\S.* \| )?shoal ", command.callback.__doc__ or ""), command.callback
