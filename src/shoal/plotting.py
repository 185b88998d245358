"""The one place that makes figures: matplotlib, without a window and without touching the user's settings."""

from __future__ import annotations

from typing import Any

from shoal.errors import MissingExtra

BLUE, GREY = "#2563a8", "#8a94a0"
COLORS = (BLUE, "#c2571a", "#3a8a4d", "#7b4fa3", GREY, "#a83246")  # of lines in one plot


def figure(width: float = 6.2, height: float = 3.2, rows: int = 1) -> tuple[Any, Any]:
    """A matplotlib figure and its axes (one, or an array of ``rows``), in the library's plain style."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(
            "plots and reports need matplotlib, which is not installed. Install it with: pip install 'shoal[report]'"
        ) from None
    drawn = Figure(figsize=(width, height), layout="constrained")
    axes = drawn.subplots(rows, sharex=True, squeeze=False)[:, 0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=10)
    return drawn, axes[0] if rows == 1 else axes


def plain_text(drawn: Any) -> Any:
    """The figure, with no text in it read as mathematics: names may hold dollar signs."""
    from matplotlib.text import Text

    for axes in drawn.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _write_numbers_in_full(axis)
    for text in drawn.findobj(Text):
        text.set_parse_math(False)
    return drawn


def _write_numbers_in_full(axis: Any) -> None:
    """1,000 where a logarithmic axis would write 10 to the power of 3; the same ticks get a label."""
    from matplotlib.ticker import Formatter, LogFormatter

    class Plain(Formatter):
        def __init__(self, chooses: Any) -> None:
            self.chooses = chooses

        def set_locs(self, locs: Any) -> None:
            self.chooses.set_locs(locs)

        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:,.6g}" if self.chooses(x, pos) else ""

    for ticks in (axis.major, axis.minor):
        if isinstance(ticks.formatter, LogFormatter):
            chooses = ticks.formatter
            ticks.formatter = Plain(chooses)
            ticks.formatter.set_axis(axis)
            chooses.set_axis(axis)
