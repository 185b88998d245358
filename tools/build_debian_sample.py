"""Build the sample shipped with the package: facts about Debian packages, with no descriptions and no personal names.

    python tools/build_debian_sample.py packages.jsonl.xz src/shoal/datasets/debian_packages.parquet

Keeps every package with at least one tag: its name, section, tags, and its maintainer as a number. The numbers are
drawn in a shuffled order, so they say which packages share a maintainer and nothing about the name.
"""

from __future__ import annotations

import json
import lzma
import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def main(source: str, target: str) -> None:
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        packages = [package for package in map(json.loads, lines) if package["tags"]]
    packages.sort(key=lambda package: package["package"])
    maintainers = sorted({package["owner"] for package in packages})
    random.SystemRandom().shuffle(maintainers)
    number = {name: at for at, name in enumerate(maintainers)}
    table = pa.table(
        {
            "package": pa.array([package["package"] for package in packages]),
            "section": pa.array([package["section"] for package in packages]),
            "tags": pa.array([sorted(package["tags"]) for package in packages]),
            "maintainer": pa.array([number[package["owner"]] for package in packages], pa.int32()),
        }
    )
    pq.write_table(
        table,
        target,
        compression="zstd",
        compression_level=19,
        use_dictionary=["section", "tags.list.element", "maintainer"],
        column_encoding={"package": "DELTA_BYTE_ARRAY"},
        write_statistics=False,
        store_schema=False,
    )
    print(f"{len(packages):,} packages, {len(maintainers):,} maintainers -> {target}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
