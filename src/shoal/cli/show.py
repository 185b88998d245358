"""``shoal show``: look at the clusters of a saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import Json, ModelFile, Rows

if TYPE_CHECKING:
    from shoal.report import ClusterCard


def show(
    model: ModelFile,
    cluster: Annotated[int | None, typer.Option("--cluster", "-c", help="Show this cluster in detail.")] = None,
    events: Annotated[
        bool, typer.Option("--events", help="For a stream: show the strongest bursts and the latest events.")
    ] = False,
    rows: Rows = 20,
    as_json: Json = False,
) -> None:
    """Show the clusters of a saved MODEL, largest first, or one of them in detail.

    Cohesion is the mean similarity of a cluster's items to its center or, for mixtures, their mean probability.

    Example: shoal show clicks.shoal --cluster 17
    """
    from shoal import load
    from shoal.cli.output import cards_as_json, print_cards, print_json
    from shoal.errors import BadInput
    from shoal.report import cluster_cards

    loaded = load(model)
    if events:
        show_events(loaded, rows, as_json)
        return
    if not hasattr(loaded, "labels_"):
        raise BadInput(f"{model} holds a {type(loaded).__name__}, which has no clusters to show.")
    cards = cluster_cards(loaded, n_features=20 if cluster is not None else 10, n_items=10)
    if cluster is None:
        print_json(cards_as_json(cards)) if as_json else print_cards(cards, rows, cohesion=loaded.typicality_meaning)
        return
    found = [card for card in cards if card.id == cluster]
    if not found:
        ids = sorted(card.id for card in cards)
        known = f"Its ids run from {ids[0]} to {ids[-1]}." if ids else "It has no clusters."
        raise BadInput(f"--cluster {cluster}: {model} has no such cluster. {known}")
    print_json(cards_as_json(found)[0]) if as_json else print_card(found[0])


def show_events(model: Any, rows: int, as_json: bool) -> None:
    """What happened to the stories of a stream: a line each, with the story's name."""
    from shoal.cli.output import print_json
    from shoal.errors import BadInput
    from shoal.report import cluster_cards

    if not hasattr(model, "events_"):
        raise BadInput(f"--events: a {type(model).__name__} has no events; they are of streams (shoal fit -m stream).")
    found = model.events_
    if as_json:
        print_json(found)
        return
    names = {card.id: card.name for card in cluster_cards(model)}
    bursts = sorted((event for event in found if event["kind"] == "burst"), key=lambda event: -event["strength"])
    for heading, chosen in (("strongest bursts", bursts[:rows]), ("latest events", found[-rows:])):
        print(heading)
        for event in chosen:
            print(event_line(event, names))
        if not chosen:
            print("  none")


def event_line(event: dict[str, Any], names: dict[int, str]) -> str:
    """When, what, and which story."""
    from shoal.cli.output import shown
    from shoal.streams.events import moment

    more = "" if event.get("strength") is None else f", strength {event['strength']:.0f}"
    more += "" if event.get("into") is None else f", into {event['into']}"
    name = names.get(event["id"], f"cluster {event['id']}")
    at = "" if event["at"] is None else moment(event["at"])
    return f"  {at:<16}  {event['kind']:<6} {event['id']:>6}  {shown(name)}{more}"


def print_card(card: ClusterCard) -> None:
    """One cluster in full."""
    from shoal.cli.output import as_text, number, print_facts, shown

    size = f"{card.size:,} ({card.share:.2%})"
    facts = {
        "cluster": card.id,
        "name": card.name,
        "items": size,
        "cohesion": card.cohesion,
        "stability": card.stability,
    }
    print_facts({name: value for name, value in facts.items() if value is not None})
    for note in card.notes:
        print(shown(note))
    print(f"\nfeatures ({card.meaning}{f', and {card.bounded} in brackets' if card.bounded else ''})")
    for fact in card.features:
        interval = f"  [{as_text(fact.low)}, {as_text(fact.high)}]" if fact.low is not None else ""
        print(f"  {number(fact.value):>10}  {shown(fact.name)}{interval}")
    print("\ntypical items")
    for name, score in card.items:
        print(f"  {'' if score is None else f'{score:.4f}':>10}  {shown(str(name))}")
