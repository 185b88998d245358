"""A backup that was killed leaves a folder behind; the next one removes it, and no folder of a backup that runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from shoal.service.folder import _scratch_folder, remove_leftovers

KILLED_WITHIN = """
import sys, time
from pathlib import Path
from shoal.service.folder import _scratch_folder
with _scratch_folder(Path(sys.argv[1])) as made:
    (made / "journal.sqlite").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_killed_backup_is_removed_by_the_next_and_a_running_one_is_not(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED_WITHIN, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert remove_leftovers(tmp_path) == 0  # it still runs
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert [path.name[:8] for path in tmp_path.iterdir()] == [".backup-"]
    with _scratch_folder(tmp_path) as running:
        assert remove_leftovers(tmp_path) == 1
        assert list(tmp_path.iterdir()) == [running]
    assert not list(tmp_path.iterdir())


def test_files_and_links_of_that_name_are_left_alone(tmp_path):
    (tmp_path / ".backup-notes").write_text("mine")
    (tmp_path / "kept").mkdir()
    (tmp_path / ".backup-link").symlink_to(tmp_path / "kept")
    assert remove_leftovers(Path(tmp_path)) == 0
    assert (tmp_path / ".backup-notes").exists()
    assert (tmp_path / "kept").exists()
