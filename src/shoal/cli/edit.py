"""``shoal edit``: name, merge, split and pin the clusters of a saved model."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Annotated, Any

import typer

from shoal.cli.options import ColumnFlags, Json, ModelFile, ModelOut, takes_flags
from shoal.errors import BadInput


class Action(StrEnum):
    """What can be done to clusters."""

    name = "name"
    merge = "merge"
    split = "split"  # type: ignore[assignment]  # str has a method of that name
    pin = "pin"
    unpin = "unpin"


@takes_flags
def edit(
    model: ModelFile,
    action: Annotated[Action, typer.Argument(help="Kind of edit.")],
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="ARGUMENT...",
            help="name CLUSTER TEXT ('' removes the name); merge CLUSTER ... --into CLUSTER; split CLUSTER; "
            "pin CLUSTER ...; unpin CLUSTER ...",
        ),
    ],
    flags: ColumnFlags,
    into: Annotated[int | None, typer.Option("--into", help="Cluster that receives the merged ones.")] = None,
    rows: Annotated[
        str | None, typer.Option("--from", metavar="SOURCE", help="Rows by which the cluster is split.")
    ] = None,
    out: ModelOut = None,
    as_json: Json = False,
) -> None:
    """Edit the clusters of a saved MODEL: give names, merge, split, pin. Ids stay, and each edit is on record.

    Example: shoal edit clicks.shoal name 17 "city bikes"
    """
    from shoal import load, save
    from shoal.cli.lock import locked
    from shoal.cli.output import print_facts, print_json
    from shoal.cli.output_files import check_outputs

    check_outputs({"--out": out or model}, inputs=[rows] if rows else [], overwrite=out is None)
    with locked(model):
        loaded = load(model)
        facts = run(loaded, action, arguments, into, rows, flags)
        save(out or model, loaded)
    facts = {"action": str(action), **facts, "saved": str(out or model)}
    print_json(facts) if as_json else print_facts(facts)


def run(
    model: Any, action: Action, arguments: list[str], into: int | None, rows: str | None, flags: ColumnFlags
) -> dict[str, Any]:
    """Do one thing to the model; what was done."""
    if into is not None and action is not Action.merge:
        raise BadInput(f"--into is for merge, and this is {action}.")
    if rows is not None and action is not Action.split:
        raise BadInput(f"--from is for split, and this is {action}.")
    if action is Action.name:
        if len(arguments) != 2:
            raise BadInput('give a cluster and its name: shoal edit MODEL name 17 "city bikes".')
        cluster = cluster_ids(arguments[:1])[0]
        model.name_cluster(cluster, arguments[1] or None)
        return {"cluster": cluster, "name": arguments[1]}
    clusters = cluster_ids(arguments)
    if action is Action.merge:
        if into is None:
            raise BadInput("give the cluster that stays: shoal edit MODEL merge 3 4 --into 2.")
        model.merge_clusters([cluster for cluster in clusters if cluster != into], into)
        return {"clusters": clusters, "into": into}
    if action is Action.split:
        if len(clusters) != 1:
            raise BadInput("split takes one cluster: shoal edit MODEL split 17 --from rows.parquet.")
        return {"cluster": clusters[0], "new_cluster": split(model, clusters[0], rows, flags)}
    for cluster in clusters:
        model.pin_cluster(cluster, action is Action.pin)
    return {"clusters": clusters}


def split(model: Any, cluster: int, rows: str | None, flags: ColumnFlags) -> int:
    """Most models split by rows they are given; a stream by the messages it still holds."""
    from shoal import read

    needed = list(inspect.signature(model.split_cluster).parameters)[1:2]
    if needed == ["X"]:
        if rows is None:
            raise BadInput(f"give rows to split cluster {cluster} by: shoal edit MODEL split {cluster} --from SOURCE.")
        return int(model.split_cluster(cluster, read(rows, options=flags.options(recipe=model))))
    if needed:
        raise BadInput(
            f"a {type(model).__name__} is split by single messages; do that in Python: model.split_cluster(cluster, "
            "messages)."
        )
    return int(model.split_cluster(cluster))


def cluster_ids(texts: list[str]) -> list[int]:
    """Whole numbers, or an error that names the one that is none."""
    ids = []
    for text in texts:
        try:
            ids.append(int(text))
        except ValueError:
            raise BadInput(f"{text!r} is not the id of a cluster; ids are whole numbers (shoal show MODEL).") from None
    return ids
