"""The one place that chooses compiler flags.

A kernel takes arrays and writes arrays. It also runs with the compiler switched off
(``NUMBA_DISABLE_JIT=1``), which is how kernels are debugged and their coverage measured.
"""

from __future__ import annotations

from numba import njit

# Sums may be re-ordered for speed. NaN and infinity keep their meaning ("nnan" and
# "ninf" are left out on purpose): log(0) has to stay -inf.
REORDER_SUMS = {"reassoc", "contract", "nsz"}

kernel = njit(cache=True, nogil=True)
sum_kernel = njit(cache=True, nogil=True, fastmath=REORDER_SUMS)
inline_kernel = njit(cache=True, nogil=True, inline="always")

__all__ = ["kernel", "sum_kernel", "inline_kernel"]
