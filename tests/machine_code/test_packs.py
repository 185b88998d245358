"""Kernels compiled into the wheel: built for a small part of the package, installed, and used."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from shoal import warm_up
from shoal.machine_code import keys, packs, storage
from shoal.machine_code.packs import Pack, write_pack

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    packs.llvm.get_process_triple().split("-")[0] != "x86_64" or not packs._cpu_has(packs.LEVELS["x86-64-v3"].split()),
    reason="packs are built for x86-64-v3",
)

FIRST_FIT = """
import json, sys, time
import shoal
from shoal.machine_code import cache

columns = ["--item", "id", "--features", "tags", "--time", "time"]
sys.argv[1:] = ["fit", sys.argv[1], "-m", "bernoulli", "-k", "5", *columns, "-q", "--json"]
from shoal.cli.main import app
try:
    app()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([shoal.__file__, sorted(set(cache.compiled)), sorted({entry.source for entry in cache.loaded}),
                  len(cache.loaded), time.process_time()]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The wheel with a pack of the kernels of one model, unpacked as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "SHOAL_BUILD_LEVELS": "x86-64-v3", "SHOAL_BUILD_GROUPS": "bernoulli"},
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert f"-{tag}-{tag}-" in wheel.name
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    return warm_up.write_files(tmp_path_factory.mktemp("rows"))["tags.csv"]


def first_fit(site: Path, rows: Path, home: Path, **environment: str) -> tuple[list[str], list[str], int, float]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "SHOAL_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT, str(rows)],
        env={**inherited, "PYTHONPATH": str(site), "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    where, compiled, sources, n_loaded, seconds = json.loads(done.stdout.splitlines()[-1])
    assert where.startswith(str(site))
    return compiled, sources, n_loaded, seconds


def test_the_first_fit_compiles_nothing_and_writes_nothing(installed, rows, tmp_path):
    compiled, sources, n_loaded, seconds = first_fit(installed, rows, tmp_path)
    assert (compiled, sources) == ([], ["shipped"])
    assert n_loaded > 5
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert seconds < 6, "measured: 1.7 s on a quiet machine"


def test_a_damaged_pack_is_no_error(installed, rows, tmp_path):
    """Half of the entries flipped: these are compiled, the others loaded."""
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    (path,) = (site / "shoal" / "machine_code" / "shipped").glob("*.pack")
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 2, len(content), 500):
        content[at] ^= 255
    path.write_bytes(content)
    compiled, sources, _, _ = first_fit(site, rows, tmp_path)
    assert compiled
    assert "shipped" in sources
    assert first_fit(site, rows, tmp_path)[0] == []


def test_a_pack_for_another_compiler_or_cpu_is_left_alone(tmp_path, monkeypatch):
    facts = {"versions": keys.versions(), "level": "x86-64-v3", "symbols": ["malloc"]}
    write_pack(tmp_path / "a.pack", {"key": b"code"}, **facts)
    pack = Pack(tmp_path / "a.pack")
    assert pack.get("key") == b"code"
    assert pack.get("other") is None
    assert pack.runs_here()
    for name, value in [("versions", "numba 0.1"), ("symbols", ["malloc", "no_such_symbol_anywhere"])]:
        write_pack(tmp_path / "b.pack", {}, **{**facts, name: value})
        assert not Pack(tmp_path / "b.pack").runs_here()
    monkeypatch.setattr(packs.llvm, "get_host_cpu_features", lambda: {"sse2": True, "avx2": False})
    assert not pack.runs_here()


@pytest.mark.parametrize("content", [b"", storage.MAGIC, storage.MAGIC + bytes(100), b"x" * 1000])
def test_a_file_that_is_no_pack_is_passed_over(tmp_path, monkeypatch, content):
    (tmp_path / "a.pack").write_bytes(content)
    monkeypatch.setattr(packs, "PACKS", tmp_path)
    assert packs.shipped_pack.__wrapped__() is None


def test_an_index_that_does_not_match_its_checksum_is_refused(tmp_path):
    write_pack(tmp_path / "a.pack", {}, versions=keys.versions(), level="x86-64-v3", symbols=[])
    content = (tmp_path / "a.pack").read_bytes()
    (length,) = struct.unpack_from("<Q", content, len(storage.MAGIC))
    at = packs.INDEX_START + length // 2
    (tmp_path / "a.pack").write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(ValueError, match="checksum"):
        Pack(tmp_path / "a.pack")


def test_every_variant_of_the_warm_up_can_be_made():
    for variant in warm_up.variants() + warm_up.dense_variants():
        variant.make()


def test_the_warm_up_of_one_model_runs_without_a_failure():
    assert warm_up.warm_up(["densities"]) == []
