"""The code stays readable: short files and functions, few arguments, imports of siblings through their package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import shoal

ROOT = Path(shoal.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MOST_LINES, MOST_LINES_OF_FUNCTION, MOST_ARGUMENTS = 400, 20, 12
MODELS = {"bernoulli", "densities", "families", "kmeans", "streams", "suggestion"}
# What uses everything: the commands, and the experiments of the papers, which run single steps of a model.
USES_PARTS = {"cli", "reproduce"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_kernel(path: Path) -> bool:
    return path.stem.endswith("kernels")


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def code_lines(path: Path) -> Iterator[int]:
    """For each function of a file, how many lines of code its body has: no docstring, comment or blank line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            body = lines[first.lineno - 1 : node.end_lineno]
            yield sum(bool(line.strip()) and not line.strip().startswith("#") for line in body)


def called_name(call: ast.Call) -> str:
    return ast.unparse(call.func).split(".")[-1]


def test_no_file_is_long():
    long = {place(p, parsed(p).body[-1]) for p in FILES if len(p.read_text("utf-8").splitlines()) > MOST_LINES}
    assert not long


def test_functions_outside_kernels_are_short():
    lengths = [length for path in FILES if not is_kernel(path) for length in code_lines(path)]
    assert len(lengths) > 2000
    assert np.percentile(lengths, 90) <= MOST_LINES_OF_FUNCTION


def test_calls_outside_kernels_have_few_arguments():
    """Constructors are excepted: a class or named tuple is called by the names of its fields."""
    calls = [
        (path, node)
        for path in FILES
        if not is_kernel(path)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and not called_name(node)[:1].isupper()
    ]
    assert not {
        f"{place(path, node)} {called_name(node)}"
        for path, node in calls
        if len(node.args) + len(node.keywords) > MOST_ARGUMENTS
    }


def test_modules_of_a_model_are_used_by_that_model_only():
    """Others import what the package names in its ``__init__``; imports inside functions count, too."""
    wrong = set()
    for path in FILES:
        package = path.relative_to(ROOT).parts[0]
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module and package not in USES_PARTS:
                parts = node.module.split(".")
                if parts[0] == "shoal" and len(parts) > 2 and parts[1] in MODELS - {package}:
                    wrong.add(f"{place(path, node)} imports {node.module}")
    assert not wrong


def test_no_package_imports_the_private_names_of_another():
    wrong = set()
    for path in FILES:
        package = path.relative_to(ROOT).parts[0]
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal."):
                other = (node.module or "").split(".")[1]
                private = [name.name for name in node.names if name.name.startswith("_") and name.name != "__version__"]
                if other != package and private:
                    wrong.add(f"{place(path, node)} imports {private} of {node.module}")
    assert not wrong
