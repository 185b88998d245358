"""The commands as a person runs them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from shoal.cli.auction import app


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auction") / "log"
    options = ["--keywords", "40", "--days", "4", "--page-views", "400", "--out", str(folder), "-q"]
    found = CliRunner().invoke(app, ["simulate", *options])
    assert found.exit_code == 0, found.output
    assert "40 keywords on 4 days" in found.output
    return folder


def run(*arguments):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == 0, found.output
    return found.output


def test_steps(log, tmp_path):
    assert "100.00 % of the logged sections" in run("landscape", log, "--out", tmp_path / "l.csv", "-q")
    assert len(pd.read_csv(tmp_path / "l.csv")) == 40
    run("cluster", log, "-k", 5, "--out", tmp_path / "c.parquet", "-q")
    assert pd.read_parquet(tmp_path / "c.parquet")["cluster"].nunique() <= 5
    run("replay", log, "--reserves", 5, "--out", tmp_path / "r.parquet", "-q")
    assert len(pd.read_parquet(tmp_path / "r.parquet")) == 40 * 25


def test_optimize_and_report(log, tmp_path):
    said = run("optimize", log, "--revenue", 1.0, "--mainline-yield", 1.05, "-k", 4, "--out", tmp_path / "plan", "-q")
    assert "on days left out" in said
    assert len(pd.read_csv(tmp_path / "plan" / "keywords.csv")) == 40
    said = run("report", log, "-k", 4, "--out", tmp_path / "report.html", "-q")
    assert "k-GMM" in said
    assert (tmp_path / "report.html").stat().st_size > 1_000_000


def test_a_log_in_ones_own_words(tmp_path):
    """Own column names, dollars instead of cents, one table, and a reserve that the log does not hold."""
    rng = np.random.default_rng(0)
    n = 600
    bids = pd.DataFrame(
        {"auction_id": np.repeat(np.arange(n // 3), 3), "ad_id": np.tile([1, 2, 3], n // 3),
         "max_cpc": rng.uniform(0.2, 2.0, n).round(2), "pctr": rng.uniform(0.01, 0.1, n),
         "query": np.repeat(rng.choice(["shoes", "$5 boots_$6"], n // 3), 3),
         "day": np.repeat(np.arange(n // 3) % 4, 3)}
    )  # fmt: skip
    bids.to_csv(tmp_path / "bids.csv", index=False)
    names = ["--names", "bid_cents=max_cpc", "--names", "ctr=pctr", "--names", "keyword_id=query"]
    own = [tmp_path / "bids.csv", *names, "--units", "whole", "--reserve", 0.9, "--sidebar-reserve", 0.1, "-q"]
    found = json.loads(
        run(
            "optimize",
            *own,
            "--keyword-clicks",
            0.8,
            "--currency",
            "USD",
            "-k",
            2,
            "--json",
            "--out",
            tmp_path / "plan",
        )
    )
    assert found["probability"] == 0.9
    assert found["keyword_limits"] == {"clicks": 0.8}
    assert found["revenue"]["currency"] == "USD"
    assert pd.read_csv(tmp_path / "plan" / "keywords.csv").shape[0] == 2
    assert {row["keyword_id"] for row in json.loads(run("landscape", *own, "--json"))} == {"shoes", "$5 boots_$6"}
    run("report", *own, "-k", 2, "--out", tmp_path / "report.html")
    refused = CliRunner().invoke(app, ["landscape", str(tmp_path / "bids.csv"), "--names", "max_cpc"])
    assert refused.exit_code != 0


def test_every_command_has_an_example():
    for command in app.registered_commands:
        assert "Example: shoal auction" in command.callback.__doc__
