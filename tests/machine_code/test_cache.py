"""Compiled kernels that outlast the process: what is compiled again, and what can go wrong with the files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from machine_code.kernel_files import CONSTANTS, HELPERS, KERNELS, answers_of, run, start, write_kernels
from shoal.jit import kernel
from shoal.machine_code import entries, storage
from shoal.machine_code.storage import Folder

ANSWERS = [18.0, 1.0, 120, 2.0, -1.0]
ALL = ["by_module", "factorial", "of_pair", "plain", "shifted", "total"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with the kernels, and the cache after a first run."""
    folder, cache = tmp_path_factory.mktemp("kernels"), tmp_path_factory.mktemp("home") / "cache"
    write_kernels(folder)
    assert run(folder, SHOAL_CACHE_DIR=str(cache)) == (ANSWERS, ALL)
    return folder, cache


def entries_in(cache: Path) -> list[Path]:
    return sorted(path for path in cache.glob("*/*") if path.is_file())


def test_a_second_process_compiles_nothing(filled):
    folder, cache = filled
    assert run(folder, SHOAL_CACHE_DIR=str(cache)) == (ANSWERS, [])


def test_an_edit_compiles_what_it_changes_and_no_more(filled, tmp_path):
    _, cache = filled
    write_kernels(tmp_path, kernels=KERNELS.replace("# a comment", "# another comment\n"))
    assert run(tmp_path, SHOAL_CACHE_DIR=str(cache)) == (ANSWERS, [])

    write_kernels(tmp_path, constants=CONSTANTS.replace("2.0", "3.0"))
    values, compiled = run(tmp_path, SHOAL_CACHE_DIR=str(cache))
    assert values == [27.0, 1.0, 120, 3.0, -1.0]
    assert compiled == ["by_module", "total"]

    write_kernels(tmp_path, helpers=HELPERS.replace("+ 1.0", "+ 2.0"))
    values, compiled = run(tmp_path, SHOAL_CACHE_DIR=str(cache))
    assert values == [24.0, 1.0, 120, 2.0, -1.0]
    assert compiled == ["shifted", "total"]

    swapped = KERNELS.replace("    first: np.ndarray\n    second", "    second: np.ndarray\n    first")
    write_kernels(tmp_path, kernels=swapped)  # the same class and types, the fields in another order
    values, compiled = run(tmp_path, SHOAL_CACHE_DIR=str(cache))
    assert values == [18.0, 1.0, 120, 2.0, 1.0]
    assert compiled == ["of_pair"]


def test_settings_of_numba_select_other_code(filled):
    folder, cache = filled
    assert run(folder, SHOAL_CACHE_DIR=str(cache), NUMBA_BOUNDSCHECK="1") == (ANSWERS, ALL)
    assert run(folder, SHOAL_CACHE_DIR=str(cache), NUMBA_BOUNDSCHECK="1") == (ANSWERS, [])
    assert run(folder, SHOAL_CACHE_DIR=str(cache), NUMBA_DISABLE_JIT="1") == (ANSWERS, [])
    assert run(folder, SHOAL_CACHE_DIR=str(cache), SHOAL_MACHINE_CODE="off") == (ANSWERS, ALL)


def test_damaged_entries_are_compiled_again_and_replaced(filled, tmp_path):
    folder, cache = filled
    shutil.copytree(cache, tmp_path / "cache")
    paths = entries_in(tmp_path / "cache")
    contents = [path.read_bytes() for path in paths]
    for at, (path, content) in enumerate(zip(paths, contents, strict=True)):
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes([content[:-7], b"", flipped, contents[at - 1]][at % 4])
    assert run(folder, SHOAL_CACHE_DIR=str(tmp_path / "cache")) == (ANSWERS, ALL)
    assert run(folder, SHOAL_CACHE_DIR=str(tmp_path / "cache")) == (ANSWERS, [])


def test_two_processes_that_start_at_once_both_succeed(tmp_path):
    write_kernels(tmp_path)
    cache = tmp_path / "cache"
    both = [start(tmp_path, SHOAL_CACHE_DIR=str(cache)) for _ in range(2)]
    for process in both:
        assert answers_of(process)[0] == ANSWERS
    assert not list(cache.glob("*/.new-*"))
    assert run(tmp_path, SHOAL_CACHE_DIR=str(cache)) == (ANSWERS, [])


def test_a_home_that_cannot_be_written_to_is_no_error(tmp_path):
    write_kernels(tmp_path)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    nothing = str(in_the_way / "folder")
    assert run(tmp_path, HOME=nothing, TMPDIR=nothing, SHOAL_CACHE_DIR=nothing)[0] == ANSWERS


def test_without_any_folder_kernels_are_compiled(monkeypatch):
    monkeypatch.setattr(storage, "_base_folders", lambda: iter(()))
    storage.user_folder.cache_clear()

    @kernel
    def doubled(value):
        return 2 * value

    try:
        assert doubled(3) == 6
        assert doubled._cache.cache_path is None
    finally:
        storage.user_folder.cache_clear()


def test_a_cache_that_cannot_be_imported_is_no_error():
    """Numba's caches are not part of its public interface: a later version may lack a name that ours uses."""
    script = """
import sys
sys.modules["shoal.machine_code"] = None
from shoal.jit import kernel
@kernel
def doubled(value):
    return 2 * value
assert doubled(3) == 6
assert type(doubled._cache).__name__ == "NullCache"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch):
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(own))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    folder = storage.user_folder.__wrapped__()
    assert folder.path.parent == own / "shoal"


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert storage.user_folder.__wrapped__().path.parent == tmp_path / "own" / "shoal"


def test_the_oldest_entries_go_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "MOST_ENTRIES", 10)
    folder = Folder(tmp_path)
    for at in range(12):
        folder.put(f"key{at}", b"code")
        os.utime(tmp_path / f"key{at}", (at, at))
    (tmp_path / ".new-abandoned").write_bytes(b"")
    os.utime(tmp_path / ".new-abandoned", (0, 0))
    Folder(tmp_path).put("last", b"code")
    kept = {path.name for path in tmp_path.iterdir()}
    assert ".new-abandoned" not in kept
    assert {"last", "key11", "key10", "key8"} <= kept
    assert len(kept) <= 8


def test_a_symbol_of_another_kernel_is_refused():
    entries.claim_symbol("test symbol", "key")
    entries.claim_symbol("test symbol", "key")
    with pytest.raises(entries.SymbolTaken):
        entries.claim_symbol("test symbol", "another key")
