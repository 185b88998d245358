"""What the key of a kernel changes with."""

from __future__ import annotations

import numpy as np
import pytest
from numba import types

from shoal.jit import kernel
from shoal.kmeans import exact_kernels
from shoal.machine_code import keys

FACTOR = 2.0
OBJECT = object()
VALUES = types.float64[::1]


@kernel
def scaled(values):
    return FACTOR * values[0]


@kernel
def unknown(values):
    return OBJECT


def test_the_types_of_a_call_belong_to_its_key():
    known = {keys.key_of(scaled, (one,)) for one in (VALUES, types.float64[:], types.float32[::1])}
    known.add(keys.key_of(scaled, (types.Array(types.float64, 1, "C", readonly=True),)))
    assert len(known) == 4


def test_a_global_that_changes_in_the_process_ends_caching(monkeypatch):
    keys.key_of(scaled, (VALUES,))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    with pytest.raises(keys.NotCacheable):
        keys.key_of(scaled, (VALUES,))


def test_what_depends_on_an_object_without_a_name_is_not_kept():
    with pytest.raises(keys.NotCacheable):
        keys.key_of(unknown, (VALUES,))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (True, 1),
        (np.float32(1), np.float64(1)),
        (np.array([1, 2]), np.array([1, 3])),
        ((1, 2), [1, 2]),
        (frozenset({"a"}), frozenset({"b"})),
        (np.exp, np.log),
    ],
)
def test_different_constants_have_different_texts(one, other):
    sources = keys._Sources()
    assert sources.describe(one) != sources.describe(other)
    assert sources.describe(one) == keys._Sources().describe(one)


def test_every_kernel_of_a_package_has_a_key():
    found = [one for one in vars(exact_kernels).values() if hasattr(one, "py_func")]
    assert len({keys.key_of(one, (VALUES,)) for one in found}) == len(found) > 3
