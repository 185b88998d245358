"""Model files: one file of arrays and plain facts, safe to write, safe to read."""

from shoal.store.models import describe, load, save

__all__ = ["describe", "load", "save"]
