"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
import time

import pytest

from shoal import atomic
from shoal.atomic import atomic_write, check_output
from shoal.errors import BadInput, BadSource


def test_text_is_written_as_it_is_and_a_lone_surrogate_is_escaped(tmp_path):
    with atomic_write(tmp_path / "a.txt", "w") as out:
        out.write("ä\n\ud800")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa4\n\\ud800"


def test_an_error_in_the_block_leaves_everything_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(KeyError), atomic_write(path) as out:
        out.write(b"half")
        raise KeyError
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.txt", "before")]


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_write(link) as out:
        out.write(b"after")
    assert link.is_symlink()
    assert path.read_text() == "after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_not_a_plain_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path, kind in [
            (tmp_path, "a folder"),
            (tmp_path / "pipe", "a pipe"),
            (tmp_path / "socket", "a socket"),
            (os.devnull, "a device"),
        ]:
            with pytest.raises(BadSource, match=f"it is {kind}"), atomic_write(path):
                raise AssertionError
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(BadSource, match="there is no folder"), atomic_write(tmp_path / "none" / "a.txt"):
        raise AssertionError


@pytest.mark.parametrize("path", [b"a.txt", 3, None, "a\0b", ""])
def test_what_is_not_a_path_is_refused(path):
    with pytest.raises(BadInput, match="is not a path"):
        check_output(path)


def test_an_input_is_never_an_output(tmp_path):
    path, link, hard = tmp_path / "rows.csv", tmp_path / "link.csv", tmp_path / "hard.csv"
    path.write_text("a")
    link.symlink_to(path)
    os.link(path, hard)
    for out in (path, link, hard, f"{tmp_path}/./rows.csv"):
        with pytest.raises(BadSource, match="it is also an input"):
            check_output(out, inputs=[path, "-", tmp_path / "missing"])
    assert check_output(tmp_path / "new.csv", inputs=[path]) == tmp_path / "new.csv"


def test_planted_temporaries_are_neither_followed_nor_waited_for(tmp_path):
    """A pipe would stop a writer, and a link would be written through, in a folder that others write to."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    os.mkfifo(tmp_path / ".a.txt.aaaaaaaaaaaa.tmp")
    (tmp_path / ".a.txt.bbbbbbbbbbbb.tmp").symlink_to(victim)
    left = tmp_path / ".a.txt.cccccccccccc.tmp"
    left.write_text("left over")
    old = time.time() - 2 * atomic.STALE_SECONDS
    os.utime(left, (old, old))
    os.utime(victim, (old, old))
    with atomic_write(tmp_path / "a.txt") as out:
        out.write(b"a")
    assert victim.read_text() == "mine"
    assert not left.exists()


def test_a_temporary_that_exists_is_not_opened(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda n: "aaaaaaaaaaaa")
    (tmp_path / ".a.txt.aaaaaaaaaaaa.tmp").symlink_to(victim)
    with pytest.raises(BadSource, match="File exists"), atomic_write(tmp_path / "a.txt") as out:
        out.write(b"a")
    assert victim.read_text() == "mine"
    assert (tmp_path / ".a.txt.aaaaaaaaaaaa.tmp").is_symlink()


def test_the_longest_name_a_file_can_have(tmp_path):
    path = tmp_path / ("ä" * 127)
    with atomic_write(path) as out:
        out.write(b"a")
    assert path.read_bytes() == b"a"
