"""Whether two values are the same in kind and content, however nested."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.base import Estimator


def assert_same(a: Any, b: Any) -> None:
    assert type(a) is type(b), (type(a), type(b))
    if isinstance(a, np.ndarray):
        assert a.shape == b.shape
        assert a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=")
        if a.dtype == object:
            for x, y in zip(a.flat, b.flat, strict=True):
                assert_same(x, y)
        else:
            np.testing.assert_array_equal(a, b)
    elif sp.issparse(a):
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part))
    elif isinstance(a, Estimator):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
        left, right = a.fitted_state(), b.fitted_state()
        right.pop("provenance_", None), left.pop("provenance_", None)
        assert_same(left, right)
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False))
    elif isinstance(a, np.random.Generator):
        assert_same(a.bit_generator.state, b.bit_generator.state)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, dict):
        assert len(a) == len(b)
        for (key, value), (other_key, other) in zip(a.items(), b.items(), strict=True):
            assert_same(key, other_key)
            assert_same(value, other)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, float | np.floating):
        assert a == b or (math.isnan(a) and math.isnan(b))
        assert math.copysign(1, a) == math.copysign(1, b) or math.isnan(a)
    elif isinstance(a, complex | np.complexfloating):
        assert_same(float(a.real), float(b.real))
        assert_same(float(a.imag), float(b.imag))
    elif isinstance(a, np.datetime64 | np.timedelta64):
        assert a == b or (np.isnat(a) and np.isnat(b))
        assert a.dtype == b.dtype
    else:
        assert a == b
