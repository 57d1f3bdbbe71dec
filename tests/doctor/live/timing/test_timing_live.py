"""Where the time of an update goes: what is measured, what it costs, and what is said about it."""

from __future__ import annotations

import json
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from trueloop.doctor.config import Configs
from trueloop.doctor.live.session import Session, Watched
from trueloop.doctor.live.timing import step_timer
from trueloop.doctor.live.timing.fused_optimizers import could_be_fused, ratio_of_fused
from trueloop.doctor.live.timing.step_timing import PARTS, Speed
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.events import ModelForward
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.model.speed_measurements import (
    DataWait,
    DeviceRead,
    DeviceTransfer,
    GradientNorms,
    MatrixProducts,
    OptimizerTime,
    TimedUpdates,
    WorkerStarts,
)
from trueloop.doctor.model.things import Loader, Model, Optimizer
from trueloop.doctor.report import timing_table as table
from trueloop.doctor.report.terminal import Paint
from trueloop.doctor.report.watched import as_json, as_text
from trueloop.doctor.rules.base import RuleRunner
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.loading import load
from trueloop.doctor.rules.shared.timings import duration

HERE = Location("train.py", 7)


# ---------------------------------------------------------------------- what is measured


class Slow(Dataset[torch.Tensor]):
    def __init__(self, size: int, seconds: float) -> None:
        self.size, self.seconds = size, seconds

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.full((4,), index / self.size)


class Sleeper(nn.Module):
    """Takes its time in forward and in backward."""

    def __init__(self, forward: float, backward: float) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.seconds, self.later = forward, backward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds)
        y: torch.Tensor = self.linear(x)
        if y.requires_grad:
            y.register_hook(lambda gradient: time.sleep(self.later))
        return y


def train(updates: int, model: nn.Module, loader: Any = None, rest: float = 0.0) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    for batch in [torch.ones(2, 4)] * updates if loader is None else loader:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        time.sleep(rest)


def timed(act: Any, least: float = 0.0) -> tuple[Watcher, Speed]:
    watcher = Watcher()
    watcher.timer.least = least
    watcher.start()
    try:
        act()
    finally:
        watcher.stop()
    watcher.findings()
    assert watcher.hub.errors == []
    found = watcher.timer.speed()
    assert found is not None
    return watcher, found


def test_each_part_has_its_time() -> None:
    loader = DataLoader(Slow(110, 0.004), batch_size=None)
    _, found = timed(lambda: train(0, Sleeper(0.003, 0.002), loader, rest=0.001))
    assert found.updates >= 20
    least = {"data": 0.004, "forward": 0.003, "backward": 0.002, "rest": 0.001}
    for part, seconds in least.items():
        assert found.parts[part] >= seconds
    assert found.seconds < 0.1  # others may keep the processor
    assert found.lasted == pytest.approx(110 * found.seconds)
    assert sum(map(found.share, PARTS)) == pytest.approx(1)


def test_what_the_watcher_does_itself_is_left_out() -> None:
    """All updates are looked at, which takes its time besides theirs."""
    called = []
    model = Sleeper(0.006, 0.0)
    model.register_forward_hook(lambda *given: called.append(time.perf_counter()))
    watcher, found = timed(lambda: train(40, model))
    assert watcher.hub.updates == 40
    assert 20 <= found.updates <= 35
    whole = (called[-1] - called[6]) / (len(called) - 7)
    assert found.parts["forward"] >= 0.006
    assert found.seconds < 0.95 * whole


def test_short_updates_are_measured_only_while_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watcher = Watcher()
    watcher.start()
    train(45, nn.Linear(4, 1))
    watcher.stop()
    for least, is_told in ((0.0, True), (10.0, False)):
        monkeypatch.setattr(step_timer, "_LOOKED", least)
        assert (watcher.timer.speed() is not None) is is_told
    _, found = timed(lambda: train(120, nn.Linear(4, 1)))
    assert found.updates == 40


def test_updates_with_the_beginning_of_a_pass_are_left_out() -> None:
    def act() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(16):
            time.sleep(0.1)
            for batch in DataLoader(Slow(10, 0.0), batch_size=None):
                model(batch).square().mean().backward()
                optimizer.step()

    _, found = timed(act)
    assert found.seconds < 0.08


def test_evaluation_is_told_apart() -> None:
    def act() -> None:
        model = Sleeper(0.0, 0.0)
        for _ in range(4):
            train(30, model)
            model.eval()
            time.sleep(0.1)
            model.train()

    _, found = timed(act)
    assert 0.4 <= found.evaluation < 2
    assert 0 < found.evaluation_share < 1
    assert found.seconds < 0.08


def test_an_evaluation_whose_end_is_not_seen_does_not_count() -> None:
    def act() -> None:
        model = Sleeper(0.0, 0.0)
        train(60, model)
        model.eval()
        train(60, model)
        model.train()

    assert timed(act)[1].evaluation == 0


def test_an_optimizer_with_a_closure_is_not_charged_for_the_model() -> None:
    def act() -> None:
        model = Sleeper(0.003, 0.003)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1, lr=1e-3)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(torch.ones(2, 4)).square().mean()
            loss.backward()
            return loss

        for _ in range(100):
            optimizer.step(closure)

    _, found = timed(act)
    assert found.parts["forward"] >= 0.003
    assert found.parts["backward"] >= 0.003
    assert found.share("optimizer") < 0.4


def test_pairs_of_optimizers_make_one_unit() -> None:
    def act() -> None:
        first, second = Sleeper(0.002, 0.0), Sleeper(0.002, 0.0)
        optimizers = [torch.optim.SGD(m.parameters(), lr=1e-3) for m in (first, second)]
        for _ in range(70):
            for model, optimizer in zip((first, second), optimizers, strict=True):
                model(torch.ones(2, 4)).square().mean().backward()
                optimizer.step()

    watcher, found = timed(act)
    assert watcher.hub.updates == 140
    assert found.parts["forward"] >= 0.004
    assert found.lasted == pytest.approx(70 * found.seconds)


def test_a_step_that_raises_is_not_measured_and_what_comes_after_it_is() -> None:
    def act() -> None:
        model = Sleeper(0.0, 0.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for step in range(200):
            loss = model(torch.ones(2, 4)).square().mean()
            if step % 7 == 0:
                with pytest.raises(ZeroDivisionError):
                    optimizer.step(lambda: 1 / 0)
            loss.backward()
            optimizer.step()

    assert timed(act)[1].updates >= 20


# ---------------------------------------------------------------------- what it leaves alone


def test_nothing_is_changed_and_nothing_is_left_behind() -> None:
    names = [(torch.Tensor, name) for name in ("item", "norm", "tolist", "__float__", "to", "cpu")]
    names += [(torch, "norm"), (torch.linalg, "norm"), (torch.linalg, "vector_norm")]
    before = [vars(owner).get(name) for owner, name in names]

    def act() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(130):
            optimizer.zero_grad()
            model(torch.rand(8, 4)).square().mean().backward()
            optimizer.step()
        return [*model.parameters(), torch.rand(3)]

    alone = act()
    watched: list[torch.Tensor] = []
    watcher, _ = timed(lambda: watched.extend(act()))
    assert all(map(torch.equal, alone, watched))
    assert [vars(owner).get(name) for owner, name in names] == before
    assert watcher.timer.on is False


def test_between_its_bursts_it_is_off() -> None:
    watcher = Watcher()
    watcher.start()
    on = []
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    try:
        for _ in range(1000):
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()
            on.append(watcher.timer.on)
    finally:
        watcher.stop()
    assert sum(on[100:]) <= 6 * 30
    assert not on[-1] or sum(on[-60:]) < 60


def test_no_model_and_no_optimizer_is_kept_alive() -> None:
    watcher = Watcher()
    watcher.start()
    try:
        model = nn.Linear(4, 1)
        train(100, model)
        reference = weakref.ref(model)
        del model
        assert reference() is None
    finally:
        watcher.stop()


@pytest.mark.parametrize("before", [False, True], ids=["compiled-later", "compiled-before"])
def test_the_compiler_compiles_nothing_again(before: bool) -> None:
    from torch._dynamo.utils import counters

    def direction(x: torch.Tensor) -> torch.Tensor:
        return x / (torch.norm(x) + torch.linalg.vector_norm(x) + x.norm())

    def act() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        compiled = known or torch.compile(direction, backend="eager")
        for _ in range(230):
            model(compiled(torch.ones(2, 4))).square().mean().backward()
            optimizer.step()

    torch._dynamo.reset()
    known = torch.compile(direction, backend="eager") if before else None
    if known is not None:
        known(torch.ones(2, 4))
    counters.clear()
    timed(act)
    assert counters["stats"]["unique_graphs"] == (0 if before else 1)
    assert not counters["graph_break"]


def test_what_else_is_read_is_no_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss is read behind the norms, and long after them."""

    def act() -> None:
        model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
        for _ in range(110):
            loss = model(torch.ones(2, 4)).square().mean()
            loss.backward()
            total = 0.0
            for p in model.parameters():
                assert p.grad is not None
                total += p.grad.norm().item() ** 2
            time.sleep(0.01)
            loss.item()
            optimizer.step()

    watcher, found = timed(act)
    (norms,) = [each for key, each in watcher.timer.tally.calls.items() if key[0] == "norm"]
    assert norms.count == 8 * norms.units
    assert norms.seconds / norms.units < 0.009 < found.parts["rest"]


# ---------------------------------------------------------------------- a GPU that there is not


class Host(torch.Tensor):
    """A batch that says that it goes to a GPU when it is moved."""


class Device(torch.Tensor):
    """One that says that it lies there."""

    @property
    def is_cuda(self) -> bool:
        return True


class Gpu:
    """Its clock: work is put into a queue, and an event comes to pass behind what was put there."""

    def __init__(self) -> None:
        self.free_at = 0.0
        self.recorded: list[Any] = []

    def work(self, seconds: float) -> None:
        self.free_at = max(self.free_at, time.perf_counter()) + seconds

    def wait(self) -> None:
        time.sleep(max(0.0, self.free_at - time.perf_counter()))

    def event(self, enable_timing: bool) -> Any:
        assert enable_timing
        gpu = self

        class Event:
            def record(self) -> None:
                self.at = max(gpu.free_at, time.perf_counter())
                gpu.recorded.append(self)

            def query(self) -> bool:
                return time.perf_counter() >= self.at

            def elapsed_time(self, other: Any) -> float:
                return float(other.at - self.at) * 1e3

        return Event()


def on_gpu(monkeypatch: pytest.MonkeyPatch, act: Any) -> tuple[list[Finding], Speed, Gpu]:
    """Run something under a watcher that takes the CPU for a GPU."""
    gpu = Gpu()
    monkeypatch.setattr(torch.cuda, "Event", gpu.event)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    watcher = Watcher()
    watcher.timer.least = 0
    begin = watcher.timer._begin_with

    def begin_with(optimizer: Any) -> None:
        begin(optimizer)
        watcher.timer.device = "cuda"
        watcher.timer.reads.on_device("cuda")

    monkeypatch.setattr(watcher.timer, "_begin_with", begin_with)
    watcher.start()
    try:
        act(gpu)
    finally:
        watcher.stop()
    gpu.wait()
    findings = watcher.findings()
    assert watcher.hub.errors == []
    speed = watcher.timer.speed()
    assert speed is not None
    return findings, speed, gpu


def gpu_training(gpu: Gpu, reads: bool, rest: float, updates: int = 110) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    model.register_forward_hook(lambda *given: gpu.work(0.012))
    for _ in range(updates):
        loss = model(torch.ones(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if reads:
            gpu.wait()
            loss.detach().as_subclass(Device).item()
        time.sleep(rest)


def test_on_a_gpu_what_runs_beside_it_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, gpu = on_gpu(monkeypatch, lambda gpu: gpu_training(gpu, False, 0.0005))
    assert found.device == "cuda"
    assert found.parts["forward"] >= 0.0119
    assert found.share("forward") > 0.6
    assert len(gpu.recorded) < 15 * 45


def test_on_a_gpu_what_it_waits_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, _ = on_gpu(monkeypatch, lambda gpu: gpu_training(gpu, True, 0.004))
    assert found.parts["rest"] >= 0.004


def test_a_number_read_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    item = torch.Tensor.item

    def slow_item(self: torch.Tensor) -> Any:
        if type(self) is Device:
            gpus[0].wait()
        return item(self)

    def act(gpu: Gpu) -> None:
        gpus.append(gpu)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
        model.register_forward_hook(lambda *given: gpu.work(0.015))
        for _ in range(110):
            loss = model(torch.ones(2, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.detach().as_subclass(Device).item()
            time.sleep(0.006)

    gpus: list[Gpu] = []
    monkeypatch.setattr(torch.Tensor, "item", slow_item, raising=False)
    findings, _, _ = on_gpu(monkeypatch, act)
    found = next(each for each in findings if each.code == "TS102")
    assert ".item() waits" in found.message
    assert found.place.path == __file__
    assert torch.Tensor.item is slow_item


def test_a_copy_out_of_ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if type(self) is not Host:
            return original(self, *args, **kwargs)
        time.sleep(0.004)
        return self.as_subclass(Device)

    def act(gpu: Gpu) -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
        for _ in range(110):
            batch = torch.ones(2, 4).as_subclass(Host)
            moved = batch.to("cuda", non_blocking=True)
            model(moved.as_subclass(torch.Tensor)).square().mean().backward()
            optimizer.step()

    original = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", to, raising=False)
    findings, found, _ = on_gpu(monkeypatch, act)
    assert found.parts["transfer"] >= 0.004
    (said,) = [each for each in findings if each.code == "TS103"]
    assert said.fix == "Pass pin_memory=True to the loader."


def test_matrix_products_of_a_model_on_the_cpu_are_none_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    findings, _, _ = on_gpu(monkeypatch, lambda gpu: gpu_training(gpu, False, 0.0))
    assert [each.code for each in findings] == []


# ---------------------------------------------------------------------- what is tried out


def stepped(kind: type[torch.optim.Optimizer], sizes: int = 30, **options: Any) -> Any:
    parameters = [nn.Parameter(torch.ones(16, 16)) for _ in range(sizes)]
    optimizer = kind(parameters, lr=0.01, **options)
    for each in parameters:
        each.grad = torch.ones_like(each)
    return optimizer


KINDS = [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_fused_step_is_tried_out_on_copies(kind: type[torch.optim.Optimizer]) -> None:
    optimizer = stepped(kind)
    before = [p.detach().clone() for p in optimizer.param_groups[0]["params"]]
    assert could_be_fused(optimizer)
    ratio = ratio_of_fused(optimizer)
    assert ratio is not None
    assert 0 < ratio < 5
    assert all(map(torch.equal, before, optimizer.param_groups[0]["params"]))
    assert all(bool((p.grad == 1).all()) for p in optimizer.param_groups[0]["params"])


@pytest.mark.parametrize(
    "options",
    [{"fused": True}, {"fused": False}, {"foreach": True}, {"foreach": False}],
    ids=str,
)
def test_whoever_has_decided_is_left_alone(options: dict[str, bool]) -> None:
    assert not could_be_fused(stepped(torch.optim.Adam, **options))


def test_what_has_no_fused_step_is_left_alone() -> None:
    class Own(torch.optim.Adam):
        pass

    assert not could_be_fused(stepped(Own))
    assert not could_be_fused(stepped(torch.optim.RMSprop))
    sparse = stepped(torch.optim.SGD)
    first = sparse.param_groups[0]["params"][0]
    first.grad = first.grad.to_sparse()
    assert not could_be_fused(sparse)


# ---------------------------------------------------------------------- what is said

BASIS = TimedUpdates(40, 0.1, 60.0, 5.0, "cuda")


def judged(code: str, kind: type[Measured], place: Location = HERE, **values: Any) -> Any:
    """What a rule says of one measurement."""
    runner = RuleRunner([load(BY_CODE[code])])
    if kind is MatrixProducts:
        runner.handle(ModelForward(model=values["model"], training=True, place=place))
    if kind is WorkerStarts:
        values = {"lasted": 60.0, "least": 5.0, **values}
    else:
        basis = {name: values.pop(name) for name in BASIS._fields if name in values}
        values["updates"] = BASIS._replace(**basis)
    runner.handle(kind(place=place, **values))
    found: list[Finding] = runner.findings()
    return found[0] if found else None


WAIT = {
    "share": 0.38, "batch": 0.041, "busy": 0.9, "workers_busy": 1.0, "rest": 0.014, "cores": 8,
}  # fmt: skip
ASKED = {"how": "item", "often": 1.0, "blocked": 0.02, "share": 0.2}
MOVE = {
    "non_blocking": True,
    "pinned": False,
    "how": "to",
    "often": 1.0,
    "each": 0.01,
    "share": 0.1,
}
STARTED = {"passes": 5, "each": 0.3, "share": 0.4, "changes": False}
STEP = {"share": 0.2, "step": 0.02, "ratio": 0.3}
NORMS = {"often": 1.0, "count": 30, "each": 0.01, "share": 0.1}
PRODUCTS = {"part": 1.0, "widest": 1024, "share": 0.8}
CASES: list[tuple[str, type[Measured], dict[str, Any]]] = [
    ("TS101", DataWait, WAIT | {"loader": Loader(workers=0, length=9)}),
    ("TS102", DeviceRead, ASKED),
    ("TS103", DeviceTransfer, MOVE),
    ("TS104", WorkerStarts, STARTED | {"loader": Loader(workers=4)}),
    ("TS105", OptimizerTime, STEP | {"optimizer": Optimizer(kind="torch.optim.Adam")}),
    ("TS106", GradientNorms, NORMS),
    ("TS107", MatrixProducts, PRODUCTS | {"model": Model(kind="Net", name="net")}),
    (
        "TS108",
        DataWait,
        WAIT | {"loader": Loader(workers=0, batch_size=64, one_by_one=True)},
    ),
]
EACH = pytest.mark.parametrize(
    ("code", "kind", "values"),
    CASES,
    ids=lambda v: v if isinstance(v, str) and v.startswith("TS") else "",
)


@EACH
def test_it_is_said(code: str, kind: type[Measured], values: dict[str, Any]) -> None:
    found = judged(code, kind, **values)
    assert (found.code, found.severity, found.place) == (code, "advice", HERE)
    assert found.fix


@EACH
def test_short_trainings_are_left_alone(
    code: str, kind: type[Measured], values: dict[str, Any]
) -> None:
    assert judged(code, kind, **values, lasted=4.9) is None
    assert judged(code, kind, **values, lasted=4.9, least=0) is not None
    if code != "TS104":
        assert judged(code, kind, **values, number=19) is None
        assert judged(code, kind, **values, seconds=1e-4) is None


@EACH
def test_small_shares_are_left_alone(
    code: str, kind: type[Measured], values: dict[str, Any]
) -> None:
    assert judged(code, kind, **values | {"share": 0.049}) is None


def test_the_workers_that_are_needed() -> None:
    found = judged("TS101", DataWait, loader=Loader(workers=0, length=9), **WAIT)
    assert "38% of each update" in found.message
    assert "a batch takes 41 ms to prepare, and the training uses it up in 14 ms" in found.message
    assert "3 workers would be enough" in found.message
    assert "num_workers=3" in found.fix


@pytest.mark.parametrize(
    ("workers", "values", "said"),
    [
        (0, {"cores": 2}, "2 workers would reduce that to 32%"),
        (0, {"cores": 2, "device": "cpu"}, "1 worker would reduce that to 66%"),
        (0, {"cores": 1, "device": "cpu"}, None),
        (0, {"cores": 1, "device": "cpu", "busy": 0.1}, "3 workers would be enough"),
        (2, {"busy": 0.1}, "8 workers would be enough"),
        (2, {"busy": 0.9}, None),
        (2, {"busy": 0.1, "cores": 2}, None),
        (2, {"busy": 0.1, "cores": 2, "workers_busy": 0.1}, "8 workers would be enough"),
        (0, {"batch": 5e-4}, None),
    ],
    ids=lambda value: str(value),
)
def test_the_workers_that_help(workers: int, values: dict[str, Any], said: str | None) -> None:
    loader = Loader(workers=workers, length=9)
    found = judged("TS101", DataWait, loader=loader, **WAIT | values)
    assert said in found.message if said else found is None


@pytest.mark.parametrize(
    ("code", "kind", "values"),
    [
        ("TS102", DeviceRead, ASKED | {"device": "cpu"}),
        ("TS102", DeviceRead, ASKED | {"often": 0.1}),
        ("TS103", DeviceTransfer, MOVE | {"device": "cpu"}),
        ("TS103", DeviceTransfer, MOVE | {"pinned": True}),
        ("TS103", DeviceTransfer, MOVE | {"non_blocking": False}),
        ("TS104", WorkerStarts, STARTED | {"loader": Loader(workers=4), "changes": True}),
        ("TS104", WorkerStarts, STARTED | {"loader": Loader(workers=4), "passes": 2}),
        ("TS104", WorkerStarts, STARTED | {"loader": Loader(workers=4), "each": 0.005}),
        ("TS105", OptimizerTime, STEP | {"optimizer": Optimizer(), "ratio": 0.9}),
        ("TS105", OptimizerTime, STEP | {"optimizer": Optimizer(), "ratio": None, "device": "cpu"}),
        ("TS106", GradientNorms, NORMS | {"count": 3}),
        ("TS106", GradientNorms, NORMS | {"often": 0.2}),
        ("TS107", MatrixProducts, PRODUCTS | {"model": Model(), "device": "cpu"}),
        ("TS107", MatrixProducts, PRODUCTS | {"model": Model(), "part": 0.4}),
        ("TS107", MatrixProducts, PRODUCTS | {"model": Model(), "widest": 64}),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("TS") else "",
)
def test_what_is_no_oversight(code: str, kind: type[Measured], values: dict[str, Any]) -> None:
    assert judged(code, kind, **values) is None


def test_pinned_memory_that_is_waited_for() -> None:
    found = judged("TS103", DeviceTransfer, **MOVE | {"pinned": True, "non_blocking": False})
    assert found.fix == "Use .to(..., non_blocking=True)."


def test_a_model_under_autocast_is_left_alone() -> None:
    runner, model = RuleRunner([load(BY_CODE["TS107"])]), Model(name="net")
    runner.handle(ModelForward(model=model, training=True, place=HERE, autocast="bfloat16"))
    runner.handle(MatrixProducts(model=model, updates=BASIS, **PRODUCTS))
    assert runner.findings() == []


def test_on_the_gpu_a_fused_step_needs_no_trial() -> None:
    optimizer = Optimizer(kind="torch.optim.AdamW", name="optimizer")
    found = judged("TS105", OptimizerTime, optimizer=optimizer, **STEP | {"ratio": None})
    assert found.fix == "Use AdamW(..., fused=True)."


# ---------------------------------------------------------------------- how it is shown


PARTS_FOUND = dict.fromkeys(PARTS, 0.0) | {"data": 0.0155, "forward": 0.02, "rest": 0.0045}


def test_the_table() -> None:
    speed = Speed(40, PARTS_FOUND, 100.0, 25.0, "cpu")
    lines = table.as_table(speed, 2500, Paint()).splitlines()
    assert lines == [
        "an update takes 40 ms  (40 of 2,500 updates measured)",
        "  waiting for data     16 ms   39%  ############",
        "  forward              20 ms   50%  ###############",
        "  the rest            4.5 ms   11%  ###",
        "  outside of updates: 20% of the time is evaluation (25 s in total)",
    ]
    told = table.as_object(speed)
    assert told is not None
    assert told["parts"]["data"] == {"seconds": 0.0155, "share": 0.3875}
    assert table.as_object(None) is None


@pytest.mark.parametrize(
    ("updates", "lasted", "asks", "shown"),
    [
        (40, 6.0, False, True),
        (40, 4.0, False, False),
        (19, 6.0, False, False),
        (2, 0.1, True, True),
    ],
)
def test_when_it_is_shown(updates: int, lasted: float, asks: bool, shown: bool) -> None:
    watched = Watched([], [], 0, begun=True, updates=99, asks_speed=asks)
    watched.speed = Speed(updates, PARTS_FOUND, lasted, 0.0, "cpu")
    assert ("an update takes" in as_text(watched, Paint())) is shown
    assert json.loads(as_json(watched))["speed"]["measured"] == updates


def test_whoever_asks_is_told_that_there_is_nothing() -> None:
    watched = Watched([], [], 0, begun=True, asks_speed=True)
    assert "no update was timed" in as_text(watched, Paint())
    assert json.loads(as_json(watched))["speed"] is None


@pytest.mark.parametrize("asks", [False, True])
def test_a_session_hands_it_on(asks: bool) -> None:
    session = Session(Configs(), speed=asks)
    session.begin()
    train(0, nn.Linear(4, 1), DataLoader(Slow(45, 0.02), batch_size=None))
    watched = session.end()
    assert watched.errors == []
    assert watched.speed is not None
    assert watched.speed.parts["data"] >= 0.02
    assert [found.code for found in watched.findings] == (["TS101"] if asks else [])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.3, "12 s"), (1.26, "1.3 s"), (0.9999, "1.0 s"), (0.0414, "41 ms"), (0.0099, "9.9 ms"),
     (0.00996, "10 ms"), (0.00021, "0.21 ms"), (0, "0 ms")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_program_from_the_command_line(tmp_path: Path) -> None:
    import subprocess

    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)\n"
        "for _ in range(120):\n"
        "    model(torch.ones(2, 4)).square().mean().backward()\n"
        "    optimizer.step(); optimizer.zero_grad()\n"
    )
    command = [sys.executable, "-m", "trueloop", "watch", "--speed", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "an update takes" in done.stderr
    assert "of 120 updates measured" in done.stderr
