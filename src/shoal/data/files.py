"""Files before a table is made of them: are they there, are they text, how are they packed and encoded."""

from __future__ import annotations

import codecs
import glob
import lzma
import os
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from shoal.errors import BadInput, BadSource

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".txt": "lines",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
PACKED = {".gz": "gzip", ".zst": "zstd", ".xz": "xz"}
PACKED_STARTS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"\xfd7zXZ\x00": ".xz"}
# What files of other kinds begin with, and what to do with them.
OTHER_STARTS = {
    b"PAR1": "a Parquet file: pass format='parquet', or let its name end in .parquet",
    b"PK\x03\x04": "a spreadsheet or a zip archive: save the sheet as CSV, or unpack it first",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: save the sheet as CSV first",
    b"SQLite format 3": "an SQLite database: export the table as CSV first",
    b"%PDF": "a PDF document: take the text out first",
    b"\x93NUMPY": "a numpy array: pass numpy.load(path), or save it with scipy.sparse.save_npz",
    **{start: f"packed: let its name end in {suffix}" for start, suffix in PACKED_STARTS.items()},
}
HEAD_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20
# Text that packs better than this is no text that anybody wrote: a small file made to fill memory or disk.
MAX_EXPANSION = 500
ALWAYS_UNPACKED_BYTES = 256 << 20


@dataclass(frozen=True)
class Files:
    """Paths of one format."""

    paths: list[str]
    format: str
    name: str  # what the user called them
    n_bytes: int  # on disk, as packed
    is_packed: bool = False
    folders: tuple[str, ...] = ()  # names of columns that stand in the names of folders, as in year=2024/


def find_files(source: str, spool: Path, format: str | None = None, encoding: str | None = None) -> Files:
    """The files a path, a folder, a pattern or ``-`` stands for, checked.

    What DuckDB cannot read as it is (standard input, pipes, .xz, other encodings, names that are not UTF-8) is put
    into ``spool`` first.
    """
    check_encoding(encoding)
    if source == "-":
        paths, name = [spooled(getattr(sys.stdin, "buffer", sys.stdin), spool, "")], "standard input"
    else:
        paths, name = _expand(source), shown(source)
    folders = _folder_columns(paths, source)
    paths = [_regular(path, spool) for path in paths]
    found = format or _format_of(paths[0], name, encoding)
    if found not in FORMATS.values():
        raise BadSource(f"format is {format!r}; it must be one of {', '.join(sorted(set(FORMATS.values())))}.")
    n_bytes = sum(Path(path).stat().st_size for path in paths)
    is_text = found not in ("parquet", "npz")
    if is_text:
        paths = [_unpacked(path, spool, number) for number, path in enumerate(paths)]
        if encoding is not None:
            paths = [_recoded(path, spool, number, encoding) for number, path in enumerate(paths)]
        for path in paths:
            _check_text(path, name if len(paths) == 1 else path)
    paths = [_readable_name(path, spool, number) for number, path in enumerate(paths)]
    is_packed = is_text and any(Path(path).suffix.lower() in PACKED for path in paths)
    return Files(paths, found, name, n_bytes, is_packed, folders)


def head(path: str, n_bytes: int = HEAD_BYTES) -> bytes:
    """The first bytes of a file, unpacked."""
    try:
        with _open_unpacked(path) as stream:
            return bytes(stream.read(n_bytes))
    except (OSError, lzma.LZMAError, EOFError) as error:
        if not _is_packed(path):
            raise BadSource(f"{shown(path)} cannot be read: {error}") from None
        raise not_unpacked(path, error) from None


def shown(path: str) -> str:
    """A path as it can be printed: bytes of a name that are not UTF-8 become escapes.

    >>> shown("caf\\udce9.csv")
    'caf\\\\xe9.csv'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def not_unpacked(path: str, error: Exception) -> BadSource:
    suffix = Path(path).suffix
    return BadSource(
        f"{shown(path)} cannot be unpacked ({error}). It is cut off or damaged: fetch it again; or it is not packed: "
        f"let its name end without {suffix}."
    )


def not_utf8(path: str, what: str) -> BadSource:
    return BadSource(
        f"{what}. If the file is in another encoding, name it: encoding='latin-1', or "
        f"convert it: iconv -f LATIN1 -t UTF-8 {shown(path)} > NEW."
    )


def check_encoding(encoding: str | None) -> None:
    try:
        if encoding is not None:
            codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        raise BadInput(
            f"encoding is {encoding!r}, which Python does not know. Usual ones: latin-1, cp1252, utf-16."
        ) from None


# --- which files ------------------------------------------------------------------------------------------------------


def _expand(source: str) -> list[str]:
    if "\0" in source:
        raise BadSource(f"no file can be called {source!r}: it has a zero byte in it.")
    if os.path.isdir(source):
        return _files_of_folder(source)
    if os.path.exists(source) or not glob.has_magic(source):
        return [source]
    paths = sorted(glob.glob(source, recursive=True))
    if not paths:
        raise BadSource(f"no file matches {source!r}, seen from {Path.cwd()}. Check the folder and the pattern.")
    return paths


def _files_of_folder(folder: str) -> list[str]:
    """The files of a folder and the folders in it, which must be of one format; hidden ones and notes are left out."""
    inside = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name[0] not in "._")
    by_format: dict[str, list[str]] = {}
    for path in inside:
        if _suffix(str(path)) in FORMATS:
            by_format.setdefault(FORMATS[_suffix(str(path))], []).append(str(path))
    if len(by_format) != 1:
        found = ", ".join(f"{len(paths)} of {kind}" for kind, paths in by_format.items()) or "none that shoal reads"
        raise BadSource(
            f"{shown(folder)} is a folder; the files in it must be of one format, and there are {found}. "
            f"Give a pattern such as '{shown(folder)}/*.parquet'."
        )
    return next(iter(by_format.values()))


def _folder_columns(paths: list[str], source: str) -> tuple[str, ...]:
    """The names in ``name=value`` folders under the source, when every file has the same ones."""
    base = Path(source) if os.path.isdir(source) else Path(source.split("*", 1)[0] if "*" in source else source).parent
    named = []
    for path in paths:
        inside = Path(path).parent.parts[len(base.parts) :]
        named.append(tuple(part.split("=", 1)[0] for part in inside if "=" in part))
    return named[0] if len(set(named)) == 1 else ()


def _regular(path: str, spool: Path) -> str:
    """The path of a plain file with something in it; what comes through a pipe is put on disk first."""
    file = Path(path)
    if not file.exists():
        import difflib

        near = difflib.get_close_matches(file.name, _neighbors(file), n=3)
        offer = f" In the same folder: {', '.join(map(shown, near))}." if near else f" Seen from {Path.cwd()}."
        raise BadSource(f"no file at {shown(path)}.{offer}")
    try:
        mode = file.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode):
            with open(path, "rb") as stream:
                return spooled(stream, spool, file.suffix)
    except OSError as error:
        raise BadSource(f"{shown(path)} cannot be read: {error.strerror or error}.") from None
    if not stat.S_ISREG(mode):
        raise BadSource(f"{shown(path)} is neither a file nor a pipe, and cannot be read as a table.")
    if not file.stat().st_size:
        raise BadSource(f"{shown(path)} is empty (0 bytes). A table needs a header or at least one row.")
    return path


def _neighbors(file: Path) -> list[str]:
    return [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []


def _readable_name(path: str, spool: Path, number: int) -> str:
    """DuckDB takes names in UTF-8 only; any other file gets a second name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        suffixes = "".join(Path(path).suffixes[-2:])
        second = spool / f"{number}{suffixes.encode('ascii', 'ignore').decode()}"
        second.symlink_to(os.path.abspath(path))
        return str(second)
    return path


def spooled(stream: Any, spool: Path, suffix: str) -> str:
    """What can be read only once, as a file on disk: a table may need two passes."""
    plain = spool / f"pipe{len(list(spool.iterdir()))}{suffix}"
    with open(plain, "wb") as out:
        shutil.copyfileobj(stream, out, CHUNK_BYTES)
    with open(plain, "rb") as back:
        magic = back.read(6)
    if not magic:
        raise BadSource("standard input or the pipe is empty (0 bytes). A table needs a header or at least one row.")
    for first, packing in PACKED_STARTS.items():
        if magic.startswith(first) and suffix != packing:
            return str(plain.rename(plain.with_name(plain.name + packing)))
    return str(plain)


# --- what is in them --------------------------------------------------------------------------------------------------


def _suffix(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _format_of(path: str, name: str, encoding: str | None) -> str:
    """By the file's name, or else by its first bytes."""
    if _suffix(path) in FORMATS:
        return FORMATS[_suffix(path)]
    first = head(path, 4096)
    if first.startswith(b"PAR1"):
        return "parquet"
    if encoding is not None:
        first = first.decode(encoding, "replace").encode()
    _refuse_binary(first, name)
    text = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"{"):
        return "jsonl"
    if text.startswith(b"["):
        return "json"
    line = first.split(b"\n", 1)[0]
    return "tsv" if line.count(b"\t") > line.count(b",") else "csv"


def _check_text(path: str, name: str) -> None:
    first = head(path, 1 << 14)
    if not first.strip():
        raise BadSource(f"{name} holds nothing but blanks. A table needs a header or at least one row.")
    _refuse_binary(first, name)


def _refuse_binary(first: bytes, name: str) -> None:
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadSource(
            f"{name} is UTF-16 text. Say so with encoding='utf-16', or convert "
            "it first: iconv -f UTF-16 -t UTF-8 FILE > NEW."
        )
    for start, advice in OTHER_STARTS.items():
        if first.startswith(start):
            raise BadSource(f"{name} is {advice}.")
    text = first[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html")):
        raise BadSource(f"{name} is a web page, perhaps the message of a failed download, and not a table.")
    at = first.find(b"\0")
    if at >= 0:
        raise BadSource(
            f"{name} is a binary file (a zero byte at place {at}), not a table of text. shoal reads "
            f"{', '.join(sorted(FORMATS))}, packed as {', '.join(PACKED)} or plain; pass format= if the name misleads."
        )


# --- unpacking and recoding -------------------------------------------------------------------------------------------


def _open_unpacked(path: str) -> Any:
    import pyarrow as pa

    suffix = Path(path).suffix.lower()
    if suffix == ".xz":
        return lzma.open(path)
    if suffix in PACKED:
        return pa.input_stream(pa.PythonFile(open(path, "rb")), compression=PACKED[suffix])
    return open(path, "rb")


def _unpacked(path: str, spool: Path, number: int) -> str:
    """DuckDB unpacks .gz and .zst itself; .xz goes through Python, onto disk and not into memory."""
    if Path(path).suffix.lower() != ".xz":
        return path
    target = spool / f"{number}-{Path(shown(path)).stem}"
    try:
        with lzma.open(path) as packed, open(target, "wb") as plain:
            _copy(packed, plain, path)
    except (lzma.LZMAError, EOFError) as error:
        raise BadSource(f"{shown(path)} is not a whole .xz file: {error}") from None
    return str(target)


def _copy(packed: Any, plain: BinaryIO, path: str) -> None:
    most, written = most_unpacked(os.path.getsize(path)), 0
    while chunk := packed.read(CHUNK_BYTES):
        written += plain.write(chunk)
        if written > most:
            raise too_large(shown(path), os.path.getsize(path))


def most_unpacked(n_bytes: int) -> int:
    """How large a packed file of this size may become."""
    return max(ALWAYS_UNPACKED_BYTES, MAX_EXPANSION * n_bytes)


def too_large(name: str, n_bytes: int) -> BadSource:
    return BadSource(
        f"{name} unpacks to more than {most_unpacked(n_bytes) / 1e6:,.0f} MB, over {MAX_EXPANSION} times its "
        f"{n_bytes / 1e6:,.1f} MB: more than a table of text does. If it is meant, unpack it first."
    )


def _recoded(path: str, spool: Path, number: int, encoding: str) -> str:
    """A copy in UTF-8."""
    name = Path(shown(path)).name
    target = spool / f"{number}-utf8-{name.removesuffix(Path(name).suffix) if _is_packed(path) else name}"
    try:
        with _open_unpacked(path) as raw, open(target, "w", encoding="utf-8", newline="") as out:
            text = codecs.getreader(encoding)(raw)
            while chunk := text.read(CHUNK_BYTES):
                out.write(chunk.removeprefix("\ufeff") if out.tell() == 0 else chunk)
    except UnicodeError as error:
        raise BadSource(f"{shown(path)} is not text in {encoding}: {error}. Name another encoding.") from None
    return str(target)


def _is_packed(path: str) -> bool:
    return Path(path).suffix.lower() in PACKED
