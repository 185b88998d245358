"""Shared modules: input is validated once, ids are stable, threads keep order, Ctrl-C leaves a usable state."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from shoal import errors, jit, progress
from shoal.base import Estimator, Roster, validate_rows, validate_weights
from shoal.threads import n_threads_available, ordered_map, row_blocks


class Plain(Estimator):
    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters


# --- validation of input -------------------------------------------------------------------------


def test_rows_of_sparse_and_dense_are_the_same():
    X = np.array([[0, 1.0], [2.0, 0]])
    for given in (X, sp.csr_matrix(X), sp.csr_array(X), sp.csc_matrix(X), sp.coo_matrix(X)):
        np.testing.assert_array_equal(validate_rows(Plain(), given, mode="fit").matrix.toarray(), X)


def test_rows_are_made_canonical_without_touching_the_callers_arrays():
    data, indices, indptr = np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])
    X = sp.csr_matrix((data, indices, indptr), shape=(1, 2))
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    rows = validate_rows(Plain(), X, mode="fit").matrix
    np.testing.assert_array_equal(rows.toarray(), [[2.0, 4.0]])
    np.testing.assert_array_equal(X.indices, [1, 0, 1])


def test_64_bit_indices_are_kept():
    X = sp.csr_matrix(np.eye(3))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert validate_rows(Plain(), X, mode="fit").matrix.nnz == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(bad):
    with pytest.raises(errors.BadInput, match=r"NaN|infinity"):
        validate_rows(Plain(), np.array([[1.0, bad]]), mode="fit")


def test_a_negative_weight_is_named_by_row_and_column():
    X = sp.csr_matrix(np.array([[1.0, 0, 2.0], [0, -3.0, 0]]))
    with pytest.raises(errors.BadInput, match=r"row 1, column 1 holds -3"):
        validate_rows(Plain(), X, mode="fit", nonnegative=True)


@pytest.mark.parametrize("bad", [[1.0], [1.0, -1.0], [1.0, np.nan]])
def test_bad_sample_weights_are_refused(bad):
    with pytest.raises(errors.BadInput, match="sample_weight"):
        validate_weights(bad, 2)


def test_every_error_is_a_shoal_error_and_a_builtin():
    for error in (errors.BadInput, errors.BadSource, errors.BadModelFile, errors.MissingColumn, errors.MissingExtra):
        assert issubclass(error, errors.ShoalError)
        assert issubclass(error, (ValueError, OSError, ImportError))


# --- stable ids ---------------------------------------------------------------------------------


def test_a_removed_id_is_never_used_again():
    roster = Roster.of(3)
    roster.remove([2])
    assert roster.add(1).tolist() == [3]
    assert roster.row_of(3) == 2
    with pytest.raises(errors.BadInput, match="no cluster has id 2"):
        roster.row_of(2)
    assert [event["kind"] for event in roster.events] == ["death", "birth"]


# --- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_order_whatever_the_threads(n_threads):
    def slow_when_even(x):
        time.sleep(0.002 * (x % 2 == 0))
        return x

    assert list(ordered_map(slow_when_even, list(range(40)), n_threads)) == list(range(40))


def test_an_error_on_a_thread_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(lambda x: 1 // x, [1, 0], n_threads=2))


def test_blocks_cover_every_row_once():
    assert [row for start, end in row_blocks(7, 3) for row in range(start, end)] == list(range(7))
    assert row_blocks(0, 3) == []


def test_the_number_of_threads_can_be_set_and_is_judged(monkeypatch):
    monkeypatch.setenv("SHOAL_NUM_THREADS", "3")
    assert n_threads_available() == 3
    monkeypatch.setenv("SHOAL_NUM_THREADS", "many")
    with pytest.raises(errors.BadInput, match="many"):
        n_threads_available()


# --- progress and Ctrl-C ------------------------------------------------------------------------


def test_a_monitor_tells_converged_from_out_of_iterations():
    with progress.Monitor("fit", max_iter=3, tol=0.1) as monitor:
        for value in (1.0, 2.0, 4.0):
            monitor.report(value)
    assert monitor.out_of_iterations
    assert not monitor.converged


def test_ctrl_c_ends_after_the_step_and_warns():
    with (
        pytest.warns(errors.InterruptedWarning, match="after 2 of 10"),
        progress.Monitor("fit", max_iter=10) as monitor,
    ):
        while monitor.running:
            if monitor.n_iter == 1:
                os.kill(os.getpid(), signal.SIGINT)
            monitor.report(0.0)
    assert monitor.interrupted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_stops_at_once():
    with pytest.raises(KeyboardInterrupt), progress.Monitor("fit", max_iter=10):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)


def test_progress_goes_to_standard_error_with_an_eta(capsys, monkeypatch):
    monkeypatch.setattr(progress.Bars, "seconds_between_lines", -1.0)
    with progress.show_progress(), progress.task("reading", total=10) as reading:
        progress.message("guessed the column")
        reading.advance(5, rows=5000)
    out, err = capsys.readouterr()
    assert out == ""
    assert "guessed the column" in err
    assert "reading: 5 of 10, eta" in err
    assert "rows 5,000" in err


def test_compiling_is_told_once_and_only_if_there_is_any(capsys):
    with progress.show_progress():
        jit.njit(lambda x: x + 1)(1)
        jit.njit(lambda x: x + 2)(1)
    assert capsys.readouterr().err.count("compiling for this machine") == 1
    with progress.show_progress():
        pass
    assert capsys.readouterr().err == ""


def test_the_library_is_silent_by_default(capsys):
    with progress.task("reading", total=1) as reading:
        reading.advance()
    progress.message("nobody is watching")
    assert capsys.readouterr() == ("", "")


# --- imports ------------------------------------------------------------------------------------


def test_import_shoal_loads_nothing_heavy():
    code = (
        "import sys, shoal; print([m for m in ('numba', 'duckdb', 'sklearn', 'pyarrow', 'rich') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    import shoal

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        shoal.nothing  # noqa: B018
    assert "read" in dir(shoal)
