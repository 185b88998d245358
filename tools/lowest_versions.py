"""The lowest version of each dependency that pyproject.toml allows, as constraints for pip.

python tools/lowest_versions.py > lowest.txt
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def lowest() -> list[str]:
    """``name==version`` for what is needed and for the extras that users install."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["report"] + extras["dask"] + extras["service"]
    pairs = [re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", text) for text in wanted]
    return [f"{pair[1]}=={pair[2]}" for pair in pairs if pair]


if __name__ == "__main__":
    print("\n".join(lowest()))
