"""Options that several commands share, each named once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from shoal.cli.models import Model

if TYPE_CHECKING:
    from shoal.data import ReadOptions

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Parquet, CSV, TSV, JSON lines, text, .npz or svmlight file, folder or pattern, a SELECT, or - for stdin.",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file saved by 'shoal fit'.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Rows = Annotated[int, typer.Option("--rows", "-n", min=1, help="Number of clusters to print.")]
TableOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Output file (.csv, .jsonl or .parquet); default: standard output.")
]
ModelOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Save the changed model here instead of in MODEL itself.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files even if shoal did not write them.")]
Label = Annotated[str | None, typer.Option("--label", help="Column with known labels.")]
Owner = Annotated[str | None, typer.Option("--owner", help="Column with the owner of the item.")]

# Of commands that start a model without data, with --new.
NewModel = Annotated[Model, typer.Option("--model", "-m", help="With --new: model.")]
NewClusters = Annotated[int | None, typer.Option("--clusters", "-k", min=1, help="With --new: number of clusters.")]
NewSettings = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="With --new: a parameter of the model."),
]
ServiceFolder = Annotated[
    Path | None, typer.Option("--dir", "-d", help="Folder of the journal and snapshots; default: MODEL.service.")
]


@dataclass
class ColumnFlags:
    """Which column plays which part, and how this source is written: for commands that have a model's recipe."""

    item: Annotated[str | None, typer.Option("--item", help="Column that names the item.")] = None
    features: Annotated[
        str | None, typer.Option("--features", help="Column with the features: a list, or text with a delimiter.")
    ] = None
    text: Annotated[
        str | None, typer.Option("--text", help="Column with text to split into words; - if each line is a text.")
    ] = None
    feature: Annotated[str | None, typer.Option("--feature", help="Column with one feature per row (long table).")] = (
        None
    )
    weight: Annotated[str | None, typer.Option("--weight", help="Column with weights (long tables, lists).")] = None
    time: Annotated[
        str | None, typer.Option("--time", help="Column with the time: ISO, epoch seconds or milliseconds.")
    ] = None
    owner: Owner = None
    label: Label = None
    title: Annotated[
        str | None,
        typer.Option("--title", help="Column with a title for each item; default: the beginning of its text."),
    ] = None
    delimiter: Annotated[str | None, typer.Option("--delimiter", help="Separator of features in a text column.")] = None
    time_format: Annotated[str | None, typer.Option("--time-format", help="Format of times, such as dd/mm/yyyy.")] = (
        None
    )
    time_unit: Annotated[
        str | None, typer.Option("--time-unit", help="Unit of numeric times since 1970: s, ms, us or ns.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of the file, such as latin-1 or utf-16; default: UTF-8.")
    ] = None
    format: Annotated[
        str | None,
        typer.Option("--format", help="Format of SOURCE: csv, tsv, jsonl, json, parquet, lines, npz or svmlight."),
    ] = None

    def options(self, **more: Any) -> ReadOptions:
        """What the user gave, as the library takes it."""
        from shoal.data import ReadOptions

        given = {field.name: getattr(self, field.name) for field in fields(self)}
        columns = given.pop("columns", None)
        if columns:
            given["numeric"] = [name.strip() for name in columns.split(",")]
        return ReadOptions(**drop_none(**(given | more)))


@dataclass
class ReadFlags(ColumnFlags):
    """Everything about reading: for commands that begin a model."""

    numeric: Annotated[bool | None, typer.Option("--numeric", help="Use every numeric column as a feature.")] = None
    columns: Annotated[
        str | None, typer.Option("--columns", help="Use these numeric columns only, separated by commas.")
    ] = None
    weighting: Annotated[
        str | None, typer.Option("--weighting", help="Weighting: binary, count or tfidf; default depends on the model.")
    ] = None
    min_items: Annotated[int, typer.Option("--min-items", min=1, help="Drop features seen in fewer items.")] = 1
    max_features: Annotated[
        int | None, typer.Option("--max-features", min=1, help="Drop items with more features.")
    ] = None
    stop_words: Annotated[str | None, typer.Option("--stop-words", help="'english' removes common English words.")] = (
        None
    )
    bigrams: Annotated[bool, typer.Option("--bigrams", help="Also use pairs of adjacent words as features.")] = False
    tokens: Annotated[str, typer.Option("--tokens", help="Tokenizer: words, or log for log lines.")] = "words"


@dataclass
class EngineFlags:
    """Where the passes of a fit run, and what is kept of them on the way."""

    engine: Annotated[
        str, typer.Option("--engine", help="threads, or dask (SOURCE is a pattern of files that the workers can read).")
    ] = "threads"
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Address of a Dask scheduler, such as tcp://host:8786."),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FOLDER", help="Write passes to this folder until the model is saved."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped fit from the checkpoint folder.")] = False


@dataclass
class PrintFlags:
    """How a command shows what it did."""

    rows: Rows = 20
    as_json: Json = False
    quiet: Quiet = False


def takes_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of each parameter that is a dataclass of flags, which it then gets as one object."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    flags = {name: get_type_hints(group, include_extras=True) for name, group in groups.items()}

    @functools.wraps(command)
    def with_flags(**arguments: Any) -> None:
        made = {
            name: group(**{flag: arguments.pop(flag) for flag in flags[name]})  # type: ignore[operator]
            for name, group in groups.items()
        }
        command(**arguments, **made)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY))
            continue
        parameters += [
            inspect.Parameter(
                field.name,
                parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=flags[parameter.name][field.name],
            )
            for field in fields(groups[parameter.name])
        ]
    with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_flags


@contextmanager
def progress_bars(quiet: bool) -> Iterator[None]:
    """Progress on standard error for the work inside, unless ``quiet``."""
    from shoal import progress
    from shoal.cli.output import shown
    from shoal.cli.wording import as_flags

    with nullcontext() if quiet else progress.show_progress(lambda text: shown(as_flags(text))):
        yield


def drop_none(**options: Any) -> dict[str, Any]:
    """The options that the user did give.

    >>> drop_none(item="id", text=None)
    {'item': 'id'}
    """
    return {name: value for name, value in options.items() if value is not None}
