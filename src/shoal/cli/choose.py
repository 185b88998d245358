"""``shoal choose``: how many clusters the rows of a file fall into, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.models import Model, build, settings_of
from shoal.cli.options import Json, Quiet, ReadFlags, Source, progress_bars, takes_flags

if TYPE_CHECKING:
    from shoal.selection import ClusterNumberChoice

PICTURES = (".svg", ".png", ".pdf")


@takes_flags
def choose(
    source: Source,
    flags: ReadFlags,
    model: Annotated[
        Model, typer.Option("--model", "-m", help="Model; auto chooses one for the table and reports it.")
    ] = Model.kmeans,
    among: Annotated[
        str | None, typer.Option("--among", help="Numbers of clusters to try, separated by commas; default: a grid.")
    ] = None,
    resamples: Annotated[int, typer.Option("--resamples", min=2, help="Pairs of fits per number of clusters.")] = 6,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="NAME=VALUE", help="Any other parameter of the model.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Plot both curves with their errors: .svg, .png or .pdf.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recommend a number of clusters for the rows of SOURCE.

    For each number, models are fitted to pairs of samples of two thirds of the rows and compared on the remaining rows:
    by their agreement (adjusted Rand index: 1 identical, 0 as by chance) and by how well they explain these rows.

    Example: shoal choose clicks.parquet --item id --features tags --among 20,50,100,200 --picture choice.svg
    """
    from shoal import choose_n_clusters, read
    from shoal.cli.fit import automatic_model, family_for_numbers, reading_options
    from shoal.cli.source import rereadable

    candidates = numbers(among) if among is not None else None
    check_picture(picture, source)
    wanted = settings_of(settings or [])
    with progress_bars(quiet), rereadable(source) as again:
        more: dict[str, Any] = {}
        if model is Model.auto:
            model, more = automatic_model(again, flags)
        else:
            more = family_for_numbers(model, again, flags, wanted)
        wanted = more | wanted
        estimator = build(model, wanted)
        dataset = read(again, options=reading_options(model, flags, wanted, again))
        choice = choose_n_clusters(estimator, dataset, candidates, n_resamples=resamples, random_state=seed)
        if picture is not None:
            draw(choice, picture)
    show_choice(choice, picture, as_json)


def numbers(among: str) -> list[int]:
    """``"20, 50"`` as numbers.

    >>> numbers("20, 50")
    [20, 50]
    """
    from shoal.errors import BadInput

    try:
        return [int(word) for word in among.split(",")]
    except ValueError:
        raise BadInput(f"--among {among!r}: give whole numbers separated by commas, such as 20,50,100.") from None


def check_picture(picture: Path | None, source: str) -> None:
    from shoal.cli.output_files import check_outputs
    from shoal.errors import BadInput

    check_outputs({"--picture": picture}, inputs=[source], overwrite=True)
    if picture is not None and picture.suffix.lower() not in PICTURES:
        raise BadInput(
            f"--picture {picture}: its format is not clear from {picture.suffix!r}. Use {', '.join(PICTURES)}."
        )


def draw(choice: ClusterNumberChoice, picture: Path) -> None:
    from shoal.atomic import atomic_write

    with atomic_write(picture) as out:
        choice.figure().savefig(out, format=picture.suffix[1:].lower(), dpi=150)


def show_choice(choice: ClusterNumberChoice, picture: Path | None, as_json: bool) -> None:
    from shoal.cli.output import print_json

    names = ("tried", "agreement", "agreement_errors", "scores", "score_errors")
    rows = list(zip(*(getattr(choice, name).tolist() for name in names), strict=True))
    if as_json:
        keys = ("n_clusters", "agreement", "agreement_error", "score", "score_error")
        facts = {"n_clusters": choice.n_clusters, "n_found": choice.n_found, "reason": choice.reason}
        print_json(facts | {"tried": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    print("  clusters       agreement      held-out score of a row")
    for k, agreement, agreement_error, score, score_error in rows:
        mark = "*" if k == choice.n_clusters else " "
        print(f"{mark} {k:>8,}   {agreement:6.3f} ± {agreement_error:.3f}   {score:12.5g} ± {score_error:.2g}")
    print(f"\n{choice.reason[0].upper()}{choice.reason[1:]}.")
    print(f"Next: shoal fit ... --clusters {choice.n_clusters}")
    if picture is not None:
        print(f"picture: {picture}")
