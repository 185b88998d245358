"""``shoal suggest``: what goes with these features."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.options import Json, ModelFile

if TYPE_CHECKING:
    from shoal.records import Suggestion


def suggest(
    model: ModelFile,
    features: Annotated[list[str], typer.Argument(metavar="FEATURE...", help="What is there already.")],
    reject: Annotated[list[str] | None, typer.Option("--reject", "-r", help="What is not wanted; repeatable.")] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many suggestions.")] = 10,
    as_json: Json = False,
) -> None:
    """Suggest features that go with those given, each with its probability and the reason for it.

    Example: shoal suggest ads.shoal "window cleaner" "window cleaning" --reject "cleaning tips"
    """
    from shoal import load
    from shoal.cli.output import print_json
    from shoal.errors import BadInput

    loaded = load(model)
    if not hasattr(loaded, "suggest"):
        raise BadInput(
            f"{model} holds a {type(loaded).__name__}, which does not suggest. Fit one that does: "
            "shoal fit ... --model bernoulli."
        )
    suggestions = loaded.suggest(features, rejected=reject or (), n=number)
    if as_json:
        print_json([asdict(suggestion) for suggestion in suggestions])
    else:
        print_suggestions(suggestions)


def print_suggestions(suggestions: list[Suggestion]) -> None:
    """Probability, feature, and the cluster and given features that led to it."""
    width = max((len(suggestion.name) for suggestion in suggestions), default=0)
    for suggestion in suggestions:
        why = ""
        if suggestion.reasons:
            first = suggestion.reasons[0]
            led = f", led by {', '.join(first.because[:3])}" if first.because else ""
            why = f"{first.share:.0%} from {first.name}{led}"
        print(f"{suggestion.probability:7.1%}  {suggestion.name:<{width}}  {why}".rstrip())
