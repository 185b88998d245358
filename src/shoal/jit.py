"""The one place that chooses compiler flags.

A kernel takes arrays and writes arrays. It also runs with the compiler switched off
(``NUMBA_DISABLE_JIT=1``), which is how kernels are debugged and their coverage measured.

A call passes every array of every tuple it is given, which takes longer than a look into a table. What is small and
called for every feature is therefore an ``inline_kernel``.
"""

from __future__ import annotations

from numba import njit
from numba.core import event

from shoal import progress

# Sums may be re-ordered for speed. NaN and infinity keep their meaning ("nnan" and
# "ninf" are left out on purpose): log(0) has to stay -inf.
REORDER_SUMS = {"reassoc", "contract", "nsz"}

kernel = njit(cache=True, nogil=True)
sum_kernel = njit(cache=True, nogil=True, fastmath=REORDER_SUMS)
inline_kernel = njit(cache=True, nogil=True, inline="always")

__all__ = ["kernel", "sum_kernel", "inline_kernel"]


class _Compiling(event.Listener):  # type: ignore[misc]
    """Tells the person watching that something is compiled, not loaded as compiled before."""

    def on_start(self, what: event.Event) -> None:
        progress.say_once("compiling for this machine: once for each kind of work, and it can take a minute")

    def on_end(self, what: event.Event) -> None: ...


event.register("numba:compile", _Compiling())
