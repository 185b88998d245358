"""``shoal merge``: two models that learned different rows from the same start become one."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.options import Json, Overwrite


def merge(
    first: Annotated[Path, typer.Argument(metavar="A", help="Model file.")],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="Model file of the same kind, trained from the same start.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Save the merged model here.")],
    base: Annotated[
        Path | None, typer.Option("--base", help="Model that both were trained from; counted once.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Merge two models that learned different rows from the same start, into one.

    Example: shoal merge monday.shoal tuesday.shoal --base sunday.shoal --out week.shoal
    """
    from shoal import load, save
    from shoal.cli.output import print_facts, print_json
    from shoal.cli.output_files import check_outputs
    from shoal.errors import BadInput, CannotMerge

    check_outputs({"--out": out}, inputs=[second, *([base] if base else [])], overwrite=overwrite)
    a, b = load(first), load(second)
    if type(a) is not type(b):
        raise CannotMerge(
            f"{first} holds a {type(a).__name__} and {second} a {type(b).__name__}. Give two of one kind."
        )
    if base is not None and "base" not in inspect.signature(a.merge).parameters:
        raise BadInput(f"a {type(a).__name__} is merged without --base. Leave it out.")
    merged = a.merge(b) if base is None else a.merge(b, base=load(base))
    merged = a if merged is None else merged
    save(out, merged)
    facts = {"model": type(merged).__name__, "clusters": len(merged.cluster_ids_), "saved": str(out)}
    print_json(facts) if as_json else print_facts(facts)
