"""The tables and figures of the five papers behind shoal, on data made by each paper's recipe or on real data.

>>> papers = run(["tdpm"], Size(quick=True))         # doctest: +SKIP
>>> write(papers, "reproduced")                      # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from time import perf_counter

from shoal.reproduce.page import write
from shoal.reproduce.result import Paper, Picture, Size, Table

PAPERS = ("kmeans", "bernoulli", "fastex", "tdpm", "landscapes")

__all__ = ["PAPERS", "Paper", "Picture", "Size", "Table", "run", "write"]


def run(names: Iterable[str], size: Size) -> list[Paper]:
    """Reproduce these papers, one after another.

    Parameters
    ----------
    names : iterable of str
        Papers to reproduce.
    size : Size
        Sizes of the experiments.
    """
    import warnings

    from shoal.progress import message, task

    names = list(names)
    papers = []
    with task("papers", len(names)) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a baseline that does not converge is part of what is shown
        for name in names:
            began = perf_counter()
            paper = import_module(f"shoal.reproduce.{name}").reproduce(size)
            paper.seconds = perf_counter() - began
            message(f"{name}: {paper.title}, {paper.seconds:.0f} s")
            papers.append(paper)
            bar.advance()
    return papers
