"""Every public function documents its parameters (numpydoc) and has an example, which the tests run."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

PACKAGES = (
    "shoal", "shoal.auction", "shoal.bernoulli", "shoal.data", "shoal.datasets", "shoal.densities", "shoal.engine",
    "shoal.families", "shoal.kmeans", "shoal.metrics", "shoal.report", "shoal.selection", "shoal.service",
    "shoal.store", "shoal.streams", "shoal.suggestion",
)  # fmt: skip
# Steps that a fit folds over blocks: their arguments are made by the model, and tests of the fit are their examples.
STEPS = {"accumulate", "merge", "update", "learning"}


def functions() -> list[Any]:
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            one = getattr(module, name)
            if inspect.isfunction(one):
                found[f"{one.__module__}.{name}"] = one
    return [pytest.param(one, id=name) for name, one in sorted(found.items())]


@pytest.mark.parametrize("function", functions())
def test_parameters_are_documented(function):
    text = inspect.getdoc(function) or ""
    names = [name for name in inspect.signature(function).parameters if name not in ("args", "kwargs")]
    assert not names or function.__name__ == "learning" or "Parameters\n----------\n" in text


@pytest.mark.parametrize("function", functions())
def test_there_is_an_example(function):
    assert function.__name__ in STEPS or ">>>" in (inspect.getdoc(function) or "")
