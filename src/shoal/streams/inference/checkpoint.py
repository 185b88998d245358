"""A stream that learns in place, and yet stays as it was where learning fails or is interrupted."""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from shoal.streams.inference.streaming import Stream

ALWAYS_COPIED = 1 << 25  # bytes of a state that is copied in some milliseconds
BYTES_PER_ROW = 20_000  # above it, a copy costs at most about a tenth of the time that its rows take


@contextmanager
def all_or_nothing(stream: Stream, n_rows: int) -> Iterator[None]:
    """Put the stream back if the body raises; Ctrl-C waits for the end where few rows meet a large state."""
    if stream.state.nbytes > max(ALWAYS_COPIED, BYTES_PER_ROW * n_rows):
        with interrupts_later():
            yield
        return
    before = vars(copy.deepcopy(stream, {id(stream.history): stream.history}))
    mark = stream.history.mark()
    try:
        yield
    except BaseException:
        vars(stream).update(before)
        stream.history.restore(mark)
        raise


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Hold back Ctrl-C until the body is done."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    asked: list[Any] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
