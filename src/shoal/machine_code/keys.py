"""What the code of a kernel depends on, as a digest.

The code follows from the bytecode of the kernel and of all the functions it calls, the constants they read, the types
of the arguments, the compiler with its settings, and the CPU. Numba's own cache stamps the kernel's file only, so that
a constant or a kernel imported from another file could change without the code being compiled again (numba issue 1833).
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import types as python_types
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import config
from numba.core import types as numba_types
from numba.core.dispatcher import Dispatcher
from numba.core.sigutils import normalize_signature

types: Any = numba_types  # its names are made at import, which a type checker does not see

FORMAT = 1  # of entries and packs; raised when older ones can no longer be read

# Settings of numba that change the code a kernel is compiled to.
SETTINGS = (
    "OPT",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
    "ENABLE_AVX",
    "ENABLE_PROFILING",
    "FULL_TRACEBACKS",
)
# What these packages hold follows from the versions of Python, numba and numpy.
VERSIONED = {"numba", "numpy", "math", "cmath", "operator", "builtins", "typing", "collections"}


class NotCacheable(Exception):
    """It is not known what the code depends on: the kernel is compiled in every process."""


@functools.cache
def versions() -> str:
    """The compiler and its settings, as text."""
    facts = {
        "format": FORMAT,
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": ".".join(np.__version__.split(".")[:2]),
        "triple": llvm.get_process_triple(),
        "settings": {name: str(getattr(config, name, None)) for name in SETTINGS},
        "svml": bool(getattr(config, "USING_SVML", False)),
    }
    return json.dumps(facts, sort_keys=True)


@functools.cache
def cpu() -> str:
    """The CPU that numba compiles for, as text."""
    name = config.CPU_NAME or llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return f"{name} {features}"


def key_of(dispatcher: Dispatcher, signature: Any) -> str:
    """The name under which the code of a kernel for these types is kept."""
    arguments, returned = normalize_signature(signature)
    sources = _Sources()
    root = sources.label(dispatcher)
    call = f"{root}({', '.join(sources.describe_type(one) for one in arguments)}) -> {returned}"
    return hashlib.sha256(f"{call}\n{sources.text()}".encode()).hexdigest()[:40]


def _is_versioned(module: str | None) -> bool:
    return str(module).split(".")[0] in VERSIONED


_first_seen: dict[Any, str] = {}  # function -> digest of its own text when its code was first asked for


class _Sources:
    """The functions that a kernel is compiled from: itself, and whatever these call."""

    def __init__(self) -> None:
        self.labels: dict[Any, str] = {}  # function -> its name in the text
        self.waiting: list[tuple[Any, str]] = []  # functions and their compiler options, in the order they were met

    def label(self, function: Any) -> str:
        """Name a function in the text of another, and note that its own text belongs to the key, too."""
        options = ""
        if isinstance(function, Dispatcher):
            options = json.dumps(function.targetoptions, sort_keys=True, default=sorted)
            function = function.py_func
        if function not in self.labels:
            name = f"{function.__module__}.{function.__qualname__}"
            while name in self.labels.values():
                name += "'"
            self.labels[function] = name
            self.waiting.append((function, options))
        return self.labels[function]

    def text(self) -> str:
        """Everything the functions depend on. The list grows while it is walked, until nothing new is called."""
        parts = []
        for function, options in self.waiting:
            digest = hashlib.sha256(self._own_text(function, options).encode()).hexdigest()
            # Numba freezes a global when it compiles, so after a change nobody knows which value the code has.
            if _first_seen.setdefault(function, digest) != digest:
                raise NotCacheable(f"a global of {function.__qualname__} has changed since it was first compiled")
            parts.append(f"{self.labels[function]} {digest}")
        return "\n".join(parts)

    def _own_text(self, function: Any, options: str) -> str:
        parts = [options, repr(function.__kwdefaults__)]
        parts += [self.describe(value) for value in function.__defaults__ or ()]
        parts.append(self._describe_code(function.__code__, function.__globals__, function.__doc__))
        parts += [self.describe(cell.cell_contents) for cell in function.__closure__ or ()]
        return "\n".join(parts)

    def _describe_code(self, code: python_types.CodeType, names: dict[str, Any], doc: str | None = None) -> str:
        parts = [code.co_code.hex(), code.co_exceptiontable.hex(), str(code.co_flags), str(code.co_argcount)]
        parts += [repr(code.co_varnames), repr(code.co_names), repr(code.co_freevars), repr(code.co_cellvars)]
        for constant in code.co_consts:
            if isinstance(constant, python_types.CodeType):
                parts.append(self._describe_code(constant, names))
            elif doc is None or constant != doc:
                parts.append(self.describe(constant))
        parts += self._describe_globals(code, names)
        return "\n".join(parts)

    def _describe_globals(self, code: python_types.CodeType, names: dict[str, Any]) -> list[str]:
        """The values behind the names, and behind the attributes of modules that `versions` does not cover."""
        parts = []
        found = {"": names}
        waiting = [""]
        for prefix in waiting:  # grows when a module is met
            for name in code.co_names:
                if name not in found[prefix]:
                    continue
                value = found[prefix][name]
                if isinstance(value, python_types.ModuleType) and not _is_versioned(value.__name__):
                    inside = f"{value.__name__}."
                    if inside not in found:
                        found[inside] = vars(value)
                        waiting.append(inside)
                parts.append(f"{prefix}{name}={self.describe(value)}")
        return parts

    def describe(self, value: Any) -> str:
        """A constant as text that changes when the code made from it would."""
        if isinstance(value, Dispatcher | python_types.FunctionType):
            if isinstance(value, python_types.FunctionType) and _is_versioned(value.__module__):
                return f"function {value.__module__}.{value.__qualname__}"
            return f"function {self.label(value)}"
        if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, np.generic):
            return f"scalar {value.dtype.str} {value.tobytes().hex()}"
        if isinstance(value, frozenset | set):
            return f"set({sorted(self.describe(one) for one in value)})"
        if isinstance(value, tuple | list):
            return f"{self._describe_class(type(value))}({', '.join(self.describe(one) for one in value)})"
        if isinstance(value, np.ndarray) and value.dtype.hasobject is False:
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return f"array {value.dtype.descr} {value.shape} {value.flags.writeable} {digest}"
        return self._describe_object(value)

    def _describe_object(self, value: Any) -> str:
        if isinstance(value, type):
            return self._describe_class(value)
        if isinstance(value, python_types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, types.Type):
            return f"type {self.describe_type(value)}"
        if isinstance(value, np.dtype):
            return f"dtype {value.descr}"
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        of = getattr(value, "__module__", None) or type(value).__module__
        if name is None or not _is_versioned(of):
            raise NotCacheable(f"what code made from {value!r} depends on")
        return f"{type(value).__name__} {of}.{name}"

    def _describe_class(self, value: type) -> str:
        """A class by its name, which is where it is looked for when the code is loaded."""
        if value.__module__ == "__main__" or "<locals>" in value.__qualname__:
            raise NotCacheable(f"{value.__qualname__} cannot be imported")
        fields = getattr(value, "_fields", ())
        defaults = {name: self.describe(one) for name, one in getattr(value, "_field_defaults", {}).items()}
        return f"class {value.__module__}.{value.__qualname__}{fields}{defaults}"

    def describe_type(self, one: Any) -> str:
        """A type of numba as text: its name, and what its name leaves out."""
        if isinstance(one, types.BaseNamedTuple):
            return f"{self._describe_class(one.instance_class)}({', '.join(map(self.describe_type, one.types))})"
        if isinstance(one, types.BaseTuple):
            return f"({', '.join(map(self.describe_type, one.types))})"
        if isinstance(one, types.Optional):
            return f"optional({self.describe_type(one.type)})"
        if isinstance(one, types.Dispatcher):
            return f"kernel {self.label(one.dispatcher)}"
        text = f"{type(one).__name__} {one}"
        if " at 0x" in text:  # the address of an object, different in every process
            raise NotCacheable(f"what code for {text} depends on")
        return text
