"""Decoded images that are kept: the same pixels, made once, never wrong, whatever happens."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from bits import same
from documents import is_shown, shown
from on_ranks import on_ranks
from trueloop import Feed, cache
from trueloop.errors import DataError
from trueloop.tasks.images import Images, image_cache, pool

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for entries, with the sizes from which on they pay set to nothing."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(image_cache, "_WORTH_BYTES", 0)
    monkeypatch.setattr(pool, "_WORTH_PROCESSES", 2)
    monkeypatch.setattr(pool, "_CHUNK", 7)
    return tmp_path / "cache" / "images"


def task(root: Path, **options: Any) -> Images:
    return Images(Images.Options(**options), data=root, seed=0)


def batches(one: Images, epochs: int = 2) -> Iterator[torch.Tensor]:
    splits = one.splits()
    feed = Feed(splits.train, 16, shuffle=True, seed=1, transform=splits.augment)
    for epoch in range(epochs):
        for batch in feed.epoch(epoch):
            yield from batch
    for part in (splits.val, splits.test):
        for batch in Feed(part, 8):
            yield from batch


def entries(place: Path) -> list[Path]:
    return sorted(each for each in place.glob("*") if each.is_dir())


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_the_same_batches_and_one_decoding(
    image_folder: Callable[..., Path], place: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    root = image_folder(count=40, mode=mode)
    plain, first = task(root, cache=False), task(root)
    assert same(batches(plain), batches(first))
    (entry,) = entries(place)
    splits = first.splits()
    assert splits.facts["kept in"] == str(entry)
    assert not splits.facts["kept in memory"]
    assert {**first.state(), "options": None} == {**plain.state(), "options": None}
    expected = list(batches(plain))
    monkeypatch.setattr(image_cache, "_fill", None)  # not called again
    monkeypatch.setattr("trueloop.tasks.images.task.choose_form", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(batches(task(root)), iter(expected))
    images = next(Feed(first.unseen(root).inputs, 80).epoch(0))
    assert torch.equal(images, next(Feed(plain.unseen(root).inputs, 80).epoch(0)))
    assert len(first.read(root)) == 80
    assert entries(place) == [entry]


def test_what_the_pixels_depend_on_is_in_the_name(
    image_folder: Callable[..., Path], place: Path
) -> None:
    root = image_folder(count=20)
    path = root / "dark" / "3.png"
    pixels = np.asarray(Image.open(path)).copy()
    Image.fromarray(pixels).save(path, compress_level=0)
    task(root).splits()
    task(root, size=24).splits()
    assert len(entries(place)) == 2
    before = path.stat()
    Image.fromarray(pixels ^ 1).save(path, compress_level=0)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert same(batches(task(root)), batches(task(root, cache=False)))
    assert len(entries(place)) == 3


@pytest.mark.parametrize("form", [{"height": 24}, {"width": "16"}, {"depth": 1}, None])
def test_a_form_that_is_damaged_is_chosen_again(
    image_folder: Callable[..., Path], place: Path, form: dict[str, Any] | None
) -> None:
    root = image_folder(count=20)
    expected = list(batches(task(root)))
    (entry,) = entries(place)
    facts = json.loads((entry / "facts.json").read_text())
    facts["form"] = form and {**facts["form"], **form}
    (entry / "facts.json").write_text(json.dumps(facts))
    assert same(batches(task(root)), iter(expected))
    # A part that is read with the form of other images does not choose one.
    trained = task(root)
    trained.splits()
    image_folder("others", count=20, mode="RGB")
    trained.read(root.parent / "others")
    other = task(root.parent / "others")
    other.splits()
    assert other.form.channels == 3


def test_findings_are_those_of_images_in_memory(image_folder: Callable[..., Path]) -> None:
    root = image_folder("data/train", count=20).parent
    image_folder("data/test", count=20)  # the same images
    found = [task(root, cache=keep).splits().findings for keep in (True, False)]
    assert found[0] == found[1]
    assert found[0][0].code == "TL705"


@pytest.mark.parametrize("damage", ["cut", "prints", "facts", "version", "gone"])
def test_what_is_not_whole_is_made_again(
    image_folder: Callable[..., Path], place: Path, damage: str
) -> None:
    root = image_folder(count=20)
    expected = list(batches(task(root)))
    (entry,) = entries(place)
    match damage:
        case "cut":
            os.truncate(entry / "pixels", 100)
        case "prints":
            (entry / "fingerprints").write_bytes(bytes(8 * 40))
        case "facts":
            (entry / "facts.json").write_bytes(b"{")
        case "version":
            facts = json.loads((entry / "facts.json").read_text())
            (entry / "facts.json").write_text(json.dumps({**facts, "fingerprints": None}))
        case "gone":
            (entry / "pixels").unlink()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert same(batches(task(root)), iter(expected))
    lines = [str(each.message) for each in said]
    assert len(lines) == (damage != "gone")
    assert all("is damaged or cut short" in line and "\n" not in line for line in lines)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(batches(task(root)), iter(expected))


def test_changed_pixels_are_read_from_the_files(
    image_folder: Callable[..., Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = image_folder(count=20)
    expected = list(batches(task(root)))
    (entry,) = entries(place)
    content = bytearray((entry / "pixels").read_bytes())
    content[1000] ^= 64
    content[3000:3300] = bytes(300)
    (entry / "pixels").write_bytes(content)
    with pytest.warns(RuntimeWarning, match="damaged: they are read from their files") as said:
        assert same(batches(task(root)), iter(expected))
    assert len(said) == 1
    assert entries(place) == []
    assert same(batches(task(root)), iter(expected))
    assert entries(place) == [entry]


@pytest.mark.parametrize("why", ["budget", "place"])
def test_it_goes_on_without(image_folder: Callable[..., Path], tmp_path: Path, why: str) -> None:
    root = image_folder("data/train", count=20).parent
    image_folder("data/test", count=20)
    (tmp_path / "file").write_text("")
    options = {"budget": {"cache_gb": 1e-6}, "place": {"cache_dir": str(tmp_path / "file")}}[why]
    expected = {
        "budget": "they take 10.24 kB, and the budget is 1 kB",
        "place": "file.*: Not a dir",
    }
    with pytest.warns(RuntimeWarning, match=expected[why]) as said:
        assert same(batches(task(root, **options)), batches(task(root, cache=False)))
    assert len(said) == 1
    message = str(said[0].message)
    assert "\n" not in message
    if why == "budget":
        (text,) = shown("tests/tasks/test_image_cache.py::test_it_goes_on_without")
        assert is_shown(text, f"trueloop: warning: {message}")


def test_a_full_disk(image_folder: Callable[..., Path], place: Path, tmp_path: Path) -> None:
    root = image_folder(count=40)

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        with pytest.warns(RuntimeWarning, match="File too large"):
            found = list(batches(task(root)))
        assert same(iter(found), batches(task(root, cache=False)))
        os._exit(7)

    process = FORK.Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 7
    assert entries(place) == []


def test_processes_that_ask_at_once_decode_once(
    image_folder: Callable[..., Path], place: Path, tmp_path: Path
) -> None:
    root = image_folder(count=100)
    fill = image_cache._fill

    def counted(*given: Any, **options: Any) -> None:
        (tmp_path / f"filled-{os.getpid()}").touch()
        fill(*given, **options)

    def work() -> None:
        image_cache._fill = counted
        task(root).splits()
        os._exit(0)

    started = [FORK.Process(target=work) for _ in range(3)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert [each.exitcode for each in started] == [0, 0, 0]
    assert len(list(tmp_path.glob("filled-*"))) == 1
    assert len(entries(place)) == 1


def test_killed_at_any_point_it_is_whole_or_absent(
    image_folder: Callable[..., Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = image_folder(count=60)
    expected = list(batches(task(root, cache=False), 1))
    decode_some = image_cache.decode_some

    def slowly(*given: Any) -> Any:
        time.sleep(0.01)
        return decode_some(*given)

    def work() -> None:
        os.setpgid(0, 0)
        image_cache.decode_some = slowly
        task(root).splits()
        os._exit(0)

    for delay in (0, 0.02, 0.05, 0.1):
        process = FORK.Process(target=work)
        process.start()
        assert process.pid is not None
        while not (entries(place) or process.exitcode is not None):
            time.sleep(0.001)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        _wait_for_the_end_of_group(process.pid)
        left = [entry for entry in entries(place) if not entry.name.endswith(".tmp")]
        if left:
            with monkeypatch.context() as patch:
                patch.setattr(image_cache, "_fill", None)  # it is whole, then
                assert same(batches(task(root), 1), iter(expected))
    assert same(batches(task(root), 1), iter(expected))
    assert len(entries(place)) == 1


def parts_of_a_rank(root: str, cache_dir: str) -> tuple[int, list[np.ndarray]]:
    """How often this rank has decoded all, and its part of each batch of two epochs."""
    image_cache._WORTH_BYTES = 0
    pool._WORTH_PROCESSES = 2
    fill, filled = image_cache._fill, []

    def counted(*given: Any) -> None:
        filled.append(given)
        fill(*given)

    image_cache._fill = counted
    one = task(Path(root), cache_dir=cache_dir)
    parts = [part.numpy() for part in batches(one)]
    return len(filled), parts


def test_ranks_that_begin_together_have_the_images_of_one_process(
    image_folder: Callable[..., Path], place: Path
) -> None:
    root = image_folder(count=60)
    expected = list(batches(task(root, cache=False)))
    found = on_ranks(2, parts_of_a_rank, str(root), str(place.parent))
    assert sum(times for times, _ in found) == 1
    for batch, *parts in zip(expected, *(parts for _, parts in found), strict=True):
        assert np.array_equal(np.concatenate(parts), batch.numpy())
    (entry,) = entries(place)
    assert (entry / "pixels").stat().st_size == 120 * 16 * 16
    once = task(root)
    assert same(batches(once), iter(expected))
    assert once.splits().facts["kept in"] == str(entry)


def _wait_for_the_end_of_group(group: int) -> None:
    """The processes that decode end when they find that their parent is gone."""
    for _ in range(500):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError("processes are left")


def test_broken_images_are_looked_at_each_time(
    image_folder: Callable[..., Path], place: Path
) -> None:
    root = image_folder(count=40)
    path = root / "dark" / "3.png"
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    for _ in range(2):
        skipping = task(root, broken="skip")
        assert same(batches(skipping), batches(task(root, broken="skip", cache=False)))
        assert list(skipping.skipped) == [str(path)]
        with pytest.raises(DataError, match=r"3.png cannot be decoded"):
            task(root).splits()
    assert len(entries(place)) == 1
    path.write_bytes(whole)
    assert same(batches(task(root)), batches(task(root, cache=False)))


def test_a_process_that_dies_costs_nothing(tmp_path: Path) -> None:
    here = os.getpid()

    def work(rows: range) -> dict[int, str]:
        if os.getpid() != here and rows.start % 3 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return {row: str(row) for row in rows if row % 10 == 0}

    found = pool.on_all(work, 100, what="", quiet=True)
    assert found == {row: str(row) for row in range(0, 100, 10)}


def test_an_error_of_writing_is_raised() -> None:
    def work(rows: range) -> dict[int, str]:
        raise OSError(28, "No space left on device")

    others = set(multiprocessing.active_children())
    with pytest.raises(OSError, match="No space left"):
        pool.on_all(work, 100, what="", quiet=True)
    assert set(multiprocessing.active_children()) <= others
