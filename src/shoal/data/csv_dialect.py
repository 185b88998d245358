"""How the lines of a CSV or TSV file are cut, read off its first line."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.data.files import Files, head, not_utf8
from shoal.data.sql import MAX_LINE_BYTES
from shoal.errors import BadInput, BadSource

LINE_COLUMN = "text"  # of a file of bare lines


@dataclass(frozen=True)
class Dialect:
    """What separates columns and lines, and what the columns are called."""

    columns: list[str]
    separator: str
    quote: str
    new_line: str = ""  # if DuckDB needs it
    has_header: bool = True


# Each line is a value: nothing quotes, and nothing separates but a control character that no text holds.
LINES = Dialect([LINE_COLUMN], "\x01", "", has_header=False)


def csv_dialect(files: Files, quote: str | None = None) -> Dialect:
    """Read off the first line, which names the columns; every file must begin with the same line.

    Guessing from the rows would be wrong one day: titles hold commas, and ids such as 0704.0001 look like numbers.
    """
    if files.format == "lines":
        return LINES
    mark = _checked_quote(quote, files.format)
    headers = {path: _header(path, files, mark) for path in files.paths}
    first = headers[files.paths[0]]
    for path, header in headers.items():
        if header != first:
            raise BadSource(f"{path} has another first line than {files.paths[0]}: {header[0]!r} and {first[0]!r}.")
    for path in files.paths if not files.is_packed else []:
        _refuse_long_last_line(path)
    line, separator, new_line = first
    try:
        names = line.split(separator) if not mark else next(csv.reader([line], delimiter=separator, quotechar=mark))
    except csv.Error as error:
        raise BadSource(f"the first line of {files.paths[0]} cannot be cut into columns: {error}.") from None
    return Dialect(_distinct(names), separator, mark, new_line)


def _checked_quote(quote: Any, format: str) -> str:
    if quote is None:
        return "" if format == "tsv" else '"'
    if not isinstance(quote, str) or len(quote.encode()) > 1:
        raise BadInput(f'quote is {quote!r}; it must be one ASCII character, or "" for a file without quotes.')
    return quote


def _header(path: str, files: Files, mark: str) -> tuple[str, str, str]:
    """The first line, its separator, and the line end if it is a bare carriage return."""
    start = head(path).removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    new_line = "\\r" if b"\r" in start and b"\n" not in start else ""
    try:
        text = start.decode()
    except UnicodeDecodeError as error:
        if error.start < min(start.find(end) if end in start else len(start) for end in (b"\n", b"\r")):
            raise not_utf8(
                path, f"the first line of {path} is not UTF-8 ({error.reason} at byte {error.start})"
            ) from None
        text = start[: error.start].decode()  # cut in the middle of a letter, or a matter for the rows
    line = _first_record(text.replace("\r\n", "\n").replace("\r", "\n"), mark)
    separator = "\t" if files.format == "tsv" else max(",;\t|", key=lambda letter: _outside_quotes(line, letter, mark))
    return line, separator, new_line


def _first_record(text: str, mark: str) -> str:
    """Up to the first line end that is outside quotes."""
    line = io.StringIO(text).readline()
    while mark and line.count(mark) % 2 and len(line) < len(text):
        line = text[: text.find("\n", len(line)) + 1] or text if "\n" in text[len(line) :] else text
    return line.rstrip("\n")


def _distinct(names: list[str]) -> list[str]:
    columns: list[str] = []
    taken = set()
    for number, name in enumerate(names):
        known = name.strip() or f"column_{number}"
        # DuckDB takes names that differ in case alone for one.
        while known.lower() in taken:
            known = f"{known}_{number}"
        taken.add(known.lower())
        columns.append(known)
    return columns


def _outside_quotes(line: str, letter: str, quote: str) -> int:
    return sum(part.count(letter) for part in (line.split(quote)[::2] if quote else [line]))


def _refuse_long_last_line(path: str) -> None:
    """DuckDB 2.0 refuses a long line anywhere but at the end, where it drops it without a word."""
    size = Path(path).stat().st_size
    if size <= MAX_LINE_BYTES:
        return
    with open(path, "rb") as file:
        file.seek(size - MAX_LINE_BYTES)
        tail = file.read().rstrip(b"\r\n")
    if b"\n" not in tail and b"\r" not in tail:
        raise BadSource(
            f"the last line of {path} is longer than {MAX_LINE_BYTES:,} bytes, more than a row of CSV may have. "
            "Cut the row, or give the table as Parquet or JSON lines."
        )
