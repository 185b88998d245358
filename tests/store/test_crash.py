"""Whatever happens during a save, the old or the new file is there afterwards, whole."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import shoal
from shoal import atomic
from shoal.errors import BadSource
from shoal.store import load, save
from store.same import assert_same
from store.toy_model import fitted

TESTS = Path(__file__).resolve().parents[1]


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(shoal.__file__).parents[1]), str(TESTS)])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_killed_50_times_at_random_moments(tmp_path):
    """One process imports once and forks savers, so that 50 kills take a second or two."""
    done = python(
        """
        import os, random, signal, sys, time
        from store.toy_model import fitted
        from shoal.store import load, save

        path, random = sys.argv[1], random.Random(0)
        save(path, fitted(0, 200_000))
        began = time.perf_counter()
        save(path, fitted(1, 200_000))
        typical = time.perf_counter() - began
        seen = {0: 0, 1: 0}
        for kill in range(50):
            saver = os.fork()
            if not saver:
                models = [fitted(seed, 200_000) for seed in (0, 1)]
                os.write(1, b"")
                open(path + ".ready", "w").close()
                while True:
                    for model in models:
                        save(path, model)
            while not os.path.exists(path + ".ready"):
                time.sleep(0.0005)
            time.sleep(random.uniform(0, 4 * typical))
            os.kill(saver, signal.SIGKILL)
            os.waitpid(saver, 0)
            os.remove(path + ".ready")
            model = load(path)
            assert model.labels_.size == 200_000
            seen[model._hidden.right] += 1
        left = [name for name in os.listdir(os.path.dirname(path)) if name.endswith(".tmp")]
        print(seen[0], seen[1], len(left))
        """,
        str(tmp_path / "m.shoal"),
    )
    assert done.returncode == 0, done.stderr
    old, new, interrupted = map(int, done.stdout.split())
    assert old + new == 50
    assert min(old, new) > 0
    assert interrupted > 0, "no save was killed half-way: the test shows nothing"


def test_left_overs_of_killed_saves_are_swept(tmp_path):
    left = tmp_path / ".m.shoal.0123456789ab.tmp"
    left.write_bytes(b"half a model")
    save(tmp_path / "m.shoal", fitted())
    assert left.exists(), "it may belong to a save that has just begun"
    old = time.time() - 2 * atomic.STALE_SECONDS
    os.utime(left, (old, old))
    save(tmp_path / "other.shoal", fitted())
    assert left.exists(), "it belongs to another file"
    save(tmp_path / "m.shoal", fitted())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.shoal", "other.shoal"]


def test_a_file_that_grows_past_the_limit_leaves_the_old_one(tmp_path):
    """The limit on file size stands for a full disk; the kernel refuses the write in the same way."""
    save(tmp_path / "m.shoal", fitted())
    done = python(
        """
        import resource, signal, sys
        from store.toy_model import fitted
        from shoal.errors import BadSource
        from shoal.store import save

        model = fitted(1, 200_000)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            save(sys.argv[1], model)
        except BadSource as error:
            print(error.errno, error)
        """,
        str(tmp_path / "m.shoal"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{errno.EFBIG} cannot write")
    assert "before is unchanged" in done.stdout
    assert "About 1.6 MB are needed: free some space" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["m.shoal"]
    assert_same(load(tmp_path / "m.shoal"), fitted())


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of one megabyte, where we may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_file(small_disk):
    save(small_disk / "m.shoal", fitted())
    with pytest.raises(BadSource, match=r"No space left.*before is unchanged.*About 1\.6 MB are needed") as caught:
        save(small_disk / "m.shoal", fitted(1, 200_000))
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in small_disk.iterdir()] == ["m.shoal"]
    assert_same(load(small_disk / "m.shoal"), fitted())


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_at_each_step_leaves_the_old_file(tmp_path, monkeypatch, step):
    save(tmp_path / "m.shoal", fitted())

    def fail(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(BadSource, match="Input/output error"):
            save(tmp_path / "m.shoal", fitted(1))
    assert [path.name for path in tmp_path.iterdir()] == ["m.shoal"]
    assert_same(load(tmp_path / "m.shoal"), fitted())


def test_a_folder_that_cannot_be_flushed_is_said(tmp_path, monkeypatch):
    really, calls = os.fsync, []

    def fail_second(handle):
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        really(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail_second)
        with pytest.raises(BadSource, match="is written, but its folder"):
            save(tmp_path / "m.shoal", fitted(1))
    assert_same(load(tmp_path / "m.shoal"), fitted(1))


def test_ctrl_c_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    save(tmp_path / "m.shoal", fitted())

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path / "m.shoal", fitted(1))
    assert [path.name for path in tmp_path.iterdir()] == ["m.shoal"]
    assert_same(load(tmp_path / "m.shoal"), fitted())
