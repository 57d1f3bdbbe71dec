"""The last few and the best are kept, the newest good one is found, and the loop is not held up."""

from __future__ import annotations

import errno
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from whole_state import whole

import trueloop
from trueloop.checkpoint import Checkpoints, load_checkpoint, store, write_atomic
from trueloop.checkpoint.checkpoints import has_checkpoint
from trueloop.errors import ConfigError, RunError


def state(k: int) -> dict[str, Any]:
    return whole(model={"w": torch.full((10,), float(k))}, k=k)


def save(saved: Checkpoints, k: int, best: bool = False) -> None:
    mark = {"epoch": k, "scores": {"val_loss": 1.0 / (k + 1)}} if best else None
    saved.save(state(k), (k, 0, 10 * k), mark)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_last_few_and_the_best_are_kept(tmp_path: Path, asynchronous: bool) -> None:
    saved = Checkpoints(tmp_path, keep_last=2, asynchronous=asynchronous)
    for k in range(8):
        save(saved, k, best=k in (0, 3))
    saved.wait()
    assert store.names_in(tmp_path) == [store.name_of(k, 0, 10 * k) for k in (3, 6, 7)]
    assert load_checkpoint(tmp_path)["k"] == 7
    best = load_checkpoint(tmp_path, "best")
    assert (best["k"], best["epoch"], best["scores"]) == (3, 3, {"val_loss": 0.25})
    assert torch.equal(
        load_checkpoint(tmp_path / store.name_of(6, 0, 60))["model"]["w"], torch.full((10,), 6.0)
    )


def test_the_state_is_that_of_the_moment_it_was_saved(tmp_path: Path) -> None:
    """The tensors given are live: the training goes on changing them while they are written."""
    saved, tensor = Checkpoints(tmp_path, keep_last=9), torch.zeros(100_000)
    for k in range(5):
        tensor.fill_(k)
        saved.save(whole(model={"w": tensor}, nested=[{"t": tensor[:3]}]), (0, k, k))
        tensor.fill_(-1)
    saved.wait()
    for k in range(5):
        found = load_checkpoint(tmp_path / store.name_of(0, k, k))
        assert set(found["model"]["w"].tolist()) == {float(k)}
        assert found["nested"][0]["t"].tolist() == [float(k)] * 3


def test_shapes_may_change_from_save_to_save(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, keep_last=9)
    states = [
        {"a": torch.ones(3), "b": [torch.ones(2)]},
        {"a": torch.ones(4), "b": []},
        {"a": torch.ones(4, dtype=torch.float64), "b": [torch.ones(1), 5, None]},
    ]
    for k, one in enumerate(states):
        saved.save(whole(**one), (0, k, k))
    saved.wait()
    for k, one in enumerate(states):
        found = load_checkpoint(tmp_path / store.name_of(0, k, k))
        assert torch.equal(found["a"], one["a"])  # type: ignore[arg-type]
        assert found["a"].dtype == one["a"].dtype  # type: ignore[union-attr]
        assert str(found["b"]) == str(one["b"])


def test_the_loop_goes_on_while_one_write_is_under_way_and_waits_for_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    monkeypatch.setattr(store, "reached", lambda stage: stage == "renamed" and gate.wait(10))
    saved = Checkpoints(tmp_path)
    started = time.perf_counter()
    save(saved, 0)
    assert time.perf_counter() - started < 5, "the first save does not wait for the disk"
    threading.Timer(0.3, gate.set).start()
    save(saved, 1)
    assert gate.is_set(), "the second save waits for the first write"
    saved.wait()
    assert len(store.names_in(tmp_path)) == 2


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_failed_write_stops_or_goes_on_and_the_others_are_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    def full(stage: str) -> None:
        raise OSError(28, "No space left on device")

    for on_error in ("stop", "continue"):
        folder = tmp_path / on_error
        saved = Checkpoints(folder, on_error=on_error, asynchronous=asynchronous)
        save(saved, 0, best=True)
        saved.wait()
        with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patch.setattr(store, "reached", full)
            if on_error == "stop":
                with pytest.raises(RunError, match="No space left"):
                    _save_and_wait(saved, 1)
            else:
                _save_and_wait(saved, 1)
                assert ["the run continues" in str(one.message) for one in said] == [True]
        assert load_checkpoint(folder)["k"] == 0
        assert load_checkpoint(folder, "best")["k"] == 0
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "checkpoints can be written again")
            _save_and_wait(saved, 2)
        assert load_checkpoint(folder)["k"] == 2


def _save_and_wait(saved: Checkpoints, k: int) -> None:
    save(saved, k)
    saved.wait()


def test_a_damaged_newest_one_is_said_and_the_one_before_it_taken(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, asynchronous=False)
    for k in range(3):
        save(saved, k)
    newest = tmp_path / store.name_of(2, 0, 20) / "state.pt"
    newest.write_bytes(newest.read_bytes()[:-7])
    with pytest.warns(RuntimeWarning, match=r"e00002.*damaged.*going back to e00001"):
        assert load_checkpoint(tmp_path)["k"] == 1
    for name in store.names_in(tmp_path):
        (tmp_path / name / "manifest.json").unlink()
    with pytest.raises(RunError, match=r"manifest\.json cannot be read"):
        load_checkpoint(tmp_path)


def test_going_on_from_an_earlier_one_removes_the_future_that_was_given_up(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, keep_last=9, asynchronous=False)
    for k in range(4):
        save(saved, k, best=k == 3)
    (tmp_path / ".e00009-b00000-u000000090.77.tmp").mkdir()
    Checkpoints(tmp_path).begin((1, 0, 10))
    assert store.names_in(tmp_path) == [store.name_of(k, 0, 10 * k) for k in (0, 1)]
    assert not has_checkpoint(tmp_path, "best")
    assert not list(tmp_path.glob(".*.tmp"))
    with pytest.raises(RunError, match="a different run"):
        Checkpoints(tmp_path).begin(None)
    Checkpoints(tmp_path / "empty").begin(None)


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="cannot write"):
        save(Checkpoints(tmp_path / "file" / "checkpoints", asynchronous=False), 0)


def test_killed_between_writing_and_marking_the_best_is_marked_on_going_on(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, keep_last=9, asynchronous=False)
    save(saved, 0, best=True)
    before = (tmp_path / "best.json").read_bytes()
    save(saved, 1, best=True)
    save(saved, 2)
    (tmp_path / "best.json").write_bytes(before)
    (tmp_path / store.name_of(2, 0, 20) / "manifest.json").write_text("{")
    Checkpoints(tmp_path).begin((2, 0, 20))
    best = load_checkpoint(tmp_path, "best")
    assert (best["k"], best["epoch"], best["scores"]) == (1, 1, {"val_loss": 0.5})


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the run ended before it saved one"):
        load_checkpoint(tmp_path)
    with pytest.raises(RunError, match="elsewhere: no folder is there: check the path"):
        load_checkpoint(tmp_path / "elsewhere")
    saved = Checkpoints(tmp_path, asynchronous=False)
    save(saved, 0)
    assert has_checkpoint(tmp_path)
    assert not has_checkpoint(tmp_path, "best")
    with pytest.raises(RunError, match="no best checkpoint"):
        load_checkpoint(tmp_path, "best")
    with pytest.raises(ConfigError, match="which='last' or which='best'"):
        load_checkpoint(tmp_path, "newest")
    for content in (b"", b"{}", b"[1]", b'{"name": "e0", "epoch": 1, "scores": {}}'):
        (tmp_path / "best.json").write_bytes(content)
        with pytest.raises(RunError, match=r"best\.json is damaged"):
            load_checkpoint(tmp_path, "best")


def test_every() -> None:
    for wrong in ("", "50", "0 updates", "1.5 epochs", "soon", "-1 updates", 50):
        with pytest.raises(ConfigError, match="every="):
            Checkpoints("x", every=wrong)  # type: ignore[arg-type]
    by_update = Checkpoints("x", every="50 updates")
    assert [u for u in range(1, 201) if by_update.is_due(updates=u)] == [50, 100, 150, 200]
    assert not by_update.is_due(updates=100, epochs=2)
    by_epoch = Checkpoints("x", every="2 epochs")
    assert [e for e in range(1, 7) if by_epoch.is_due(updates=9, epochs=e)] == [2, 4, 6]
    assert not by_epoch.is_due(updates=2)
    by_time = Checkpoints("x", every="0.0001 minutes")
    assert not by_time.is_due(updates=7)
    time.sleep(0.02)
    assert by_time.is_due(updates=7)


@pytest.mark.parametrize(
    "options", [{"keep_last": 0}, {"keep_last": True}, {"on_error": "ignore"}, {"every": "often"}]
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Checkpoints("x", **options)


def test_what_is_written_is_on_the_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "best.json", []
    write_atomic(path, b"old")
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append((path.read_bytes(), os.fstat(descriptor).st_size))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(path, b"longer")
    assert synced[0] == (b"old", 6)
    assert [content for content, _ in synced] == [b"old", b"longer"], "then the folder"


def test_a_failed_atomic_write_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_atomic(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left") as e:
        write_atomic(path, b"new")
    assert "\n" not in str(e.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_disk_that_refuses_the_removal_too_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(RunError, match=r"cannot write .*a\.json \(Read-only file system\)"):
        write_atomic(tmp_path / "a.json", b"x")


def test_going_on_is_said_once_then_counted_and_the_recovery_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a month of failing saves prints: a line when it begins, and one when it is over."""
    saved = Checkpoints(tmp_path, on_error="continue", keep_last=9)
    _save_and_wait(saved, 0)
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        patch.setattr(os, "mkdir", _refused)
        for k in range(1, 20):
            save(saved, k)
        saved.wait()
        first, last = (str(one.message) for one in said)
        assert first.startswith(f"cannot write {tmp_path / store.name_of(1, 0, 10)} (Read-only")
        assert first.endswith(f"without this checkpoint; the last one is {store.name_of(0, 0, 0)}")
        assert last.startswith("19 checkpoints, up to the last, could not be written; the last")
        assert "Read-only" in str(saved.unsaved)
        saved.mark_best((19, 0, 190), {"epoch": 18, "scores": {}})
    assert not (tmp_path / "best.json").exists(), "it would name what is not there"
    with pytest.warns(RuntimeWarning, match=r"written again; 19 were lost; the last one is e000"):
        _save_and_wait(saved, 20)
    assert saved.unsaved is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _save_and_wait(saved, 21)


def _refused(*_: Any, **__: Any) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_stopping_does_not_wait_for_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Checkpoints(tmp_path)
    monkeypatch.setattr(os, "mkdir", _refused)
    save(saved, 0)
    assert saved._thread is not None
    saved._thread.join()
    with pytest.raises(RunError, match="make it writable or choose a different folder"):
        saved.poll()
    assert store.names_in(tmp_path) == []


def test_a_failure_that_nobody_waited_for_is_not_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Checkpoints(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", _refused)
        save(saved, 0)
        saved.join()
    _save_and_wait(saved, 1)
    assert load_checkpoint(tmp_path)["k"] == 1


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_a_mark_that_cannot_be_written_is_a_failure_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_error: str
) -> None:
    saved = Checkpoints(tmp_path, on_error=on_error)
    _save_and_wait(saved, 1)
    monkeypatch.setattr(Path, "replace", _refused)
    expected: Any = pytest.raises(RunError, match=r"best\.json")
    if on_error == "continue":
        expected = pytest.warns(RuntimeWarning, match=r"best\.json.*the run continues")
    with expected:
        saved.mark_best((1, 0, 10), {"epoch": 0, "scores": {}})


def test_the_memory_of_the_copy_is_ready_before_the_first_save(tmp_path: Path) -> None:
    """With room for the optimizer's state, which is there after the first update only."""
    model = torch.nn.Linear(3, 1)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-2),
        trueloop.supervised(torch.nn.MSELoss()),
        accumulate=2,
    )
    feed = trueloop.Feed((torch.rand(40, 3), torch.rand(40, 1)), 4)
    saved = Checkpoints(tmp_path, every="4 updates")
    for count, batch in enumerate(feed.epoch(0)):
        step(batch)
        saved.keep(step, feed)
        assert saved._spare.is_prepared == (count > 0)
    prepared = saved._spare._copy["step"]["optimizer"]["state"]
    assert {name for slots in prepared.values() for name in slots} == {
        "step", "exp_avg", "exp_avg_sq",
    }  # fmt: skip
    saved.wait()
    # Once for update 4, and not again for the batch after it, which only adds to a window.
    (name,) = store.names_in(tmp_path)
    assert name == store.name_of(0, 8, 4)
