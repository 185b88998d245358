"""Which column plays which part: as asked, or guessed where there is no doubt and said aloud."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from shoal.data.recipe import Recipe
from shoal.data.tables import Table, Wanted
from shoal.errors import BadInput, MissingColumn
from shoal.progress import say

ITEM_NAMES = ("id", "item", "item_id", "doc_id", "key", "uid", "ad_id", "name")
LIST_NAMES = ("features", "keywords", "tags", "terms", "targets", "categories", "words")
ONE_FEATURE_NAMES = ("feature", "keyword", "tag", "term", "word", "token")
TEXT_NAMES = ("text", "title", "body", "content", "abstract", "message", "description")
DELIMITERS = ("|", ";", ",", "\t", " ")
ROLES = ("item", "features", "text", "weight", "time", "owner", "label")


@dataclass
class Choice:
    """A recipe for this table, and what had to be guessed on the way."""

    recipe: Recipe
    guessed: list[str] = field(default_factory=list)

    def guess(self, message: str) -> None:
        self.guessed.append(message)
        say(message)


def choose_columns(table: Table, asked: Recipe, *, one_feature: str | None = None) -> Choice:
    """Fill in what ``asked`` leaves open: columns, shape, delimiter."""
    named: dict[str, Any] = {
        role: table.require(name, role) for role in ROLES if (name := getattr(asked, role)) is not None
    }
    choice = Choice(replace(asked, **named))
    if one_feature is not None:
        name = table.require(one_feature, "feature")
        choice.recipe = replace(choice.recipe, shape="long", features=name)
    if choice.recipe.features and choice.recipe.text:
        raise BadInput(
            f"both features={choice.recipe.features!r} and text={choice.recipe.text!r} are given; a row is described "
            "by one of them. Leave one out."
        )
    if choice.recipe.features is None and choice.recipe.text is None:
        _guess_content(table, choice)
    if choice.recipe.item is None:
        _guess_item(table, choice)
    if choice.recipe.text is not None:
        choice.recipe = replace(choice.recipe, shape="text")
    elif choice.recipe.shape != "long":
        _find_shape(table, choice)
    _check_kinds(table, choice.recipe)
    return choice


def fit_columns(table: Table, recipe: Recipe, asked: dict[str, str]) -> Choice:
    """A known recipe on a new table: content and columns asked for must be there; the rest may be absent."""
    choice = Choice(recipe)
    found: dict[str, str | None] = {}
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
    choice.recipe = replace(recipe, **found)  # type: ignore[arg-type]
    _check_kinds(table, choice.recipe)
    return choice


def _guess_item(table: Table, choice: Choice) -> None:
    taken = {getattr(choice.recipe, role) for role in ROLES}
    free = [name for name in table.columns if name not in taken and table.kind(name) in ("text", "number")]
    for wanted in ITEM_NAMES:
        matches = [name for name in free if name.lower() == wanted]
        if len(matches) == 1:
            choice.recipe = replace(choice.recipe, item=matches[0])
            choice.guess(f"items are named by column {matches[0]!r} (say item= to choose another)")
            return


def _guess_content(table: Table, choice: Choice) -> None:
    taken = {getattr(choice.recipe, role) for role in ROLES}
    free = [name for name in table.columns if name not in taken]
    lists = [name for name in free if table.kind(name) == "list"]
    by_name = {name.lower(): name for name in free if table.kind(name) in ("text", "list", "number")}
    if len(lists) == 1:
        found = lists[0]
    else:
        among = {name.lower(): name for name in lists} or by_name
        found = next((among[name] for name in LIST_NAMES if name in among), "")
    if found:
        choice.recipe = replace(choice.recipe, features=found)
        choice.guess(f"features are taken from column {found!r} (say features= or text= to choose another)")
        return
    one = next((by_name[name] for name in ONE_FEATURE_NAMES if name in by_name), None)
    if one is not None:
        if choice.recipe.item is None:
            _guess_item(table, replace_content(choice, features=one))
        if choice.recipe.item is not None:
            choice.recipe = replace(choice.recipe, features=one, shape="long")
            choice.guess(f"one feature a row, in column {one!r}, for the item in column {choice.recipe.item!r}")
            return
        choice.recipe = replace(choice.recipe, features=None)
    texts = [by_name[name] for name in TEXT_NAMES if name in by_name and table.kind(by_name[name]) == "text"]
    others = [name for name in free if table.kind(name) == "text" and name.lower() not in ITEM_NAMES]
    found = texts[0] if texts else (others[0] if len(others) == 1 else "")
    if not found:
        raise MissingColumn(
            f"{table.name} does not show which column describes the items. Say features= (a list or delimited column), "
            f"feature= (one a row) or text=. It has: {', '.join(table.columns)}."
        )
    choice.recipe = replace(choice.recipe, text=found)
    choice.guess(f"text is taken from column {found!r} (say text= or features= to choose another)")


def replace_content(choice: Choice, **changes: str) -> Choice:
    """The same choice with a column provisionally taken, so that it is not guessed for another part."""
    choice.recipe = replace(choice.recipe, **changes)  # type: ignore[arg-type]
    return choice


def _find_shape(table: Table, choice: Choice) -> None:
    """A features column is a list, a delimited string, or one feature a row of a long table."""
    recipe = choice.recipe
    column = recipe.features
    assert column is not None
    kind = table.kind(column)
    if kind == "list":
        choice.recipe = replace(recipe, shape="list")
    elif recipe.delimiter is not None:
        choice.recipe = replace(recipe, shape="delimited")
    elif recipe.weight is not None or (kind == "number" and recipe.item is not None):
        choice.recipe = replace(recipe, shape="long")
    else:
        _look_at_values(table, choice, column)


def _look_at_values(table: Table, choice: Choice, column: str) -> None:
    recipe = choice.recipe
    wanted = [Wanted(column, "text")] + ([Wanted(recipe.item, "text")] if recipe.item else [])
    rows = [row for row in table.sample(wanted) if row[0]]
    values = [row[0] for row in rows]
    items = [row[1] for row in rows] if recipe.item else []
    if items and len(set(items)) < len(items):
        choice.recipe = replace(recipe, shape="long")
        choice.guess(
            f"column {recipe.item!r} repeats, so each row is taken as one (item, feature) pair of a long table"
        )
        return
    for delimiter in DELIMITERS:
        holding = sum(delimiter in value for value in values)
        if holding * 5 >= len(values) and holding:
            choice.recipe = replace(recipe, shape="delimited", delimiter=delimiter)
            choice.guess(f"column {column!r} is cut at {delimiter!r} (say delimiter= to choose another)")
            return
    choice.recipe = replace(recipe, shape="delimited", delimiter=None)
    choice.guess(f"each value of column {column!r} is taken as one feature (say delimiter= to cut it)")


def _check_kinds(table: Table, recipe: Recipe) -> None:
    """Columns of a type that cannot play their part."""
    if recipe.shape == "long" and recipe.item is None:
        raise BadInput(
            f"a long table needs item=: whose feature is {recipe.features!r}? It has: {', '.join(table.columns)}."
        )
    if recipe.weight is not None and recipe.shape not in ("long", "list"):
        raise BadInput(
            f"weight={recipe.weight!r} needs one number for each feature, but column "
            f"{recipe.features or recipe.text!r} is {recipe.shape}. Give a long table or a list column, or no weight."
        )
    needs = {"item": "text", "owner": "text", "label": "text", "text": "text", "time": "text"}
    for role, kind in needs.items():
        column = getattr(recipe, role)
        if column is not None and table.kind(column) in ("list", "nested"):
            _refuse(table, column, role, kind)
    if recipe.features is not None:
        found = table.kind(recipe.features)
        fits = (
            ("list", "text") if recipe.shape == "list" else ("text", "number", "time")
        )  # JSON lists may pass for text
        if found not in fits:
            _refuse(table, recipe.features, "features", "a list" if recipe.shape == "list" else "text")
    if recipe.weight is not None and (table.kind(recipe.weight) == "list") != (recipe.shape == "list"):
        _refuse(table, recipe.weight, "weight", "a list of numbers" if recipe.shape == "list" else "a number")


def _refuse(table: Table, column: str, role: str, needed: str) -> None:
    raise BadInput(
        f"column {column!r} of {table.name} holds {table.columns[column]}; {role}= needs {needed}. Choose another, "
        f"or turn it into {needed} with a SELECT as the source."
    )
