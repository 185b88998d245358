"""The journal: what is acknowledged is there after anything; ids count once; a damaged tail is cut and counted."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from shoal.errors import ShoalError
from shoal.store.journal import Journal, JournalFull, Request, copy_journal


def item(name, **facts):
    return {"id": name, "features": ["x"], **facts}


def learn(*names):
    return Request("learn", [item(name) for name in names])


def ids_in(journal):
    return [one.get("id") for entry in journal.entries(0) if entry.kind == "learn" for one in entry.body]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.sqlite"


def test_entries_come_back_in_order_and_whole(path):
    journal = Journal(path)
    receipts = journal.append([learn("a", "b"), Request("edit", {"action": "name", "name": "\0\u202e<b>"}), learn("c")])
    assert [tuple(receipt) for receipt in receipts] == [(1, 2, 0), (2, 0, 0), (3, 1, 0)]
    journal.close()
    journal = Journal(path)
    entries = list(journal.entries(0))
    assert [(entry.position, entry.kind) for entry in entries] == [(1, "learn"), (2, "edit"), (3, "learn")]
    assert entries[1].body == {"action": "name", "name": "\0\u202e<b>"}
    assert journal.last_position == 3
    assert not journal.repair


def test_an_id_is_learned_once_within_a_request_across_requests_and_after_trimming(path):
    journal = Journal(path)
    journal.append([learn("a", "a"), learn("a", "b")])
    assert ids_in(journal) == ["a", "b"]
    journal.trim(2)
    assert [tuple(receipt) for receipt in journal.append([learn("b")])] == [(2, 0, 1)]
    assert ids_in(journal) == []
    assert journal.append([learn("c")])[0].position == 3


def test_items_without_id_are_all_learned(path):
    journal = Journal(path)
    journal.append([Request("learn", [{"features": ["x"]}, {"features": ["x"]}])])
    assert ids_in(journal) == [None, None]


def test_old_ids_are_forgotten_at_the_limit(path):
    journal = Journal(path, n_ids=2)
    for name in "abc":
        journal.append([learn(name)])
    journal.trim(3)
    assert journal.append([learn("a")])[0].accepted == 1
    assert journal.append([learn("c")])[0].known == 1


def test_batches_are_found_by_where_they_begin(path):
    journal = Journal(path)
    journal.append([learn("a"), learn("b"), learn("c")])
    journal.mark_batch(1, 2)
    assert journal.batch_after(0) == (1, 2)
    assert journal.batch_after(1) is None
    assert journal.batch_after(2) is None
    assert journal.n_items_after(1) == 2


def test_a_failed_commit_leaves_nothing_behind(path):
    journal = Journal(path)
    with pytest.raises(TypeError):
        journal.append([learn("a"), Request("learn", [{"id": "b", "features": object()}])])
    assert journal.append([learn("a")])[0].accepted == 1
    assert ids_in(journal) == ["a"]


def test_trimming_frees_disk_space(path):
    journal = Journal(path)
    for start in range(0, 3000, 300):
        journal.append([Request("learn", [{"features": ["word" * 50]}]) for _ in range(start, start + 300)])
    large = journal.n_bytes
    assert journal.trim(2990) == 2990
    assert journal.n_bytes < large / 5
    assert [entry.position for entry in journal.entries(0)] == list(range(2991, 3001))
    assert journal.trimmed_to == 2990


def test_a_copy_taken_while_others_write_is_whole(path, tmp_path):
    journal = Journal(path)
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            journal.append([learn(f"w{n}")])
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    for n in range(5):
        copy_journal(path, tmp_path / f"copy-{n}.sqlite")
    stop.set()
    writer.join()
    everything = ids_in(journal)
    for n in range(5):
        copied = Journal(tmp_path / f"copy-{n}.sqlite")
        assert ids_in(copied) == everything[: len(ids_in(copied))]
        assert not copied.repair


# --- damage -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A folder with a journal whose last commits are in the write-ahead log only, as a kill leaves it."""
    path = tmp_path_factory.mktemp("killed") / "journal.sqlite"
    code = (
        "import sys, os; from shoal.store.journal import Journal, Request\n"
        "journal = Journal(sys.argv[1])\n"
        "for n in range(20): journal.append([Request('learn', [{'id': f'a{n}', 'features': ['x']}])])\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False, env={**os.environ})
    return path.parent


def log_of(path, killed):
    """Copy that journal to ``path``; where its log is."""
    for file in killed.iterdir():
        shutil.copy(file, path.parent / file.name)
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size > 0
    return log


def test_a_kill_loses_nothing_and_nothing_is_cut(path, killed):
    log_of(path, killed)
    journal = Journal(path)
    assert ids_in(journal) == [f"a{n}" for n in range(20)]
    assert not journal.repair


@pytest.mark.parametrize("n_bytes", [1, 100, 4096, 9000])
def test_a_torn_tail_is_cut_and_counted(path, killed, n_bytes):
    log = log_of(path, killed)
    os.truncate(log, log.stat().st_size - n_bytes)
    journal = Journal(path)
    kept = ids_in(journal)
    assert kept == [f"a{n}" for n in range(len(kept))]
    assert 17 <= len(kept) < 20
    assert journal.repair.pages_cut >= 1
    assert "cut off" in str(journal.repair)
    assert journal.append([learn("fresh")])[0].accepted == 1


@pytest.mark.parametrize("n_bytes", [50, 4096, 20_000])
def test_a_zero_filled_tail_is_cut_and_counted(path, killed, n_bytes):
    log = log_of(path, killed)
    with open(log, "r+b") as file:
        file.seek(-n_bytes, os.SEEK_END)
        file.write(bytes(n_bytes))
    journal = Journal(path)
    kept = ids_in(journal)
    assert kept == [f"a{n}" for n in range(len(kept))]
    assert len(kept) < 20
    assert journal.repair.pages_cut >= 1


def test_a_damaged_entry_and_all_after_it_are_cut(path):
    journal = Journal(path)
    journal.append([learn(f"a{n}") for n in range(10)])
    journal.mark_batch(1, 10)
    journal.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET body = replace(body, 'a6', 'b6') WHERE position = 7")
    journal = Journal(path)
    assert ids_in(journal) == [f"a{n}" for n in range(6)]
    assert journal.repair.entries_cut == 4
    assert journal.batch_after(0) is None
    assert journal.append([learn("a8")])[0].accepted == 1


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_main_file_cut_short_is_rebuilt_from_what_can_be_read(path, part):
    journal = Journal(path)
    journal.append([Request("learn", [{"id": f"a{n}", "features": ["word" * 20]}]) for n in range(2000)])
    journal.close()
    os.truncate(path, int(path.stat().st_size * part) // 4096 * 4096)
    journal = Journal(path)
    kept = ids_in(journal)
    assert kept == [f"a{n}" for n in range(len(kept))]
    assert journal.repair.rebuilt_from
    assert os.path.exists(journal.repair.rebuilt_from)
    assert journal.append([learn("fresh")])[0].accepted == 1


def test_zeros_over_the_whole_main_file_start_anew_and_keep_the_damaged_one(path):
    journal = Journal(path)
    journal.append([learn("a")])
    journal.close()
    size = path.stat().st_size
    path.write_bytes(bytes(size))
    journal = Journal(path)
    assert ids_in(journal) == []
    assert journal.repair.rebuilt_from


# --- a full disk --------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="mounting a small tmpfs needs root")
def test_a_full_disk_refuses_and_recovers_by_itself(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.decode()}")
    try:
        journal = Journal(disk / "journal.sqlite")
        accepted, large = [], "word" * 1000
        with pytest.raises(JournalFull, match="disk"):
            for n in range(1000):
                journal.append([Request("learn", [{"id": f"a{n}", "features": [large]}])])
                accepted.append(f"a{n}")
        assert accepted
        assert ids_in(journal) == accepted
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        assert journal.append([learn("after")])[0].accepted == 1
        assert ids_in(journal) == [*accepted, "after"]
        journal.close()
    finally:
        time.sleep(0.05)
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_is_not_there_is_an_error_with_the_name(tmp_path):
    with pytest.raises(ShoalError, match="missing"):
        Journal(tmp_path / "missing" / "journal.sqlite")
