"""Files before a table is made of them: are they there, are they text, how are they packed, what does line 1 say."""

from __future__ import annotations

import csv
import glob
import io
import lzma
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import BadSource

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
PACKED = {".gz": "gzip", ".zst": "zstd", ".xz": "xz"}
HEAD_BYTES = 1 << 18


@dataclass(frozen=True)
class Files:
    """Paths of one format."""

    paths: list[str]
    format: str
    name: str  # what the user called them
    n_bytes: int


def find_files(source: str, spool: Path, format: str | None = None) -> Files:
    """The files a path, a glob or ``-`` stands for, checked; what DuckDB cannot unpack is unpacked into ``spool``."""
    if source == "-":
        paths, name = [_spool_stdin(spool)], "standard input"
    else:
        paths, name = _expand(source), source
    for path in paths:
        _check(path, name)
    found = format or _format_of(paths[0], name)
    if found not in FORMATS.values():
        raise BadSource(f"format is {format!r}; it must be one of {', '.join(sorted(set(FORMATS.values())))}.")
    n_bytes = sum(Path(path).stat().st_size for path in paths)
    paths = [_unpacked(path, spool, number) for number, path in enumerate(paths)]
    if found not in ("parquet", "npz"):
        for path in paths:
            _check_text(path, name if source == "-" else path)
    return Files(paths, found, name, n_bytes)


def head(path: str, n_bytes: int = HEAD_BYTES) -> bytes:
    """The first bytes of a file, unpacked."""
    import pyarrow as pa

    try:
        with pa.input_stream(path, compression=PACKED.get(Path(path).suffix.lower())) as stream:
            return bytes(stream.read(n_bytes))
    except OSError as error:
        raise BadSource(f"{path} cannot be read: {error}") from None


def _expand(source: str) -> list[str]:
    if Path(source).exists() or not glob.has_magic(source):
        return [source]
    paths = sorted(glob.glob(source, recursive=True))
    if not paths:
        raise BadSource(f"no file matches {source!r}, seen from {Path.cwd()}. Check the folder and the pattern.")
    return paths


def _check(path: str, name: str) -> None:
    file = Path(path)
    if file.is_dir():
        inside = sorted(entry.suffix for entry in file.iterdir() if entry.suffix in FORMATS)
        offer = f"{file}/*{inside[0]}" if inside else f"{file}/*.parquet"
        raise BadSource(f"{path} is a folder, not a file. To read the files in it, give a pattern such as '{offer}'.")
    if not file.exists():
        import difflib

        near = difflib.get_close_matches(file.name, _neighbours(file), n=3)
        offer = f" Beside it there is: {', '.join(near)}." if near else f" It was looked for from {Path.cwd()}."
        raise BadSource(f"no file at {name}.{offer}")
    if not file.stat().st_size:
        raise BadSource(f"{name} is empty (0 bytes). A table needs a header or at least one row.")


def _neighbours(file: Path) -> list[str]:
    return [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []


def _suffix(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _format_of(path: str, name: str) -> str:
    """By the file's name, or else by its first bytes."""
    if _suffix(path) in FORMATS:
        return FORMATS[_suffix(path)]
    first = _xz_head(path) if path.endswith(".xz") else head(path, 4096)
    if first.startswith(b"PAR1"):
        return "parquet"
    _refuse_binary(first, name)
    text = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return "jsonl"
    if text.startswith(b"["):
        return "json"
    line = first.split(b"\n", 1)[0]
    return "tsv" if line.count(b"\t") > line.count(b",") else "csv"


def _xz_head(path: str) -> bytes:
    with lzma.open(path) as stream:
        return stream.read(4096)


def _check_text(path: str, name: str) -> None:
    first = head(path, 1 << 14)
    if not first.strip():
        raise BadSource(f"{name} holds nothing but blanks. A table needs a header or at least one row.")
    _refuse_binary(first, name)


def _refuse_binary(first: bytes, name: str) -> None:
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadSource(f"{name} is UTF-16 text. Convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW.")
    at = first.find(b"\0")
    if at >= 0:
        raise BadSource(
            f"{name} is a binary file (a zero byte at place {at}), not a table of text. shoal reads "
            f"{', '.join(sorted(FORMATS))}, packed as {', '.join(PACKED)} or plain; say format= if the name misleads."
        )


def _unpacked(path: str, spool: Path, number: int) -> str:
    """DuckDB unpacks .gz and .zst itself; .xz goes through Python, onto disk and not into memory."""
    if Path(path).suffix.lower() != ".xz":
        return path
    target = spool / f"{number}-{Path(path).stem}"
    try:
        with lzma.open(path) as packed, open(target, "wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
    except (lzma.LZMAError, EOFError) as error:
        raise BadSource(f"{path} is not a whole .xz file: {error}") from None
    return str(target)


def _spool_stdin(spool: Path) -> str:
    """Standard input as a file on disk: it can be read only once, and a table may need two passes."""
    stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
    plain = spool / "stdin"
    with open(plain, "wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
    with open(plain, "rb") as back:
        magic = back.read(6)
    packed = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"\xfd7zXZ\x00": ".xz"}
    for first, suffix in packed.items():
        if magic.startswith(first):
            return str(plain.rename(plain.with_suffix(suffix)))
    return str(plain)


@dataclass(frozen=True)
class Dialect:
    """How the lines of a CSV or TSV file are cut."""

    columns: list[str]
    separator: str
    quote: str


def csv_dialect(files: Files, quote: str | None = None) -> Dialect:
    """Read off the first line, which names the columns; every file must begin with the same line.

    Guessing from the rows would be wrong one day: titles hold commas, and ids such as 0704.0001 look like numbers.
    """
    lines = {path: _first_line(path) for path in files.paths}
    first = lines[files.paths[0]]
    for path, line in lines.items():
        if line != first:
            raise BadSource(f"{path} has another first line than {files.paths[0]}: {line!r} and {first!r}.")
    mark = quote if quote is not None else ("" if files.format == "tsv" else '"')
    separator = "\t" if files.format == "tsv" else max(",;\t|", key=lambda letter: _outside_quotes(first, letter, mark))
    if not mark:
        names = first.split(separator)
    else:
        names = next(csv.reader(io.StringIO(first), delimiter=separator, quotechar=mark))
    columns: list[str] = []
    for number, name in enumerate(names):
        known = name.strip() or f"column_{number}"
        columns.append(known if known not in columns else f"{known}_{number}")
    return Dialect(columns, separator, mark)


def _first_line(path: str) -> str:
    line = head(path).lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].rstrip(b"\r")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadSource(
            f"the first line of {path} is not UTF-8 ({error.reason} at byte {error.start}). Convert the file first: "
            "iconv -f LATIN1 -t UTF-8 FILE > NEW."
        ) from None


def _outside_quotes(line: str, letter: str, quote: str) -> int:
    return sum(part.count(letter) for part in (line.split(quote)[::2] if quote else [line]))
