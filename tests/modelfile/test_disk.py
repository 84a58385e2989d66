"""Claims about the disk: one read of a regular file, and a save that happens whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from certifit.modelfile import container
from certifit.modelfile.container import ModelFileError

METADATA = {"kind": "test"}


def write(path: container.Path, metadata: dict[str, Any], arrays: dict[str, Any]) -> None:
    container.write_bytes(path, container.to_bytes(metadata, arrays))


def read(path: container.Path, **limits: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return container.from_bytes(container.read_bytes(path, **limits))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.certifit"
    write(path, METADATA, {"a": np.arange(3.0)})
    return path


def test_only_a_regular_file_is_read(tmp_path, saved):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in [(tmp_path / "pipe", "a pipe"), (tmp_path, "a folder"), ("/dev/zero", "a device")]:
        with pytest.raises(ModelFileError, match=kind):
            read(path)
    (tmp_path / "link").symlink_to(saved)
    assert read(tmp_path / "link")[0] == METADATA
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(ModelFileError, match="a device"):
        read(tmp_path / "zero")


def test_a_missing_file_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError, match=r"^'no/such\\x1b.certifit' could not be read: No such file"):
        read("no/such\x1b.certifit")


def test_a_file_over_the_limit_is_not_read(saved):
    size = saved.stat().st_size
    assert read(saved, max_bytes=size)[0] == METADATA
    with pytest.raises(ModelFileError, match=f"has {size} bytes, and the limit is {size - 1}"):
        read(saved, max_bytes=size - 1)


def test_a_sparse_file_of_3_gigabytes_is_refused_at_once(tmp_path):
    with open(tmp_path / "big", "wb") as file:
        file.truncate(3 * 1024**3)
    with pytest.raises(ModelFileError, match="the limit is 2147483648"):
        read(tmp_path / "big")


def after_opening(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run `act` between the opening of a model file and the reading of it."""
    read_regular = container._read_regular

    def act_and_read(descriptor: int, max_bytes: int, path: container.Path) -> bytes:
        act()
        return read_regular(descriptor, max_bytes, path)

    monkeypatch.setattr(container, "_read_regular", act_and_read)


def test_a_file_replaced_after_it_was_opened_is_read_as_it_was(saved, monkeypatch):
    evil = saved.with_name("evil")
    evil.write_bytes(container.to_bytes({"kind": "other"}, {}))
    after_opening(monkeypatch, lambda: evil.replace(saved))
    assert read(saved)[0] == METADATA
    assert not evil.exists()


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_changes_while_it_is_read_is_refused(saved, monkeypatch, change):
    fstat = os.fstat

    def stale(descriptor: int) -> object:
        size = fstat(descriptor).st_size
        return SimpleNamespace(st_mode=fstat(descriptor).st_mode, st_size=size + change)

    monkeypatch.setattr(container.os, "fstat", stale)
    with pytest.raises(ModelFileError, match="changed while it was read"):
        container.read_bytes(saved)


def test_save_refuses_to_replace_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in [(tmp_path, "a folder"), (tmp_path / "pipe", "a pipe"), ("/dev/null", "a device")]:
        with pytest.raises(ModelFileError, match=kind):
            write(path, {}, {})
    assert os.listdir(tmp_path) == ["pipe"]


def test_save_through_a_link_keeps_the_link_and_the_mode(tmp_path, saved):
    saved.chmod(0o640)
    (tmp_path / "link").symlink_to(saved)
    write(tmp_path / "link", {"kind": "new"}, {})
    assert (tmp_path / "link").is_symlink()
    assert read(saved)[0] == {"kind": "new"}
    assert saved.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("step", ["open", "fsync", "replace", "chmod"])
def test_an_error_in_any_step_keeps_the_old_file_and_leaves_nothing_behind(saved, monkeypatch, step):
    before = saved.read_bytes()

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container.os, step, fail)
    with pytest.raises(ModelFileError, match="could not be saved: No space left on device"):
        write(saved, {"kind": "new"}, {})
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_disk_that_gives_back_other_bytes_is_noticed(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(container, "read_bytes", lambda path, limit: b"rot")
    with pytest.raises(ModelFileError, match="other bytes than were written"):
        write(saved, {"kind": "new"}, {})
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_an_interrupt_keeps_the_old_file_and_leaves_nothing_behind(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(container.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(saved, {"kind": "new"}, {})
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


CHILD = """
import os, resource, signal, sys
import numpy as np
from certifit.modelfile import container
die = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
{change}
container.write_bytes(sys.argv[1], container.to_bytes({{"kind": "new"}}, {{"a": np.zeros(100_000)}}))
"""


def save_in_a_child(path: Path, change: str) -> subprocess.CompletedProcess[str]:
    code = CHILD.format(change=change)
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)


def test_a_full_disk_keeps_the_old_file_and_leaves_nothing_behind(saved):
    before = saved.read_bytes()
    child = save_in_a_child(saved, "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))")
    assert child.returncode == 1
    assert "could not be saved: File too large. A file that was there before is unchanged." in child.stderr
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_process_killed_while_it_saves_keeps_the_old_file(saved, step):
    before = saved.read_bytes()
    child = save_in_a_child(saved, f"os.{step} = die")
    assert child.returncode == -signal.SIGKILL
    assert saved.read_bytes() == before
    write(saved, {"kind": "next"}, {})
    assert read(saved)[0] == {"kind": "next"}


@pytest.mark.slow
def test_a_reader_beside_a_writer_sees_the_old_or_the_new_file(saved):
    contents = [({"kind": str(i)}, {"a": np.full(1000, float(i))}) for i in range(2)]
    write(saved, *contents[0])
    done = threading.Event()

    def rewrite() -> None:
        for i in range(60):
            write(saved, *contents[i % 2])
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    n_reads = 0
    while not done.is_set():
        metadata, arrays = read(saved)
        assert np.array_equal(arrays["a"], contents[int(metadata["kind"])][1]["a"])
        n_reads += 1
    writer.join()
    assert n_reads > 0


WRITER = """
import sys
import numpy as np
from certifit.modelfile import container
kind = sys.argv[2]
for _ in range(40):
    container.write_bytes(sys.argv[1], container.to_bytes({"kind": kind}, {"a": np.full(20_000, float(kind))}))
"""


def test_two_processes_that_save_to_one_file_leave_one_whole_file(saved):
    write(saved, {"kind": "0"}, {"a": np.zeros(20_000)})
    command = [sys.executable, "-c", WRITER, str(saved)]
    writers = [subprocess.Popen([*command, kind], stderr=subprocess.PIPE) for kind in ("1", "2")]
    kinds = set()
    while any(writer.poll() is None for writer in writers):
        metadata, arrays = read(saved)
        kinds.add(metadata["kind"])
        assert (arrays["a"] == float(metadata["kind"])).all()
    for writer in writers:
        assert writer.communicate()[1] == b"" and writer.returncode == 0
    assert read(saved)[0]["kind"] in ("1", "2") and kinds & {"1", "2"}
    assert os.listdir(saved.parent) == [saved.name]
