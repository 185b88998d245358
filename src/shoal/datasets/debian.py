"""The shipped sample: 30,303 tagged packages of Debian 12."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.data import Dataset


def sample_path() -> Path:
    """The shipped Parquet file: columns ``package``, ``section``, ``tags`` (a list) and ``maintainer`` (a number).

    >>> sample_path().name
    'debian_packages.parquet'
    """
    return Path(__file__).with_name("debian_packages.parquet")


def load_debian_packages() -> Dataset:
    """Debian's packages and their tags: what a package is, what it is made of, what it is for.

    Each item is a package, its features are its tags (``use::gameplaying``, ``implemented-in::perl``), its label is the
    section of the archive it lies in, and its owner is the number of its maintainer. Only facts are kept: there are
    no descriptions and no names of people.

    >>> packages = load_debian_packages()
    >>> packages.X.shape
    (30303, 598)
    >>> str(packages.ids[0]), str(packages.labels[0])
    ('0ad', 'games')
    """
    from shoal.data import read

    return read(str(sample_path()), item="package", features="tags", owner="maintainer", label="section")
