"""Until every package imports :mod:`shoal.plotting`."""

from shoal.plotting import BLUE, GREY, figure

__all__ = ["BLUE", "GREY", "figure"]
