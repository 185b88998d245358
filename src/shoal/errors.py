"""Every error shoal raises on purpose: one short tree, each also the built-in a caller would expect.

A message says what is wrong, where, what was found, and what to do about it.
"""

from __future__ import annotations


class ShoalError(Exception):
    """The root: ``except ShoalError`` catches everything shoal raises on purpose."""


class BadInput(ShoalError, ValueError):
    """The data or an option cannot be used as it is."""


class NotNumbers(BadInput, TypeError):
    """Values of another kind where numbers are needed."""


class BadSource(ShoalError, OSError):
    """A file, folder or stream cannot be read or written, or does not hold what was expected."""


class MissingColumn(BadInput):
    """A column that was asked for is not in the table."""


class UnknownFeature(BadInput, KeyError):
    """A feature by that name is not in the vocabulary."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return str(self.args[0]) if self.args else ""


class BadModelFile(ShoalError, OSError):
    """A model file is truncated, damaged, foreign, or written by a newer shoal."""


class CannotMerge(BadInput):
    """Two models or statistics do not belong together."""


class MissingExtra(ShoalError, ImportError):
    """An optional dependency is not installed."""


class ShoalWarning(UserWarning):
    """The root of shoal's warnings."""


class InterruptedWarning(ShoalWarning):
    """Ctrl-C stopped the work early; the model holds the best state so far."""
