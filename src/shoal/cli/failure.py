"""What a person reads when a command fails, and its exit code."""

from __future__ import annotations

import os
import sys
import traceback

from shoal.cli.wording import as_flags
from shoal.errors import ShoalError

# Errors of libraries that come from the input or the system, by the module and name of their class.
FOREIGN = ("duckdb", "_duckdb", "pyarrow", "csv", "_csv", "zlib", "lzma", "_lzma", "json")


def exit_code_of(error: BaseException) -> int:
    """Say what happened on standard error; 2 for the input, the options and the system, 1 for all else.

    >>> exit_code_of(BrokenPipeError())
    1
    """
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, as `head` does
        return 1
    if isinstance(error, KeyboardInterrupt):
        return _say("stopped. Nothing was written.", 130)
    if isinstance(error, ShoalError):
        return _say(as_flags(str(error)), 2)
    if os.environ.get("SHOAL_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        return _say(
            f"the memory is not enough{_in_brackets(error)}. Take fewer clusters, or shoal fit --batch-rows.", 2
        )
    if isinstance(error, OSError):
        name = f" {error.filename}" if error.filename is not None else ""
        return _say(f"the system refused:{name} {error.strerror or error}.", 2)
    if isinstance(error, UnicodeError):
        return _say(f"a text cannot be read or written: {error}.", 2)
    if type(error).__module__.split(".")[0] in FOREIGN:
        return _say(f"the input cannot be used: {_first_line(error)}", 2)
    if isinstance(error, ValueError | TypeError | OverflowError):
        return _say(f"a value or option cannot be used: {_first_line(error)} (SHOAL_DEBUG=1 shows where).", 2)
    return _say(f"a bug in shoal: {type(error).__name__}: {_first_line(error)} (SHOAL_DEBUG=1 shows where).", 1)


def _say(text: str, code: int) -> int:
    if sys.stderr is not None:
        print(f"shoal: {text}", file=sys.stderr)
    return code


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _in_brackets(error: BaseException) -> str:
    return f" ({_first_line(error)})" if str(error).strip() else ""
