"""``shoal show``: look at the clusters of a saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.options import Json, ModelFile, Rows

if TYPE_CHECKING:
    from shoal.report import ClusterCard


def show(
    model: ModelFile,
    cluster: Annotated[int | None, typer.Option("--cluster", "-c", help="Only this cluster, in full.")] = None,
    rows: Rows = 20,
    as_json: Json = False,
) -> None:
    """Show the clusters of a saved MODEL, largest first, or one of them in full.

    Cohesion is the mean similarity of a cluster's items to its center, or the mean probability, by model.

    Example: shoal show clicks.shoal --cluster 17
    """
    from shoal import load
    from shoal.cli.output import cards_as_json, print_cards, print_json
    from shoal.errors import BadInput
    from shoal.report import cluster_cards

    loaded = load(model)
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
