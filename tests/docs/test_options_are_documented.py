"""Every parameter of an estimator, field of an options class, option of a command and variable of the environment."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import shoal
from shoal.base import Estimator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
ESTIMATORS = sorted(
    (one for name in shoal.__all__ if inspect.isclass(one := getattr(shoal, name)) and issubclass(one, Estimator)),
    key=lambda one: one.__name__,
)
OPTIONS = ["shoal.data:ReadOptions", "shoal.streams:Inference", "shoal.streams:Evidence", "shoal.service:Limits"]


def named_in(text: str, name: str) -> bool:
    """At the head of an entry, alone or among others: ``max_iter, tol : int, float``."""
    entries = re.findall(r"^\s*``?([\w, `]+?)``? ?:|^\s*([\w, ]+?) ?:", text, re.MULTILINE)
    names = {part.strip(" `") for entry in entries for side in entry for part in side.split(",")}
    return name in names


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_parameters_of_estimators(estimator):
    text = inspect.getdoc(estimator) or ""
    missing = [name for name in inspect.signature(estimator).parameters if not named_in(text, name)]
    assert not missing


@pytest.mark.parametrize("where", OPTIONS)
def test_fields_of_options(where):
    module, name = where.split(":")
    options = getattr(importlib.import_module(module), name)
    text = inspect.getdoc(options) or ""
    assert not [field.name for field in dataclasses.fields(options) if not named_in(text, field.name)]


def test_options_of_commands():
    import commands_page

    undocumented = []
    for words in commands_page.command_names():
        options = commands_page.help_of(words[1:]).partition("Options:")[2]
        for entry in re.split(r"\n(?=  -)", options):
            head, _, rest = entry.strip().partition("  ")
            if head and not rest.strip():
                undocumented.append(f"{' '.join(words)} {head}")
    assert not undocumented


def test_variables_of_the_environment():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    used = {
        name
        for path in (ROOT / "src" / "shoal").rglob("*.py")
        for name in re.findall(r"environ(?:\.get\(|\[)\s*[\"'](SHOAL_\w+)", path.read_text(encoding="utf-8"))
    }
    assert used
    assert not {name for name in used if f"`{name}`" not in page}
