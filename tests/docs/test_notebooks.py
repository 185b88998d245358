"""The notebooks are those of the guides, and run from top to bottom."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import make_notebooks  # noqa: E402


def notebook(guide: str) -> nbformat.NotebookNode:
    return nbformat.read(DOCS / "notebooks" / f"{guide}.ipynb", as_version=4)


@pytest.mark.parametrize("guide", make_notebooks.GUIDES)
def test_a_notebook_is_its_guide(guide):
    kept = (DOCS / "notebooks" / f"{guide}.ipynb").read_text(encoding="utf-8")
    assert kept == make_notebooks.text_of(guide), "run: python docs/make_notebooks.py"
    nbformat.validate(notebook(guide))


@pytest.mark.filterwarnings("ignore")  # IPython's own
@pytest.mark.parametrize("guide", make_notebooks.GUIDES)
def test_a_notebook_runs(guide, tmp_path, monkeypatch):
    """In IPython, in this process: the kernels are the same, and a Jupyter server is not what is tested."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shell = InteractiveShell()
    for cell in notebook(guide).cells:
        if cell.cell_type == "code":
            done = shell.run_cell(cell.source)
            done.raise_error()
            assert shell.user_ns.get("_exit_code", 0) == 0, cell.source
    InteractiveShell.clear_instance()
