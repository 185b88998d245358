"""Progress bars, convergence, and stopping cleanly on Ctrl-C.

The library is silent by default. A program that wants bars says so once::

    with shoal.progress.show_progress():
        model.fit(X)

Bars go to standard error, so results on standard output stay clean.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, Protocol

from shoal.errors import InterruptedWarning

logger = logging.getLogger("shoal")


class Display(Protocol):
    """Where progress goes."""

    def start(self, what: str, total: float | None) -> int: ...
    def update(self, task: int, done: float, total: float | None, note: str) -> None: ...
    def finish(self, task: int) -> None: ...
    def message(self, text: str) -> None: ...


class Silent:
    """The default: nothing is shown."""

    def start(self, what: str, total: float | None) -> int:
        return 0

    def update(self, task: int, done: float, total: float | None, note: str) -> None: ...

    def finish(self, task: int) -> None: ...

    def message(self, text: str) -> None: ...


class Bars:
    """Rich bars with an ETA on a terminal; a plain line every few seconds into a file or pipe."""

    seconds_between_lines = 5.0

    def __init__(self, wording: Callable[[str], str] = str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.wording = wording  # of messages, for a program that calls options by other names
        self.console = Console(file=sys.stderr)
        self.progress = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            transient=False,
            disable=not self.console.is_terminal,
        )
        self.names: dict[int, tuple[str, float]] = {}
        self.printed: set[str] = set()
        self.last_line = 0.0

    def start(self, what: str, total: float | None) -> int:
        task = self.progress.add_task(what, total=total, note="")
        self.names[task] = (what, time.monotonic())
        return int(task)

    def update(self, task: int, done: float, total: float | None, note: str) -> None:
        if self.console.is_terminal:
            self.progress.update(task, completed=done, total=total, note=note)  # type: ignore[arg-type]
        elif time.monotonic() - self.last_line > self.seconds_between_lines:
            self.last_line = time.monotonic()
            what, began = self.names[task]
            elapsed = self.last_line - began
            of = f" of {total:,.0f}, eta {elapsed * (total - done) / done:.0f}s" if total and done else ""
            at = f"{done:,.0f}"
            note = "" if note.endswith(f" {at}") and "  " not in note else note  # "rows 30" says nothing new
            self.console.print(f"{what}: {at}{of} {note}".rstrip(), highlight=False, soft_wrap=True)

    def finish(self, task: int) -> None:
        self.progress.stop_task(task)  # type: ignore[arg-type]

    def message(self, text: str) -> None:
        """Print a line, but none that was printed before."""
        if text not in self.printed:
            self.printed.add(text)
            self.console.print(self.wording(text), highlight=False, markup=False, soft_wrap=True)


_display: ContextVar[Display] = ContextVar("shoal_display", default=Silent())  # noqa: B039 - Silent has no state


@contextmanager
def show_progress(wording: Callable[[str], str] = str) -> Iterator[None]:
    """Show bars on standard error for the work inside; messages go through ``wording`` first."""
    bars = Bars(wording)
    handler = _ToDisplay(bars)
    token, level = _display.set(bars), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with bars.progress:
            yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        _display.reset(token)


class _ToDisplay(logging.Handler):
    """Puts what the ``shoal`` logger records between the bars."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.INFO)
        self.display = display

    def emit(self, record: logging.LogRecord) -> None:
        self.display.message(record.getMessage())


_hidden: ContextVar[bool] = ContextVar("shoal_hidden", default=False)


@contextmanager
def hidden() -> Iterator[None]:
    """No bars and no messages of the work inside: one of many fits of which the caller shows one bar.

    >>> with hidden():
    ...     message("nobody reads this")
    """
    display, was_hidden = _display.set(Silent()), _hidden.set(True)
    try:
        yield
    finally:
        _display.reset(display)
        _hidden.reset(was_hidden)


def message(text: str) -> None:
    """Record what was guessed, chosen or dropped with the ``shoal`` logger; commands show it on standard error."""
    if not _hidden.get():
        logger.info("%s", text)


def message_to_bars(text: str) -> None:
    """The same, but only for somebody who watches bars."""
    if isinstance(_display.get(), Bars):
        message(text)


@contextmanager
def task(what: str, total: float | None = None) -> Iterator[Task]:
    """A bar for work of known or unknown length.

    >>> with task("reading", total=10) as reading:
    ...     reading.advance(4, rows=4)
    >>> reading.done
    4.0
    """
    bar = Task(what, total)
    try:
        yield bar
    finally:
        bar.close()


class Task:
    """One bar. ``advance`` it, or set how much is ``done``; facts are shown next to the bar."""

    def __init__(self, what: str, total: float | None) -> None:
        self.total, self.done = total, 0.0
        self.display = _display.get()
        self.handle = self.display.start(what, total)

    def advance(self, amount: float = 1, **facts: Any) -> None:
        self.at(self.done + amount, **facts)

    def at(self, done: float, **facts: Any) -> None:
        self.done = done
        self.display.update(self.handle, done, self.total, as_note(facts))

    def close(self) -> None:
        self.display.finish(self.handle)


def as_note(facts: dict[str, Any]) -> str:
    """``{"psi": 0.51234567, "moved": 12000}`` -> ``"psi 0.51235  moved 12,000"``."""
    return "  ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in facts.items() if value is not None)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class Monitor:
    """Runs an iterative fit: counts, shows, stops on convergence, on ``max_iter``, or on Ctrl-C.

    The first Ctrl-C lets the current step end and leaves a usable model; the second is an
    ordinary KeyboardInterrupt.

    >>> objective = iter([1.0, 1.5, 1.5])
    >>> with Monitor("fit", max_iter=10, tol=1e-6) as monitor:
    ...     while monitor.running:
    ...         monitor.report(next(objective))
    >>> monitor.n_iter, monitor.converged, monitor.history
    (3, True, [1.0, 1.5, 1.5])
    """

    def __init__(self, what: str, max_iter: int, tol: float = 0.0) -> None:
        self.what, self.max_iter, self.tol = what, max_iter, tol
        self.history: list[float] = []
        self.converged = False
        self.interrupted = False
        self._previous_handler: Any = None

    @property
    def n_iter(self) -> int:
        return len(self.history)

    @property
    def running(self) -> bool:
        return not (self.converged or self.interrupted or self.n_iter >= self.max_iter)

    @property
    def out_of_iterations(self) -> bool:
        return not self.converged and not self.interrupted and self.n_iter >= self.max_iter

    def report(self, objective: float, *, settled: bool = False, **facts: Any) -> None:
        """One step is done. It has converged if nothing moved (``settled``) or the relative change is under ``tol``."""
        self.history.append(float(objective))
        if len(self.history) > 1 and self.tol > 0:
            before = self.history[-2]
            settled = settled or abs(objective - before) <= self.tol * max(abs(before), 1e-300)
        self.converged = bool(settled)
        self._task.at(self.n_iter, **facts)

    def stop(self) -> None:
        """End after this step, as converged."""
        self.converged = True

    def __enter__(self) -> Monitor:
        self._task = Task(self.what, self.max_iter)
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous_handler = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
        self._task.close()
        if self.interrupted and kind is None:
            warnings.warn(
                f"{self.what} was interrupted after {self.n_iter} of {self.max_iter} steps; "
                "the model holds the state so far.",
                InterruptedWarning,
                stacklevel=3,
            )

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self._task.display.message("stopping after this step; press Ctrl-C again to stop at once")
