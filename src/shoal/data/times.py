"""Moments in many spellings, as seconds since 1970 in UTC."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def unit_of(largest: float) -> str:
    """The unit of times given as numbers, found from the largest: 10^11 seconds would be the year 5138.

    >>> unit_of(1_546_398_245), unit_of(1_546_398_245_000)
    ('s', 'ms')
    """
    for unit, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)):
        if largest >= least:
            return unit
    return "s"


def check_unit(unit: str | None) -> str | None:
    if unit is not None and unit not in UNITS:
        raise BadInput(
            f"time_unit is {unit!r}; it must be one of {', '.join(UNITS)}, or None to find it from their magnitude."
        )
    return unit


def as_strptime(format: str | None) -> str | None:
    """A format as strptime has it, from itself or from the letters people write.

    >>> as_strptime("dd/mm/yyyy"), as_strptime("yyyy-mm-dd HH:MM:SS"), as_strptime("%d.%m.%y")
    ('%d/%m/%Y', '%Y-%m-%d %H:%M:%S', '%d.%m.%y')
    """
    if format is None or "%" in format:
        return format
    letters, found = {"yyyy": "%Y", "yy": "%y", "mon": "%b", "dd": "%d", "hh": "%H", "ss": "%S"}, False

    def code(match: re.Match[str]) -> str:
        nonlocal found  # mm is the minute once an hour has been seen, and the month before
        part = match.group().lower()
        found = found or part == "hh"
        return letters.get(part) or ("%M" if found else "%m")

    written = re.sub("yyyy|yy|mon|mm|dd|hh|ss", code, format, flags=re.IGNORECASE)
    if written == format:
        raise BadInput(f"time_format is {format!r}; write it as dd/mm/yyyy, or as strptime does: %d/%m/%Y %H:%M.")
    return written


def is_calendar_number(number: float) -> bool:
    """Whether a bare number is a date written without hyphens, as 20190131 is.

    >>> is_calendar_number(20190131), is_calendar_number(20191399), is_calendar_number(1546398245)
    (True, False, False)
    """
    if not (19000101 <= number <= 21991231 and float(number).is_integer()):
        return False
    year, month, day = int(number) // 10000, int(number) // 100 % 100, int(number) % 100
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def unit_of_numbers(column: str, least: float, most: float, n_moments: int) -> str:
    """The unit of bare numbers in a column of times; numbers that may be dates are refused.

    20190131 is not a second of August 1970, nor is a number among dates a number of seconds.
    """
    if n_moments:
        raise BadInput(
            f"column {column!r} holds bare numbers such as {least:.15g} in some rows and dates in {n_moments:,}. Write "
            "all in one way."
        )
    if is_calendar_number(least) and is_calendar_number(most):
        raise BadInput(
            f"column {column!r} holds numbers such as {least:.15g}, which look like dates. Give their form, "
            "time_format='%Y%m%d', or time_unit='s' if they are seconds."
        )
    return unit_of(max(abs(least), abs(most)))


class Times:
    """Collects a time column batch by batch; the unit of bare numbers is decided over all of them."""

    def __init__(self, column: str, unit: str | None = None, format: str | None = None) -> None:
        self.column, self.unit, self.format = column, unit, format
        self.moments: list[np.ndarray] = []  # seconds, NaN where the value was a bare number or missing
        self.numbers: list[np.ndarray] = []  # bare numbers, NaN elsewhere

    def refuse_unreadable(self, bad: pa.Array, first_row: int) -> None:
        """``bad`` holds the text that is no time, and nulls."""
        if bad.null_count < len(bad):
            at = int(np.flatnonzero(np.asarray(bad.is_valid()))[0])
            raise BadInput(
                f"row {first_row + at + 1} of column {self.column!r} holds {bad[at].as_py()!r}, which is not a time"
                + (f" of the form {self.format}. " if self.format else ". ")
                + "Write times as 2019-12-31, 2019-12-31T23:59:59+02:00, or seconds or milliseconds since 1970, or "
                "give their form: time_format='dd/mm/yyyy'."
            )

    def add(self, moments: pa.Array, numbers: pa.Array) -> None:
        self.moments.append(np.asarray(moments.fill_null(np.nan), dtype=np.float64))
        self.numbers.append(np.asarray(numbers.fill_null(np.nan), dtype=np.float64))

    def seconds(self) -> np.ndarray:
        """All of them in seconds; ``unit`` is afterwards how bare numbers were taken."""
        numbers = np.concatenate(self.numbers) if self.numbers else np.empty(0)
        bare = numbers[~np.isnan(numbers)]
        if self.unit is None and bare.size:
            n_moments = sum(int((~np.isnan(part)).sum()) for part in self.moments)
            self.unit = unit_of_numbers(self.column, bare.min(), bare.max(), n_moments)
        scale = UNITS[self.unit or "s"]
        moments = np.concatenate(self.moments) if self.moments else np.empty(0)
        seconds = np.where(np.isnan(moments), numbers / scale, moments)
        endless = np.flatnonzero(np.isinf(seconds))
        if endless.size:
            raise BadInput(f"item {endless[0] + 1} has an infinite time in column {self.column!r}. Drop or repair it.")
        return seconds
