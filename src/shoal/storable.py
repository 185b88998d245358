"""Which classes a model file may name."""

from __future__ import annotations

from typing import TypeVar

Class = TypeVar("Class", bound=type)

# Classes that a model file may name, by "package.Name": estimators, and parts of models (kernels over time, families,
# rosters) that are dataclasses or named tuples. A file can name nothing else, so loading one never runs foreign code.
STORABLE: dict[str, type] = {}


def storable(cls: Class) -> Class:
    """Let ``shoal.save`` write instances of this dataclass, named tuple or estimator, and ``shoal.load`` build them."""
    name = storable_name(cls)
    known = STORABLE.setdefault(name, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(f"{cls.__module__} and {known.__module__} both have a class that model files call {name}")
    STORABLE[name] = cls
    return cls


def storable_name(cls: type) -> str:
    """What a model file calls the class: its package inside shoal and its own name.

    >>> from shoal import SphericalKMeans
    >>> storable_name(SphericalKMeans)
    'kmeans.SphericalKMeans'
    """
    package = cls.__module__
    if package.startswith("shoal."):
        package = package.split(".")[1]
    return f"{package}.{cls.__qualname__}"
