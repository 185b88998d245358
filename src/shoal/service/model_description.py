"""A model that is not fitted yet, as plain facts that a journal can keep."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shoal.base import Estimator
from shoal.errors import BadInput


def make_repeatable(model: Estimator) -> None:
    """A model without a seed would draw other numbers on a replay; it gets one."""
    if "random_state" in model.get_params(deep=False) and model.get_params(deep=False)["random_state"] is None:
        model.set_params(random_state=0)


def description_of(model: Estimator) -> dict[str, Any]:
    """A model that is not fitted yet, as plain facts."""
    params = {name: value for name, value in model.get_params(deep=False).items() if is_plain(value)}
    return {"class": type(model).__name__, "module": type(model).__module__.split(".")[1], "params": params}


def new_model(facts: dict[str, Any]) -> Estimator:
    """The inverse of :func:`description_of`, for shoal's own models."""
    cls = getattr(import_module(f"shoal.{facts['module']}"), facts["class"])
    if not issubclass(cls, Estimator):
        raise BadInput(f"{facts['class']} is not a model.")
    return cls(**facts["params"])


def is_plain(value: Any) -> bool:
    """Whether JSON can hold it."""
    return value is None or isinstance(value, bool | int | float | str)
