"""Moments in many spellings, as seconds since 1970 in UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def unit_of(largest: float) -> str:
    """The unit of times given as numbers, told from the largest: 10^11 seconds would be the year 5138.

    >>> unit_of(1_546_398_245), unit_of(1_546_398_245_000)
    ('s', 'ms')
    """
    for unit, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)):
        if largest >= least:
            return unit
    return "s"


def check_unit(unit: str | None) -> str | None:
    if unit is not None and unit not in UNITS:
        raise BadInput(f"time_unit is {unit!r}; it must be one of {', '.join(UNITS)}, or None to tell by magnitude.")
    return unit


class Times:
    """Collects a time column batch by batch; the unit of bare numbers is decided over all of them."""

    def __init__(self, column: str, unit: str | None = None) -> None:
        self.column, self.unit = column, unit
        self.moments: list[np.ndarray] = []  # seconds, NaN where the value was a bare number or missing
        self.numbers: list[np.ndarray] = []  # bare numbers, NaN elsewhere

    def refuse_unreadable(self, bad: pa.Array, first_row: int) -> None:
        """``bad`` holds the text that is no time, and nulls."""
        if bad.null_count < len(bad):
            at = int(np.flatnonzero(np.asarray(bad.is_valid()))[0])
            raise BadInput(
                f"row {first_row + at + 1} of column {self.column!r} holds {bad[at].as_py()!r}, which is not a time. "
                "Write times as 2019-12-31, 2019-12-31T23:59:59+02:00, or seconds or milliseconds since 1970."
            )

    def add(self, moments: pa.Array, numbers: pa.Array) -> None:
        self.moments.append(np.asarray(moments.fill_null(np.nan), dtype=np.float64))
        self.numbers.append(np.asarray(numbers.fill_null(np.nan), dtype=np.float64))

    @property
    def largest(self) -> float:
        """The largest bare number, NaN if there is none."""
        sizes = [float(np.nanmax(np.abs(part))) for part in self.numbers if part.size and not np.isnan(part).all()]
        return max(sizes, default=float("nan"))

    def seconds(self) -> np.ndarray:
        """All of them in seconds; ``unit`` says afterwards how bare numbers were taken."""
        largest = self.largest
        if self.unit is None and not np.isnan(largest):
            self.unit = unit_of(largest)
        scale = UNITS[self.unit or "s"]
        parts = [np.where(np.isnan(m), n / scale, m) for m, n in zip(self.moments, self.numbers, strict=True)]
        seconds = np.concatenate(parts) if parts else np.empty(0)
        endless = np.flatnonzero(np.isinf(seconds))
        if endless.size:
            raise BadInput(f"item {endless[0] + 1} has an infinite time in column {self.column!r}. Drop or repair it.")
        return seconds
