"""The library's messages in the words of the command line."""

from __future__ import annotations

import re

NAMES: tuple[str, ...] = ("item", "features", "text", "feature", "weight", "time", "owner", "label", "title")
NAMES += ("delimiter",)
NAMES += (
    "weighting",
    "min_items",
    "max_features",
    "stop_words",
    "bigrams",
    "tokens",
    "time_unit",
    "time_format",
    "format",
)
NAMES += ("encoding", "n_clusters")
OPTION = re.compile(rf"(?<![\w.])({'|'.join(sorted(NAMES, key=len, reverse=True))})=('[^']*'|\"[^\"]*\"|(?![=\w]))")
FLAGS = {"n_clusters": "--clusters"}


def as_flags(text: str) -> str:
    """Python's ``name=value`` as an option of a command.

    >>> as_flags("pass features= or text= to choose another")
    'pass --features or --text to choose another'
    >>> as_flags("pass feature='tags', time_format='dd/mm/yyyy' or numeric=True")
    "pass --feature 'tags', --time-format 'dd/mm/yyyy' or --numeric"
    """
    text = text.replace("numeric=True", "--numeric").replace("numeric=[...]", "--columns A,B,...")
    return OPTION.sub(_flag, text)


def _flag(match: re.Match[str]) -> str:
    name, value = match.groups()
    flag = FLAGS.get(name, "--" + name.replace("_", "-"))
    return f"{flag} {value}" if value else flag
