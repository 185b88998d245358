"""``shoal warm-up``: compile now what later commands need."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from shoal.cli.options import Json, Quiet


class Group(StrEnum):
    """What can be compiled apart from the rest."""

    kmeans = "kmeans"
    bernoulli = "bernoulli"
    mixture = "mixture"
    stream = "stream"
    densities = "densities"
    auction = "auction"
    demo = "demo"


def warm_up(
    groups: Annotated[list[Group] | None, typer.Argument(help="Models to compile kernels for; default: all.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile all kernels for this machine in advance.

    A wheel for this platform contains most of them compiled. Useful when building a container image.

    Example: shoal warm-up kmeans bernoulli
    """
    import json
    import sys
    import time

    from shoal.machine_code import cache, storage
    from shoal.warm_up import GROUPS, Job
    from shoal.warm_up import warm_up as run

    wanted = [str(group.value) for group in groups or []] or list(GROUPS)
    began = time.process_time()

    def report(job: Job) -> None:
        if not quiet:
            print(f"{job.group}: {job.name}", file=sys.stderr)

    failed = run(wanted, report)
    folder = storage.user_folder()
    facts = {
        "loaded": len({entry.key for entry in cache.loaded}),
        "compiled": len(cache.compiled),
        "cpu_seconds": round(time.process_time() - began, 1),
        "folder": str(folder.path) if folder else None,
        "failed": failed,
    }
    if as_json:
        print(json.dumps(facts))
    else:
        print(f"{facts['loaded']} kernels were ready, {facts['compiled']} compiled in {facts['cpu_seconds']} s of CPU")
        print(f"kept in {folder.path}" if folder else "no folder of yours can be written to: nothing is kept")
    for line in failed:
        print(f"shoal: {line}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)
