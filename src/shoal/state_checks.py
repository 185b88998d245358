"""Words in which a model says what its arrays must be, when they come from a file.

``shoal.load`` calls ``check_state`` of every part and model; whatever it finds wrong is a `BadModelFile`. What kernels
follow (rows, columns, slots, positions) has to be checked; so has all that would end in an error of numpy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import BadModelFile


def need(holds: Any, what: str) -> None:
    """Refuse the model file unless ``holds``, an array of truth values or one, is true throughout."""
    if not np.all(holds):
        raise BadModelFile(f"{what}. Restore the file from a copy, or fit and save again.")


def need_array(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    kinds: str = "f",
    *,
    low: float | None = None,
    high: float | None = None,
) -> None:
    """Refuse the file unless ``value`` is a finite array of this shape and kind, with low <= values < high.

    None in ``shape`` stands for any length; ``kinds`` are numpy's letters, "f" for floats, "i" for whole numbers.

    >>> need_array(np.array([0, 2]), "labels_", (None,), "i", low=-1, high=2)
    Traceback (most recent call last):
        ...
    shoal.errors.BadModelFile: labels_ holds 2, which is not below 2. Restore the file from a copy, or fit and save ...
    """
    need(isinstance(value, np.ndarray), f"{name} is not an array")
    need(value.dtype.kind in kinds, f"{name} is an array of {value.dtype}")
    fits = value.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, value.shape, strict=True)
    )
    need(fits, f"{name} has the shape {value.shape}")
    if not value.size:
        return
    if value.dtype.kind == "f":
        need(np.isfinite(value), f"{name} holds numbers that are not finite")
    if low is not None:
        need(value.min() >= low, f"{name} holds {value.min()}, which is below {low}")
    if high is not None:
        need(value.max() < high, f"{name} holds {value.max()}, which is not below {high}")


def need_attributes(model: Any, names: tuple[str, ...]) -> None:
    """Refuse the file if something that every fitted model of this class has is missing."""
    missing = [name for name in names if name not in vars(model)]
    need(not missing, f"this {type(model).__name__} lacks {', '.join(missing)}")


def need_number(value: Any, name: str, *, low: float | None = None, whole: bool = False) -> None:
    """Refuse the file unless the value is one finite number."""
    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    need(isinstance(value, kinds) and not isinstance(value, bool) and np.isfinite(value), f"{name} is {value!r}")
    need(low is None or value >= low, f"{name} is {value!r}, which is below {low}")
