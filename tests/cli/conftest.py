"""The command line in this process: much quicker than a process for each command, and the same code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def shoal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    from shoal.cli.main import run

    def command(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["shoal", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        out, err = capfd.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return command


THEMES = {"bikes": ["wheel", "chain", "pedal", "helmet"], "cakes": ["flour", "sugar", "butter", "eggs"]}


def shop_rows(n: int, seed: int = 0, more: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """Two kinds of shop with three of four tags each; ``more`` tags come on top, one for each shop in turn."""
    rng = np.random.default_rng(seed)
    return [
        {
            "id": f"{kind}-{seed}-{at}",
            "tags": sorted(rng.choice(words, 3, replace=False).tolist()) + ([more[at % len(more)]] if more else []),
            "kind": kind,
        }
        for at in range(n)
        for kind, words in THEMES.items()
    ]


@pytest.fixture(scope="session")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two days of shops, and a Bernoulli model of the first."""
    import shoal

    folder = tmp_path_factory.mktemp("shops")
    for day in (1, 2):
        rows = shop_rows(40, seed=day, more=("new",) if day == 2 else ())
        pq.write_table(pa.Table.from_pylist(rows), folder / f"day{day}.parquet")
    dataset = shoal.read(folder / "day1.parquet", item="id", features="tags")
    model = shoal.BernoulliMixture(2, random_state=0).fit(dataset)
    shoal.save(folder / "shops.shoal", model, dataset=dataset)
    return folder
