"""The profile of some updates: its ranges, its sums, and a training that does not notice it."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import trueloop
from trueloop.feed.epoch import Epoch
from trueloop.run import Run, trace, write_report
from trueloop.run.profile import Profile, in_short
from trueloop.step import lowering

COUNT, BATCH = 60, 4


class BadBatchError(Exception):
    pass


def make(
    accumulate: int = 1, compile: str | None = None
) -> tuple[trueloop.Step, trueloop.Feed, trueloop.Feed]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(COUNT, 5, generator=generator)
    targets = torch.randint(0, 3, (COUNT,), generator=generator)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.2), nn.Linear(8, 3))
    step = trueloop.Step(
        model,
        torch.optim.AdamW(model.parameters(), lr=0.01),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=1.0,
        accumulate=accumulate,
        compile=compile,
    )
    feeds = [trueloop.Feed((inputs, targets), BATCH, shuffle=shuffle) for shuffle in (True, False)]
    return step, feeds[0], feeds[1]


def train(
    folder: Path | None, *, updates: int = 4, epochs: int = 2, **options: Any
) -> trueloop.Step:
    """Train, with a profile in `folder`."""
    step, feed, val = make(**options)
    step.plan(epochs=epochs, batches=len(feed))
    if folder is None:
        trueloop.fit(step, feed, val, epochs=epochs)
        return step
    with Profile(folder, step, updates) as sink:
        trueloop.fit(step, feed, val, epochs=epochs, sinks=[sink])
    return step


def trace_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        gzip.decompress((folder / "profile/trace.json.gz").read_bytes())
    )
    return found


def summary_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "profile/summary.json").read_text("utf-8"))
    return found


def ours(folder: Path) -> list[dict[str, Any]]:
    events = trace_of(folder)["traceEvents"]
    return [e for e in events if str(e["name"]).startswith(trace.PREFIX) and "dur" in e]


def within(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    ends = [e["ts"] + e["dur"] for e in (inner, outer)]
    return bool(outer["ts"] <= inner["ts"] and ends[0] <= ends[1])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_ranges_nest_and_there_are_as_many_updates_as_asked(
    tmp_path: Path, accumulate: int
) -> None:
    train(tmp_path, accumulate=accumulate)
    ranges = ours(tmp_path)
    updates = [e for e in ranges if "update" in e["name"]]
    phases = [e for e in ranges if "update" not in e["name"]]
    planned = 2 * -(-15 // accumulate)
    first = 1 + (planned - 4) // 2
    assert [e["name"] for e in updates] == [f"trueloop: update {first + k}" for k in range(4)]
    # One after the other, and each phase in one of them, in which phases overlap nowhere.
    for before, after in itertools.pairwise(updates):
        assert before["ts"] + before["dur"] <= after["ts"]
    for update in updates:
        inside = [e for e in phases if within(e, update)]
        names = [e["name"].removeprefix("trueloop: ") for e in inside]
        assert names.count("backward") == names.count("forward and loss") == accumulate or (
            first + updates.index(update) == 8  # the short window at the end of the first epoch
        )
        assert names.count("norm and clip") == names.count("optimizer") == 1
        for one, two in itertools.pairwise(inside):
            assert one["ts"] + one["dur"] <= two["ts"] or within(two, one)
    assert sum(any(within(e, update) for update in updates) for e in phases) == len(phases)


def test_the_summary_is_that_of_the_trace(tmp_path: Path) -> None:
    train(tmp_path, updates=30, epochs=2)  # all of the run
    found, ranges = summary_of(tmp_path), ours(tmp_path)
    assert (found["first"], found["updates"]) == (1, 30)
    spent: dict[str, float] = {}
    for e in ranges:
        name = e["name"].removeprefix("trueloop: ")
        if name != "evaluation" and "update" not in name:
            outer = [o for o in ranges if o["name"].endswith("evaluation") and within(e, o)]
            spent[name] = spent.get(name, 0.0) + (0 if outer else e["dur"] / 1e6)
    whole = sum(e["dur"] for e in ranges if "update" in e["name"]) / 1e6
    shares = {phase["name"]: phase["share"] for phase in found["phases"]}
    assert found["seconds"] == pytest.approx(whole)
    for name in ("forward and loss", "backward", "norm and clip", "optimizer"):
        assert shares[name] == pytest.approx(spent[name] / whole), name
    assert "evaluation" in shares
    assert sum(shares.values()) == pytest.approx(1.0)


def test_own_times_are_those_of_torch(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
    with profile(activities=[ProfilerActivity.CPU]) as reference:
        for _ in range(3):
            model(torch.randn(4, 6)).sum().backward()
    reference.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    mine: dict[str, float] = {}
    for name, own in trace.own_times(e for e in events if e.get("cat") == "cpu_op"):
        mine[name] = mine.get(name, 0.0) + own
    theirs = {e.key: e.self_cpu_time_total for e in reference.key_averages()}
    assert mine.keys() == theirs.keys()
    for name, own in theirs.items():
        assert mine[name] == pytest.approx(own, abs=0.5), name  # microseconds


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"compile": "step"}], ids=str)
def test_what_is_trained_is_bitwise_the_same(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "LOWER", lowering.interpreted)
    arriving = Epoch.__next__
    plain, profiled = train(None, **options), train(tmp_path, **options)
    states = [step.model.state_dict() for step in (plain, profiled)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    # Nothing of it is left in the step, nor in the feed.
    assert Epoch.__next__ is arriving
    for part in ("precision", "_parallel", "_nonfinite", "_compiled"):
        before, after = (vars(getattr(step, part) or step) for step in (plain, profiled))
        assert before.keys() == after.keys()
    assert {e["name"] for e in ours(tmp_path)} >= (
        {"trueloop: compiled graph"} if "compile" in options else {"trueloop: backward"}
    )


def test_a_run_that_ends_in_the_midst_leaves_what_there_was(tmp_path: Path) -> None:
    step, feed, _ = make()
    step.plan(updates=20, batches=15)
    seen = []

    def fail(record: trueloop.StepRecord) -> None:
        seen.append(record)
        if len(seen) == 11:
            raise BadBatchError

    with pytest.raises(BadBatchError), Profile(tmp_path, step, 6) as sink:  # of updates 8 to 13
        trueloop.fit(step, feed, updates=20, sinks=[fail, sink])
    assert (summary_of(tmp_path)["first"], summary_of(tmp_path)["updates"]) == (8, 3)
    assert "backward" not in vars(step.precision)


def test_a_run_that_ends_before_it_says_so(tmp_path: Path) -> None:
    step, feed, _ = make()
    with (
        pytest.warns(RuntimeWarning, match="after 15 updates, and the trace would begin after 100"),
        Profile(tmp_path, step, 6) as sink,
    ):
        trueloop.fit(step, feed, epochs=1, sinks=[sink])
    assert not (tmp_path / "profile").exists()


def test_a_run_that_goes_on_traces_what_is_left(tmp_path: Path) -> None:
    step, feed, _ = make()
    step.plan(updates=15, batches=15)
    with Profile(tmp_path, step, 10, done=12) as sink:
        trueloop.fit(step, feed, updates=3, sinks=[sink])
    assert (summary_of(tmp_path)["first"], summary_of(tmp_path)["updates"]) == (13, 3)


def test_a_disk_that_takes_nothing_ends_no_training(tmp_path: Path) -> None:
    (tmp_path / "profile").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="the run continues without its profile"):
        step = train(tmp_path)
    assert step.updates == 30


def test_the_report_shows_it(finished: Run) -> None:
    assert "Where the time goes" not in write_report(finished).read_text("utf-8")
    train(finished.path)
    page = write_report(finished).read_text("utf-8")
    assert "Updates 14 to 17, " in page
    assert '<th scope="row">backward</th>' in page
    assert "aten::addmm" in page
    assert finished.profile is not None
    assert in_short(finished.profile).startswith("4 updates, ")


def test_time_on_a_device_is_counted_once() -> None:
    """Of a trace as one of a GPU is, where kernels of two streams run side by side."""

    def event(cat: str, name: str, ts: float, dur: float, tid: int) -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 0, "tid": tid}

    found = trace.summary(
        {
            "traceEvents": [
                event("user_annotation", "trueloop: update 7", 0, 100, 1),
                event("kernel", "gemm", 10, 30, 7),
                event("kernel", "gemm", 20, 40, 8),
                event("gpu_memcpy", "copy", 80, 10, 7),
                event("kernel", "gemm", 95, 10, 7),  # ends after the update
            ]
        },
        1,
        (),
    )
    assert found["busy"] == pytest.approx(0.6)
    assert [(row["name"], row["calls"]) for row in found["kernels"]] == [("gemm", 2), ("copy", 1)]
    assert [phase["share"] for phase in found["phases"]] == [1.0]
