"""What a reproduction of a paper consists of: tables, pictures, and where the data differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import BadSource

READABLE = (".parquet", ".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz")


@dataclass(frozen=True)
class Size:
    """How much is run: minutes on two cores, or the paper's own sizes where they fit a machine."""

    quick: bool = True
    data: Path | None = None  # a folder with real data

    def of(self, quick: int, full: int) -> int:
        """The number for this size."""
        return quick if self.quick else full

    def real(self, stem: str) -> Path | None:
        """The file or folder of that name in the data folder, if there is one."""
        if self.data is None:
            return None
        if not self.data.is_dir():
            raise BadSource(f"--data {self.data}: there is no such folder.")
        found = [self.data / f"{stem}{ending}" for ending in ("", *READABLE)]
        return next((path for path in found if path.exists()), None)


@dataclass
class Table:
    """Rows of numbers and words. A column that ends in "(paper)" is the paper's figure."""

    title: str
    columns: list[str]
    rows: list[list[Any]]
    note: str = ""


@dataclass
class Picture:
    """A matplotlib figure, or finished HTML."""

    title: str
    caption: str
    drawn: Any


@dataclass
class Paper:
    """Tables and figures of one paper, published and reproduced."""

    name: str
    title: str
    data: str  # which data these are, and where they differ from the paper's
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Everything but the pictures."""
        return {
            "paper": self.name,
            "title": self.title,
            "data": self.data,
            "seconds": round(self.seconds, 1),
            "tables": [
                {"title": t.title, "note": t.note, "rows": [_named(t.columns, row) for row in t.rows]}
                for t in self.tables
            ],
            "pictures": [picture.title for picture in self.pictures],
        }


def _named(columns: list[str], row: list[Any]) -> dict[str, Any]:
    return {column: _plain(value) for column, value in zip(columns, row, strict=True)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
