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
PARAMETERS = {"n_clusters": "--clusters", "random_state": "--seed"}
PARAMETER = re.compile(r"\b(n_clusters|random_state)(?= is\b|=\d)")


def as_flags(text: str) -> str:
    """Python's ``name=value`` as an option of a command.

    >>> as_flags("pass features= or text= to choose another")
    'pass --features or --text to choose another'
    >>> as_flags("pass feature='tags', time_format='dd/mm/yyyy' or numeric=True")
    "pass --feature 'tags', --time-format 'dd/mm/yyyy' or --numeric"
    >>> as_flags("n_clusters is -1; n_clusters=7 is more than 3 rows")
    '--clusters is -1; --clusters=7 is more than 3 rows'
    """
    text = text.replace("column, vocabulary=,", "column,")  # which commands do not have
    text = text.replace("numeric=True", "--numeric").replace("numeric=[...]", "--columns A,B,...")
    return PARAMETER.sub(lambda found: PARAMETERS[found[1]], OPTION.sub(_flag, text))


def _flag(match: re.Match[str]) -> str:
    name, value = match.groups()
    flag = FLAGS.get(name, "--" + name.replace("_", "-"))
    return f"{flag} {value}" if value else flag
