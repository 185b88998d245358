"""Compile the kernels for a level of CPU and write a pack of them, to go into a wheel.

    python tools/build_machine_code.py x86-64-v3 OUT_FOLDER [GROUP ...]

Run it with the versions of Python, numba and numpy that the wheel is for. The exercise of ``shoal.warm_up`` runs twice:
once to compile what is not in the cache, once to learn which kernels Python calls. Kernels called by kernels only are
inside those, and are left out. The pack is then checked: every symbol it needs is known, and the code uses no
instruction beyond the level.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from elf import undefined_symbols

SOURCE = Path(__file__).resolve().parents[1] / "src"
BEYOND = {"x86-64-v3": re.compile(r"%zmm|%k[1-7]\b|%[xy]mm(?:1[6-9]|2\d|3[01])\b")}  # AVX-512


def main(level: str, out: str, *groups: str) -> None:
    """Compile, then pack; each in a process of its own that believes to run on a CPU of this level."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {
        **inherited,
        "PYTHONPATH": str(SOURCE),
        "PYTHONHASHSEED": "0",
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": "",  # those of the level and no others
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "SHOAL_MACHINE_CODE": "kept",
    }
    for step in ("compile", "pack"):
        command = [sys.executable, __file__, "--step", step, level, out, *groups]
        subprocess.run(command, env=environment, check=True)


def run_step(step: str, level: str, out: str, *groups: str) -> None:
    """Inside such a process."""
    from shoal.machine_code import cache
    from shoal.warm_up import GROUPS, warm_up

    failed = warm_up(groups or GROUPS)
    for line in failed:
        print(f"warm-up failed: {line}", file=sys.stderr)
    if step == "compile":
        print(f"{len(cache.compiled)} kernels compiled, {len(cache.loaded)} were in the cache")
        return
    if cache.compiled:
        sys.exit(f"{len(cache.compiled)} kernels cannot be kept, {cache.compiled[0]} for one. Is the cache off?")
    path = Path(out) / f"{sys.implementation.cache_tag}-numba{numba_version()}-{level}.pack"
    write(path, level)


def numba_version() -> str:
    """Of the compiler that made the code."""
    return importlib.import_module("numba").__version__


def write(path: Path, level: str) -> None:
    """The entries that this process has loaded, in one file."""
    from shoal.machine_code import cache, entries, keys, storage
    from shoal.machine_code.packs import write_pack

    folder = storage.user_folder()
    assert folder is not None
    linked = called_by_kernels()
    payloads = {}
    for entry in cache.loaded:
        payload = folder.get(entry.key)
        assert payload is not None
        payloads[entry.key] = payload if entry.kernel in linked else entries.without_bitcode(payload)
    symbols = check(payloads, level)
    write_pack(path, payloads, versions=keys.versions(), level=level, symbols=symbols)
    n_kernels = len({entry.kernel for entry in cache.loaded})
    print(f"{path}: {len(payloads)} entries of {n_kernels} kernels, {path.stat().st_size / 1e6:.2f} MB")


def called_by_kernels() -> set[str]:
    """Kernels that other kernels call: these are linked by their bitcode when such a caller is compiled after all."""
    from numba.core.dispatcher import Dispatcher

    called = set()
    for name in [name for name in sys.modules if name.startswith("shoal.")]:
        for kernel in vars(sys.modules[name]).values():
            if isinstance(kernel, Dispatcher):
                read = (kernel.py_func.__globals__.get(name) for name in kernel.py_func.__code__.co_names)
                called |= {one.py_func for one in read if isinstance(one, Dispatcher)}
    return {f"{function.__module__}.{function.__qualname__}" for function in called}


def check(payloads: dict[str, bytes], level: str) -> list[str]:
    """The symbols that the code refers to; an error where a process would not know one, or a CPU not run the code."""
    import llvmlite.binding as llvm

    from shoal.machine_code.entries import code_of

    symbols: set[str] = set()
    for payload in payloads.values():
        code = code_of(payload)
        symbols |= undefined_symbols(code)
        beyond = BEYOND.get(level)
        found = beyond.search(disassembled(code)) if beyond else None
        if found:
            sys.exit(f"the code for {level} uses {found.group()}")
    unknown = sorted(name for name in symbols if not llvm.address_of_symbol(name))
    if unknown:
        sys.exit(f"symbols that this process does not know: {', '.join(unknown)}")
    return sorted(symbols)


def disassembled(code: bytes) -> str:
    """The code as text; empty where there is no objdump."""
    if shutil.which("objdump") is None:
        return ""
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(code)
        file.flush()
        done = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", file.name], capture_output=True, text=True, check=True
        )
    return done.stdout


if __name__ == "__main__":
    if sys.argv[1] == "--step":
        run_step(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
