"""Odd CSV, JSON lines, Parquet, svmlight and .npz files: right is a ShoalError, or a Dataset that holds together."""

from __future__ import annotations

import functools
import gzip
import io
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

NAMES = ("csv", "jsonl", "parquet", "svmlight", "npz")
WORDS = ("red", "blue", "fox", "wine", "naïve", "a b", "x|y", "1", "-", "☕", "Tags", "tags")
# Texts that are no text, no number or no date, and what breaks a line or a quote.
CELLS = (
    "", " ", "nan", "NULL", "inf", "-1", "0", "1e308", "1e-320", "1e999", "0x1f", "9" * 400, "2019-13-45", "20190101",
    "2019-01-02", "1.7e9", "0001-01-01", '"', '""', '"a', "'", "a\nb", "a\rb", "a,b", "a;b", "\t", "\\", "\\N", "\x00",
    "\ufeff", "\u2028", "\x1b[2J", "[", "['a', 'b']", '["a","b"]', "{a,b}", 'c("a")', "[1,", "$5", "=1+1", "x" * 70_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**40, 2**70, 1.5, 1e308, float("nan"), float("inf"), "", "text", [], {}, ["a", None], [["a"]],
    [1, 2], [1.5, "x"], {"a": 1}, {"a": {"b": ["c"]}}, "2019-01-02", [{"a": "b"}], "\ud800",
)  # fmt: skip
COLUMNS = ("id", "tags", "title", "w", "when", "owner", "kind")


def prepare(folder: Path) -> None:
    """Read one honest file of each format, so that kernels are compiled before any process is forked."""
    rng = np.random.default_rng(0)
    for name in NAMES:
        path = folder / f"honest.{ENDINGS[name]}"
        path.write_bytes(MAKERS[name](rng, 0)[0])
        read(path, {} if name in ("svmlight", "npz") else {"item": "id", "text": "title"})


def trial(name: str, folder: Path, seed: int) -> tuple[str, str]:
    """Write a file with something wrong, read it whole and in batches."""
    from shoal.errors import ShoalError

    rng = np.random.default_rng(seed)
    content, said = MAKERS[name](rng, int(rng.choice([0, 1, 1, 2, 3])))
    content, more = damaged(content, rng)
    ending = ENDINGS[name]
    if rng.random() < 0.1:
        content, ending = gzip.compress(content, 1), ending + ".gz"
    path = folder / f"changed.{ending}"
    path.write_bytes(content)
    options = {} if name in ("svmlight", "npz") else some_options(rng)
    what = f"{said}{more} read with {options}"
    try:
        return "used", f"{what}: {read(path, options)} rows"
    except (ShoalError, NotImplementedError) as error:
        return "refused", f"{what}: {error}"
    except Wrong as error:
        return "wrong", f"{what}: {error}"
    except Exception:
        lines = [line.strip() for line in traceback.format_exc().strip().splitlines()]
        places = [line for line in lines if line.startswith("File") and "shoal" in line]
        return "error", f"{what}: {lines[-1][:200]} ({places[-1] if places else ''})"


class Wrong(Exception):
    """A Dataset that contradicts itself."""


def read(path: Path, options: dict[str, Any]) -> int:
    """The file as a Dataset that holds together, the same as its batches and as a second reading by its recipe."""
    import shoal
    from shoal.errors import ShoalError

    dataset = shoal.read(path, **options)
    check(dataset)
    if dataset.recipe.shape != "matrix" and "max_features" not in options:  # which counts known features only, then
        again = shoal.read(path, recipe=dataset, **places_of(dataset.recipe, options))
        check(again)
        if again.X.shape != dataset.X.shape or abs(again.X - dataset.X).max() > 1e-9 * abs(dataset.X).max():
            raise Wrong("a second reading by the recipe gives another matrix")
    try:
        parts = list(shoal.read_batches(path, batch_rows=3, **options))
    except ShoalError:
        return int(dataset.X.shape[0])  # options that need the whole
    for part in parts:
        check(part)
    whole = sp.vstack([part.X for part in parts]).tocsr()
    if dataset.recipe.shape != "long" and whole.shape == dataset.X.shape:
        if abs(whole - dataset.X).max() > 1e-9 * abs(dataset.X).max():
            raise Wrong("batches give another matrix")
    elif whole.shape[0] != dataset.X.shape[0]:
        raise Wrong(f"batches have {whole.shape[0]} rows, the whole has {dataset.X.shape[0]}")
    return int(dataset.X.shape[0])


def places_of(recipe: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What has to be given anew with a recipe: how the file is written."""
    return {name: options[name] for name in ("format", "quote", "encoding") if name in options}


def check(dataset: Any) -> None:
    """Indices inside, numbers finite, one name for each column and one id for each row."""
    X = dataset.X
    X.check_format(full_check=True)
    if not np.isfinite(X.data).all():
        raise Wrong("cells that are not finite")
    if len(dataset.vocabulary) != X.shape[1] or len(set(dataset.vocabulary)) != X.shape[1]:
        raise Wrong(f"{len(dataset.vocabulary)} names for {X.shape[1]} columns")
    for part in ("ids", "times", "owners", "labels"):
        values = getattr(dataset, part)
        if values is not None and len(values) != X.shape[0]:
            raise Wrong(f"{len(values)} {part} for {X.shape[0]} rows")
    if dataset.times is not None and np.isinf(dataset.times).any():
        raise Wrong("times that are infinite")


def some_options(rng: np.random.Generator) -> dict[str, Any]:
    """Columns by the part they play, right or wrong, and a few odd options."""
    options: dict[str, Any] = {}
    if rng.random() < 0.8:
        options["item"] = str(rng.choice(["id"] * 8 + ["w", "nothing"]))
    features = rng.choice(["features", "features", "text", "text", "feature", "numeric", ""])
    if features == "numeric":
        options["numeric"] = True
    elif features:
        options[str(features)] = str(rng.choice(["title" if features == "text" else "tags"] * 5 + ["w", "id"]))
    for role, column in (("weight", "w"), ("time", "when"), ("owner", "owner"), ("label", "kind")):
        if rng.random() < (0.1 if role == "weight" else 0.3):
            options[role] = str(rng.choice([column] * 9 + ["tags"]))
    odd: dict[str, tuple[Any, ...]] = {
        "delimiter": ("|", ",", "", "☕", "xx"),
        "weighting": ("binary", "count", "tfidf", "x"),
        "sublinear": (True,),
        "unit_length": (True, False),
        "min_items": (1, 2, 0, 10**9),
        "max_features": (1, 3, 0),
        "bigrams": (True,),
        "stop_words": ("english", ["red"], []),
        "time_unit": ("s", "ns", "x"),
        "time_format": ("dd/mm/yyyy", "%Y", "%", "x"),
        "quote": ("", "'", '"', "xx"),
        "encoding": ("latin-1", "utf-16", "klingon"),
        "format": ("csv", "tsv", "jsonl", "parquet", "lines", "npz", "x"),
        "dtype": ("float32", "float64", "int8"),
        "vocabulary": (["red", "fox"], [], ["red", "red"]),
    }
    for name in rng.permutation(sorted(odd))[: rng.choice([0, 0, 0, 1, 2])]:
        options[str(name)] = odd[str(name)][rng.integers(len(odd[str(name)]))]
    return options


# --- files ------------------------------------------------------------------------------------------------------------


def records(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Honest rows."""
    some = [
        {
            "id": f"a{row % 9 if rng.random() < 0.2 else row}",
            "tags": [str(word) for word in rng.choice(WORDS[:5], rng.integers(1, 4))],
            "title": " ".join(rng.choice(WORDS[:5], rng.integers(1, 5))),
            "w": float(rng.integers(1, 9)),
            "when": f"2024-01-{1 + row % 28:02d}",
            "owner": f"o{row % 3}",
            "kind": f"k{row % 2}",
        }
        for row in range(int(rng.integers(1, 25)))
    ]
    return some


def csv_file(rng: np.random.Generator, changes: int) -> tuple[bytes, str]:
    """Delimited text."""
    delimiter = str(rng.choice([",", ",", ";", "\t"]))
    lines = [list(COLUMNS)]
    lines += [["|".join(row["tags"]) if name == "tags" else str(row[name]) for name in COLUMNS] for row in records(rng)]
    said = []
    for _ in range(changes):
        line = lines[int(rng.integers(0 if rng.random() < 0.2 else min(1, len(lines) - 1), len(lines)))]
        kind = str(rng.choice(["cell", "cell", "cell", "longer", "shorter", "column"]))
        value = str(rng.choice(CELLS))
        if kind == "cell" and line:
            line[int(rng.integers(len(line)))] = value
        elif kind == "longer":
            line.append(value)
        elif kind == "shorter":
            del line[-1:]
        elif kind == "column":
            at = int(rng.integers(len(COLUMNS)))
            for one in lines[1:]:
                one[at : at + 1] = [str(rng.choice(CELLS))]
        said.append(f"{kind} {value[:12]!r} ")
    end = str(rng.choice(["\n", "\n", "\r\n", "\r"]))
    text = end.join(delimiter.join(line) for line in lines) + (end if rng.random() < 0.8 else "")
    encoding = str(rng.choice(["utf-8"] * 8 + ["utf-8-sig", "latin-1", "utf-16"]))
    return text.encode(encoding, "replace"), "".join(said)


def jsonl_file(rng: np.random.Generator, changes: int) -> tuple[bytes, str]:
    """JSON lines, or one array."""
    rows, said = records(rng), []
    for _ in range(changes):
        row = rows[int(rng.integers(len(rows)))]
        name = str(rng.choice([*COLUMNS, "Tags", "new", ""]))
        kind = str(rng.choice(["value", "value", "remove", "column"]))
        value = VALUES[int(rng.integers(len(VALUES)))]
        if kind == "remove":
            row.pop(name, None)
        elif kind == "value":
            row[name] = value
        else:
            for one in rows:
                one[name] = VALUES[int(rng.integers(len(VALUES)))]
        said.append(f"{kind} {name} {value!r} ")
    if rng.random() < 0.2:
        return json.dumps(rows).encode(), "".join(said) + "array"
    lines = [json.dumps(row, ensure_ascii=bool(rng.random() < 0.5)).encode("utf-8", "surrogatepass") for row in rows]
    if changes and rng.random() < 0.2:
        odd = (b"", b"null", b"[]", b"{", b'{"id": 1, "id": 2}', b"[" * 5000, b'{"tags": ' * 300, b"1", b'"x"', b"\xff")
        lines.insert(int(rng.integers(len(lines) + 1)), odd[int(rng.integers(len(odd)))])
    return b"\n".join(lines) + b"\n", "".join(said)


def parquet_file(rng: np.random.Generator, changes: int) -> tuple[bytes, str]:
    """Parquet, with columns of other types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, said = pa.Table.from_pylist(records(rng)), []
    for _ in range(changes):
        name = str(rng.choice(COLUMNS))
        kind = str(rng.choice(sorted(odd_columns())))
        at = table.column_names.index(name)
        table = table.set_column(at, name, odd_columns()[kind](table.num_rows, rng))
        said.append(f"{name} is {kind} ")
    if changes and rng.random() < 0.1:
        table, said = table.slice(0, 0), [*said, "no rows "]
    out = io.BytesIO()
    pq.write_table(table, out, compression=str(rng.choice(["none", "snappy", "zstd"])), row_group_size=5)
    return out.getvalue(), "".join(said)


@functools.cache
def odd_columns() -> dict[str, Callable[[int, np.random.Generator], Any]]:
    import pyarrow as pa

    def repeated(values: list[Any], kind: Any) -> Callable[[int, np.random.Generator], Any]:
        return lambda n, rng: pa.array([values[int(rng.integers(len(values)))] for _ in range(n)], kind)

    text = pa.string()
    return {
        "null": lambda n, rng: pa.nulls(n),
        "numbers": repeated([1.0, None, float("nan"), float("inf"), -1.0, 1e308], pa.float64()),
        "whole numbers": repeated([1, 0, -1, 2**62, None], pa.int64()),
        "unsigned": repeated([1, 2**64 - 1], pa.uint64()),
        "text": repeated(list(CELLS), text),
        "categories": lambda n, rng: repeated(["a", None, "b"], text)(n, rng).dictionary_encode(),
        "lists": repeated([["a", "b"], [], None, [None], ["a", "a"]], pa.list_(text)),
        "lists of numbers": repeated([[1, 2], [], None, [2**40]], pa.list_(pa.int64())),
        "lists of reals": repeated([[1.5, float("nan")], [float("inf")]], pa.list_(pa.float64())),
        "lists of lists": repeated([[["a"]], [[]], None], pa.list_(pa.list_(text))),
        "fixed lists": repeated([["a", "b"], ["c", None]], pa.list_(text, 2)),
        "large lists": repeated([["a"], None], pa.large_list(pa.large_string())),
        "structs": repeated([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int64()), ("b", text)])),
        "lists of structs": repeated([[{"a": "x"}], []], pa.list_(pa.struct([("a", text)]))),
        "maps": repeated([[("a", 1)], [], None], pa.map_(text, pa.int64())),
        "bytes": repeated([b"a", b"\xff\x00", None], pa.binary()),
        "times": repeated([0, -(2**62), 2**62, None, 1_700_000_000_000_000_000], pa.timestamp("ns")),
        "far times": repeated([2**62, -(2**62), 0], pa.timestamp("us")),
        "days": repeated([0, 2**31 - 1, -(2**31), None], pa.date32()),
        "clock": repeated([0, 86_399], pa.time32("s")),
        "durations": repeated([0, 2**62], pa.duration("ms")),
        "decimals": lambda n, rng: repeated([1, 10**18, None], pa.decimal128(38, 10))(n, rng),
        "truth": repeated([True, False, None], pa.bool_()),
    }


def svmlight_file(rng: np.random.Generator, changes: int) -> tuple[bytes, str]:
    """Numbers by column."""
    lines = [
        f"{row % 3} " + " ".join(f"{column}:{rng.integers(1, 5)}" for column in sorted(rng.choice(20, 4, False) + 1))
        for row in range(int(rng.integers(1, 20)))
    ]
    odd = (
        "", "#", "# x", "1", "x 1:1", "1 0:1", "1 -1:1", "1 99999999999999999999:1", "1 3000000000:1", "1 1:nan",
        "1 1:inf", "1 1:-1", "1 1:1e308 1:1e308", "1 2:1 1:1", "1 1:1 1:1", "1 1", "1 :1", "1 1:", "1 qid:2 1:1",
        "1,2 1:1", "nan 1:1", "1 1:1 # note", "1 1:x", "1 1.5:1", "1\t1:1", "1 1:1\x00",
    )  # fmt: skip
    said = [str(rng.choice(odd)) for _ in range(changes)]
    for line in said:
        lines.insert(int(rng.integers(len(lines) + 1)), line)
    return ("\n".join(lines) + "\n").encode(), f"{said} "


def npz_file(rng: np.random.Generator, changes: int) -> tuple[bytes, str]:
    """A scipy matrix with arrays that contradict one another."""
    X = sp.random(int(rng.integers(1, 20)), int(rng.integers(1, 20)), 0.3, "csr", random_state=int(rng.integers(2**31)))
    parts: dict[str, Any] = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    parts["format"], said = np.array(b"csr"), []
    for _ in range(changes):
        name = str(rng.choice(sorted(parts)))
        kind = str(rng.choice(["set", "set", "set", "cut", "type", "remove", "shape"]))
        array = np.array(parts[name])
        if kind == "set" and array.size and array.dtype.kind in "if":
            value = rng.choice([-1, 0, 1, 2**31 - 1, 10**6, np.nan if array.dtype.kind == "f" else 5])
            array.reshape(-1)[rng.integers(array.size)] = value
        elif kind == "cut" and array.ndim:
            array = array[:-1]
        elif kind == "type" and array.dtype.kind in "if":
            array = array.astype(str(rng.choice(["float32", "int8", "complex128", "bool", "U5", "S3"])))
        elif kind == "shape":
            array = array[None]
        parts[name] = array
        if kind == "remove":
            del parts[name]
        said.append(f"{kind} {name} ")
        if not parts:
            break
    out = io.BytesIO()
    np.savez(out, **parts)
    return out.getvalue(), "".join(said)


def damaged(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Sometimes with bytes flipped, cut, repeated or put in."""
    if rng.random() < 0.8 or not content:
        return content, ""
    kind = str(rng.choice(["flip", "cut", "repeat", "insert"]))
    at = int(rng.integers(len(content)))
    if kind == "flip":
        changed = bytearray(content)
        changed[at] ^= int(rng.integers(1, 256))
        return bytes(changed), f"byte {at} flipped"
    if kind == "cut":
        return content[:at], f"cut at {at}"
    if kind == "repeat":
        return content[:at] + content[at // 2 :], f"repeated from {at}"
    return content[:at] + rng.bytes(int(rng.integers(1, 20))) + content[at:], f"bytes put in at {at}"


ENDINGS = {"csv": "csv", "jsonl": "jsonl", "parquet": "parquet", "svmlight": "svm", "npz": "npz"}
MAKERS: dict[str, Callable[[np.random.Generator, int], tuple[bytes, str]]] = {
    "csv": csv_file,
    "jsonl": jsonl_file,
    "parquet": parquet_file,
    "svmlight": svmlight_file,
    "npz": npz_file,
}
