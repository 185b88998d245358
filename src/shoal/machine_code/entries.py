"""One compiled kernel as bytes, and back.

Besides the object code an entry has the bitcode of the kernel, which is linked into kernels that call it. It is parsed
when such a kernel is compiled and not before: most processes compile nothing.
"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import compiler
from numba.core.serialize import dumps


class Entry(NamedTuple):
    """What is kept of a compiled kernel."""

    library: str  # its name in LLVM
    code: bytes  # machine code
    bitcode: bytes | None  # for kernels that call it; None where a pack leaves it out
    defined: tuple[str, ...]  # symbols
    rest: bytes  # signature, environments and the like, pickled by numba


class SymbolTaken(Exception):
    """Another kernel of this process has the same symbol, so that a call could reach the wrong one."""


_owners: dict[str, str] = {}  # symbol -> key of the entry whose code it is in this process


def claim_symbol(symbol: str, key: str) -> None:
    """Numba numbers the symbols of a process, and the numbers of another process may name other kernels."""
    if _owners.setdefault(symbol, key) != key:
        raise SymbolTaken(symbol)


def to_bytes(result: Any) -> bytes:
    """The result of compiling a kernel, as bytes."""
    (name, _, (code, bitcode)), descriptor, environment, signature, objectmode, lifted, _, reload, environments = (
        result._reduce()
    )
    module = llvm.parse_bitcode(bitcode)
    defined = tuple(one.name for one in (*module.functions, *module.global_variables) if not one.is_declaration)
    rest = dumps((descriptor, environment, signature, objectmode, lifted, reload, environments))
    return dumps(tuple(Entry(name, code, bitcode, defined, rest)))


def without_bitcode(payload: bytes) -> bytes:
    """An entry that Python can call and kernels cannot: smaller, for packs."""
    return dumps(tuple(Entry(*pickle.loads(payload))._replace(bitcode=None)))


def code_of(payload: bytes) -> bytes:
    """The object file in an entry."""
    return Entry(*pickle.loads(payload)).code


def from_bytes(key: str, payload: bytes, target: Any) -> Any:
    """The result of compiling a kernel, as it was, ready to be called."""
    entry = Entry(*pickle.loads(payload))
    descriptor, environment, signature, objectmode, lifted, reload, environments = pickle.loads(entry.rest)
    claim_symbol(descriptor.llvm_func_name, key)
    codegen = target.codegen()
    for function in reload or ():
        function()
    library = _load_library(codegen, entry)
    entry_point = target.get_executable(library, descriptor, environment)
    for one in environments:
        codegen.set_env(one.env_name, one)
    return compiler.CompileResult(
        target_context=target,
        typing_context=target.typing_context,
        library=library,
        environment=environment,
        entry_point=entry_point,
        fndesc=descriptor,
        type_annotation="",
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload,
        referenced_envs=environments,
    )


def _load_library(codegen: Any, entry: Entry) -> Any:
    library = codegen.create_library(entry.library)
    library.enable_object_caching()
    library._set_compiled_object(entry.code)
    if entry.bitcode is not None:
        bitcode = entry.bitcode

        def get_module_for_linking() -> Any:
            if library._shared_module is None:
                library._shared_module = llvm.parse_bitcode(bitcode)
            return library._shared_module

        library._get_module_for_linking = get_module_for_linking
    library._finalize_final_module()
    codegen._engine._defined_symbols |= set(entry.defined)
    return library
