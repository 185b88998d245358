"""Which column plays which part: as asked, or guessed where there is no doubt, and reported."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from shoal.data.feature_layout import find_layout
from shoal.data.mixed_columns import choose_mixed_columns
from shoal.data.near_numbers import nearly_numbers
from shoal.data.read_options import BARE_LINES, ROLES
from shoal.data.recipe import Recipe
from shoal.data.table import Table, listed
from shoal.errors import BadInput, MissingColumn
from shoal.progress import message

ITEM_NAMES = ("id", "item", "item_id", "doc_id", "key", "uid", "ad_id", "name")
LIST_NAMES = ("features", "keywords", "tags", "terms", "targets", "categories", "words")
ONE_FEATURE_NAMES = ("feature", "keyword", "tag", "term", "word", "token")
TEXT_NAMES = ("text", "title", "body", "content", "abstract", "message", "description")


@dataclass
class ColumnChoice:
    """A recipe for this table, and what had to be guessed on the way."""

    recipe: Recipe
    guessed: list[str] = field(default_factory=list)

    def guess(self, text: str) -> None:
        self.guessed.append(text)
        message(text)


def choose_columns(table: Table, asked: Recipe, *, one_feature: str | None = None) -> ColumnChoice:
    """Fill in what ``asked`` leaves open: columns, shape, delimiter."""
    if asked.text == BARE_LINES:
        asked = replace(asked, text=next(iter(table.columns)))
    named: dict[str, Any] = {
        role: table.require(name, role) for role in ROLES if (name := getattr(asked, role)) is not None
    }
    choice = ColumnChoice(replace(asked, **named))
    if one_feature is not None:
        name = table.require(one_feature, "feature")
        choice.recipe = replace(choice.recipe, shape="long", features=name)
    if choice.recipe.features and choice.recipe.text:
        raise BadInput(
            f"both features={choice.recipe.features!r} and text={choice.recipe.text!r} are given; a row is described "
            "by one of them. Leave one out."
        )
    if choice.recipe.shape == "numeric":
        _guess_item(table, choice)
        _choose_numbers(table, choice)
    elif choice.recipe.shape == "table":
        _guess_item(table, choice)
        choice.recipe = choose_mixed_columns(table, choice.recipe, _taken(choice.recipe))
        kinds = zip(choice.recipe.columns, choice.recipe.kinds, strict=True)
        choice.guess(f"columns of the table: {listed([f'{name} ({kind})' for name, kind in kinds], 12)}")
    elif choice.recipe.features is None and choice.recipe.text is None:
        _guess_content(table, choice)
    if choice.recipe.item is None and choice.recipe.shape not in ("numeric", "table"):
        _guess_item(table, choice)
    if choice.recipe.text is not None:
        choice.recipe = replace(choice.recipe, shape="text")
        if choice.recipe.item is None and choice.recipe.title is None:
            choice.recipe = replace(choice.recipe, title=choice.recipe.text)
    elif choice.recipe.shape not in ("long", "numeric", "table"):
        found = find_layout(table, choice.recipe)
        choice.recipe = found.recipe
        if found.guess:
            choice.guess(found.guess)
    _check_kinds(table, choice.recipe)
    return choice


def fit_columns(table: Table, recipe: Recipe, asked: dict[str, str]) -> ColumnChoice:
    """A known recipe on a new table: content and columns asked for must be there; the rest may be absent."""
    choice = ColumnChoice(recipe)
    if asked.get("text") == BARE_LINES:
        asked = asked | {"text": next(iter(table.columns))}
    found: dict[str, Any] = {}
    for role in ROLES:
        name = asked.get(role, getattr(recipe, role))
        if name is None:
            continue
        needed = role in asked or role in ("features", "text", "weight") or (role == "item" and recipe.shape == "long")
        try:
            found[role] = table.require(name, role)
        except MissingColumn:
            if needed:
                raise
            found[role] = None
    if recipe.shape == "numeric":
        found["numeric"] = tuple(table.require(name, "numeric") for name in recipe.numeric)
    if recipe.shape == "table":
        found["columns"] = tuple(table.require(name, "table") for name in recipe.columns)
    choice.recipe = replace(recipe, **found)
    _check_kinds(table, choice.recipe)
    return choice


def _taken(recipe: Recipe) -> set[str | None]:
    return {getattr(recipe, role) for role in ROLES}


def _guess_item(table: Table, choice: ColumnChoice) -> None:
    taken = _taken(choice.recipe)
    free = [name for name in table.columns if name not in taken and table.kind(name) in ("text", "number")]
    for known in ITEM_NAMES if choice.recipe.item is None else ():
        matches = [name for name in free if name.lower() == known]
        if len(matches) == 1:
            choice.recipe = replace(choice.recipe, item=matches[0])
            choice.guess(f"items are named by column {matches[0]!r} (pass item= to choose another)")
            return


def _choose_numbers(table: Table, choice: ColumnChoice) -> None:
    """The columns asked for, or every column of numbers that has no other part."""
    recipe = choice.recipe
    if recipe.numeric:
        choice.recipe = replace(recipe, numeric=tuple(table.require(name, "numeric") for name in recipe.numeric))
        return
    taken = _taken(recipe)
    found = table.holds_numbers(name for name in table.columns if name not in taken)
    if not found:
        near = nearly_numbers(table, [name for name in table.columns if name not in taken])
        raise MissingColumn(f"{table.name} has no column of numbers.{near} It has: {listed(table.columns)}.")
    choice.recipe = replace(recipe, numeric=tuple(found))
    choice.guess(f"{len(found):,} columns of numbers are taken as features: {listed(found, 8)}")


def _guess_content(table: Table, choice: ColumnChoice) -> None:
    free = [name for name in table.columns if name not in _taken(choice.recipe)]
    lists = [name for name in free if table.kind(name) == "list"]
    by_name = {name.lower(): name for name in free if table.kind(name) in ("text", "list", "number")}
    if len(lists) == 1:
        found = lists[0]
    else:
        among = {name.lower(): name for name in lists} or by_name
        found = next((among[name] for name in LIST_NAMES if name in among), "")
    if found:
        choice.recipe = replace(choice.recipe, features=found)
        choice.guess(f"features are taken from column {found!r} (pass features= or text= to choose another)")
        return
    if _guess_pairs(table, choice, by_name):
        return
    texts = [by_name[name] for name in TEXT_NAMES if name in by_name and table.kind(by_name[name]) == "text"]
    others = [name for name in free if table.kind(name) == "text" and name.lower() not in ITEM_NAMES]
    found = texts[0] if texts else (others[0] if len(others) == 1 else "")
    if found and not table.holds_numbers([found]):
        choice.recipe = replace(choice.recipe, text=found)
        choice.guess(f"text is taken from column {found!r} (pass text= or features= to choose another)")
        return
    numbers = table.holds_numbers(name for name in free if name.lower() not in ITEM_NAMES)
    offer = f" Columns of numbers ({listed(numbers, 5)}) are used with numeric=True." if numbers else ""
    offer = offer or nearly_numbers(table, free)
    raise MissingColumn(
        f"{table.name} does not show which column describes the items. Pass features= (a list or delimited column), "
        f"feature= (one per row) or text=.{offer} It has: {listed(table.columns)}."
    )


def _guess_pairs(table: Table, choice: ColumnChoice, by_name: dict[str, str]) -> bool:
    """A column called feature, keyword ... makes a long table, if there is a column of items."""
    one = next((by_name[name] for name in ONE_FEATURE_NAMES if name in by_name), None)
    if one is None:
        return False
    choice.recipe = replace(choice.recipe, features=one)  # so that it is not guessed for the item
    _guess_item(table, choice)
    if choice.recipe.item is None:
        choice.recipe = replace(choice.recipe, features=None)
        return False
    choice.recipe = replace(choice.recipe, shape="long")
    choice.guess(f"one feature per row, in column {one!r}, for the item in column {choice.recipe.item!r}")
    return True


def _check_kinds(table: Table, recipe: Recipe) -> None:
    """Columns of a type that cannot play their part."""
    if recipe.shape == "long" and recipe.item is None:
        raise BadInput(
            f"a long table needs item=: whose feature is {recipe.features!r}? It has: {listed(table.columns)}."
        )
    if recipe.weight is not None and recipe.shape not in ("long", "list"):
        raise BadInput(
            f"weight={recipe.weight!r} needs one number for each feature, but column "
            f"{recipe.features or recipe.text!r} is {recipe.shape}. Give a long table or a list column, or no weight."
        )
    for role in ("item", "owner", "label", "text", "title", "time"):
        column = getattr(recipe, role)
        if column is not None and table.kind(column) in ("list", "nested"):
            _refuse(table, column, role, "text")
    if recipe.features is not None:
        fits = ("list", "text") if recipe.shape == "list" else ("text", "number", "time")  # a list may be spelled out
        if table.kind(recipe.features) not in fits:
            _refuse(table, recipe.features, "features", "a list" if recipe.shape == "list" else "text")
    if recipe.weight is not None and (table.kind(recipe.weight) == "list") != (recipe.shape == "list"):
        _refuse(table, recipe.weight, "weight", "a list of numbers" if recipe.shape == "list" else "a number")


def _refuse(table: Table, column: str, role: str, needed: str) -> None:
    declared = table.type_of(column)
    inside = " A field inside it is named with a dot, as in 'ad.id'." if declared.startswith("STRUCT") else ""
    raise BadInput(
        f"column {column!r} of {table.name} holds {declared[:200]}; {role}= needs {needed}. Choose another, "
        f"or turn it into {needed} with a SELECT as the source.{inside}"
    )
