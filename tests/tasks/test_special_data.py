"""A FIFO, a socket, a device or a folder in place of a file of data is named, never waited for."""

from __future__ import annotations

import os
import shutil
import socket

import pytest

from trueloop.errors import DataError
from trueloop.tasks.images import Images
from trueloop.tasks.table import Table

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")


@pytest.fixture(params=["fifo", "socket", "device", "folder"])
def special(request, tmp_path, monkeypatch):
    """Something at `special.csv` that is not a regular file, and what a message calls it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "special.csv"
    if request.param == "fifo":
        os.mkfifo(path)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("special.csv")
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    names = {"fifo": "a FIFO", "device": "a character device"}
    return path, names.get(request.param, f"a {request.param}")


@pytest.fixture
def good(table_file):
    return table_file("x,y", [f"{k % 7},{k % 2}" for k in range(40)], "good.csv")


def test_a_table_reads_regular_files_alone(special, good, refusal, one_line):
    path, kind = special
    options = Table.Options(target="y")
    refusal(Table(options, data=path), kind)
    for name in ("val_data", "test_data"):
        refusal(Table(Table.Options(target="y", **{name: path}), data=good), kind)
    task = Table(options, data=good)
    task.splits()
    for read in (task.read, task.unseen):
        with pytest.raises(DataError, match=kind) as error:
            read(path)
        one_line(error)


def test_images_read_regular_files_alone(special, image_folder, refusal, one_line):
    path, kind = special
    if kind == "a folder":
        return  # which is what the task takes
    refusal(Images(data=path), kind)
    task = Images(Images.Options(width=2), data=image_folder())
    task.splits()
    for read in (task.read, task.unseen):
        with pytest.raises(DataError, match=kind) as error:
            read(path)
        one_line(error)


def test_a_special_file_among_images_is_a_broken_image(image_folder, refusal):
    root = image_folder()
    os.mkfifo(root / "dark" / "pipe.png")
    refusal(Images(data=root), "pipe.png cannot be decoded: .*(FIFO|ordinary|regular)")
    for memory_gb in (2.0, 0.0):
        task = Images(Images.Options(width=2, broken="skip", memory_gb=memory_gb), data=root)
        task.splits()
        assert list(task.skipped) == [str(root / "dark" / "pipe.png")]
        unseen = task.unseen(root)
        assert [unseen.names["file"][row] for row in unseen.errors] == ["dark/pipe.png"]
    alone = root.parent / "alone"
    alone.mkdir()
    shutil.move(root / "dark" / "pipe.png", alone / "pipe.png")
    with pytest.raises(DataError, match="none of the 1 images can be decoded"):
        task.unseen(alone)
