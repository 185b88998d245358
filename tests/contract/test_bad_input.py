"""Law 10: bad input is refused before anything is changed; an interrupted call leaves the model as it was."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from contract.cases import Case, asked, cases, fingerprint, learn
from shoal.errors import BadInput


def broken_matrices(X: sp.csr_matrix) -> dict[str, Any]:
    """Matrices that no model can use."""
    far, offset, negative, nan = X.copy(), X.copy(), X.copy(), X.copy()
    far.indices[3] = 10**8
    offset.indptr[5] = 10**7
    negative.indices[3] = -5
    nan.data[0] = np.nan
    return {
        "index too large": far, "offset too large": offset, "index below zero": negative, "NaN": nan,
        "infinity": X * np.inf, "another width": sp.hstack([X, X, X]).tocsr(), "text": [["a", "b"]], "nothing": None,
        "three dimensions": np.zeros((2, 2, 2)),
    }  # fmt: skip


@cases("bad matrices")
def test_bad_matrices_are_refused_and_change_nothing(case: Case) -> None:
    model, X = case.fitted(), case.rows(1)
    before = fingerprint(model)
    for what, bad in broken_matrices(X).items():
        if what == "NaN" and case.tables:  # a missing value, which is left out of the likelihood
            continue
        with pytest.raises((ValueError, TypeError)):
            asked(model, bad)
        if hasattr(model, "partial_fit"):
            with pytest.raises((ValueError, TypeError)):
                learn(model, bad, None, more=True)
        if what not in ("another width", "text"):  # a list of lists of names is a table of sets
            with pytest.raises((ValueError, TypeError)):
                learn(model, bad, None)
        assert fingerprint(model) == before, what


@cases("bad weights")
def test_bad_weights_are_refused_and_change_nothing(case: Case) -> None:
    import inspect

    model, X = case.fitted(), case.rows(1)
    before = fingerprint(model)
    learning = [model.fit] + ([model.partial_fit] if hasattr(model, "partial_fit") else [])
    for call in learning:
        if "sample_weight" not in inspect.signature(call).parameters:
            continue
        for bad in ([1.0], np.full(X.shape[0], -1.0), np.full(X.shape[0], np.nan), "heavy"):
            with pytest.raises(BadInput):
                call(X, sample_weight=bad)
            assert fingerprint(model) == before


BAD_OPTIONS = [("n_clusters", 2.5), ("n_clusters", 0), ("random_state", "x"), ("random_state", -1), ("tol", "abc")]


@cases("bad options")
def test_bad_options_are_refused_in_words(case: Case) -> None:
    for name, bad in (
        ("n_clusters", 2.5),
        ("n_clusters", 0),
        ("random_state", "x"),
        ("random_state", -1),
        ("tol", "abc"),
    ):
        model = case.make()
        if name not in model.get_params(deep=False):
            continue
        model.set_params(**{name: bad})
        with pytest.raises(BadInput, match=name):
            learn(model, case.rows(), 0.0 if case.streams else None)
        assert not [attribute for attribute in vars(model) if attribute.endswith("_") and attribute[0] != "_"]


class Stop(BaseException):
    """What the alarm raises: as Ctrl-C would, it is no Exception."""


@cases("interrupted learning")
def test_interrupted_learning_leaves_the_model_as_it_was(case: Case) -> None:
    model = case.fitted()
    if not hasattr(model, "partial_fit"):
        return

    def interrupt(number: int, frame: Any) -> None:
        raise Stop

    X = sp.vstack([case.rows(1)] * 20).tocsr()
    times = {"times": 1000.0 + np.arange(X.shape[0])} if case.streams else {}
    before, stopped = fingerprint(model), 0
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                model.partial_fit(X, **times)
            except (Stop, RuntimeError) as error:
                # Raised while a lock is waited for, an interrupt comes out of Python's own lock as RuntimeError.
                if not isinstance(error, Stop) and not isinstance(error.__context__, Stop):
                    raise
                stopped += 1
                assert fingerprint(model) == before
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            before = fingerprint(model)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert stopped
