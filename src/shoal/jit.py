"""The one place that chooses compiler flags.

A kernel takes arrays and writes arrays. It also runs with the compiler switched off
(``NUMBA_DISABLE_JIT=1``), which is how kernels are debugged and their coverage measured.

A call passes every array of every tuple it is given, which takes longer than a look into a table. What is small and
called for every feature is therefore an ``inline_kernel``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event
from numba.core.dispatcher import Dispatcher

from shoal import progress

# Sums may be re-ordered for speed. NaN and infinity keep their meaning ("nnan" and
# "ninf" are left out on purpose): log(0) has to stay -inf.
REORDER_SUMS = {"reassoc", "contract", "nsz"}


def _compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles on the first call, and keeps the code (`shoal.machine_code`)."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(function)
        if isinstance(dispatcher, Dispatcher):  # the plain function when the compiler is switched off
            with contextlib.suppress(Exception):  # a later numba without a name that is used compiles in every process
                from shoal.machine_code import KernelCache

                dispatcher._cache = KernelCache(dispatcher)  # type: ignore[attr-defined]
        return dispatcher

    return decorate


kernel = _compiled()
sum_kernel = _compiled(fastmath=REORDER_SUMS)
inline_kernel = _compiled(inline="always")

__all__ = ["kernel", "sum_kernel", "inline_kernel"]


class _Compiling(event.Listener):  # type: ignore[misc]
    """Tells the person watching that something is compiled, not loaded as compiled before."""

    def on_start(self, what: event.Event) -> None:
        progress.message_to_bars("compiling for this machine: once for each kind of work, and it can take a minute")

    def on_end(self, what: event.Event) -> None: ...


event.register("numba:compile", _Compiling())
