"""Compiled loops over the arrays of :mod:`shoal.streams.state`; they know numpy and numba only."""
