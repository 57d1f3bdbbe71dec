"""`Step(compile="step")`: what it trains beside the plain step, what it leaves to it, and why."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import trueloop
from trueloop import errors, schedules
from trueloop.step import compiled_step, lowering
from trueloop.step.compiled_step import FIRST

Batch = tuple[Tensor, Tensor]
CRITERION = trueloop.supervised(nn.CrossEntropyLoss())


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same graphs, run operation by operation: the compiler itself takes half a minute for
    each. `benchmarks/compiled_parity.py` runs the whole matrix as it is compiled."""
    monkeypatch.setattr(lowering, "LOWER", lowering.interpreted)
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh())
        self.head = nn.Linear(8, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def make_model(dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(0)
    return Net().to(dtype)


def make_batches(number: int, dtype: torch.dtype = torch.float64, size: int = 8) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(size, 6, generator=generator, dtype=dtype),
            torch.randint(0, 3, (size,), generator=generator),
        )
        for _ in range(number)
    ]


def groups(model: nn.Module) -> list[dict[str, Any]]:
    return trueloop.optimizers.parameter_groups(model, 0.1)


OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.02, weight_decay=0.01),
    "adam of trueloop": lambda m: trueloop.optimizers.adam(m, 0.02),
    "amsgrad": lambda m: torch.optim.Adam(m.parameters(), lr=0.02, amsgrad=True, maximize=False),
    "adamw in groups": lambda m: torch.optim.AdamW(groups(m), lr=0.02),
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, weight_decay=0.01),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, dampening=0.1),
    "nesterov": lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9, nesterov=True),
}


def make_step(optimizer: str = "adam", model: nn.Module | None = None, **options: Any) -> Any:
    model = make_model() if model is None else model
    return trueloop.Step(model, OPTIMIZERS[optimizer](model), CRITERION, **options)


def train(step: Any, batches: list[Any], per_epoch: int | None = None) -> list[Any]:
    records = []
    for k, batch in enumerate(batches):
        records.append(step(batch))
        if per_epoch and (k + 1) % per_epoch == 0:
            step.end_epoch({"val_loss": 1.0})
    return records


def assert_close(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    """Of states: every tensor and number, relative to its own size."""
    if isinstance(theirs, Tensor):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for name in theirs:
            assert_close(ours[name], theirs[name], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b, tolerance)
    else:
        assert ours == theirs


CASES = [
    ("adam", {"clip_norm": 0.5, "schedule": schedules.cosine()}),
    ("adam of trueloop", {"accumulate": 3, "clip_norm": 0.5}),
    ("amsgrad", {"clip_value": 0.01, "schedule": schedules.one_cycle()}),
    ("adamw in groups", {"clip_norm": 0.5, "schedule": schedules.warmup_cosine(warmup="10%")}),
    ("adamw in groups", {"accumulate": 3, "schedule": schedules.plateau(monitor="val_loss")}),
    ("sgd", {"clip_value": 0.01, "nonfinite": "skip"}),
    ("momentum", {"clip_norm": 0.5, "accumulate": 3, "schedule": schedules.step_decay()}),
    ("nesterov", {"schedule": schedules.cosine(tick="epoch")}),
]


@pytest.mark.parametrize(("optimizer", "options"), CASES)
def test_the_weights_of_200_updates(optimizer: str, options: dict[str, Any]) -> None:
    """In float64, to 1e-10 of the plain step's, with its records, its state and its buffers."""
    plain, compiled = (
        make_step(optimizer, **options),
        make_step(optimizer, compile="step", **options),
    )
    batches = make_batches(50 * options.get("accumulate", 1))
    per_epoch = len(batches)
    for step in (plain, compiled):
        step.plan(epochs=4, batches=per_epoch)
    for _ in range(4):
        ours, theirs = train(compiled, batches, per_epoch), train(plain, batches, per_epoch)
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a._asdict(), b._asdict())
    assert compiled.updates == 200
    assert compiled._compiled.level == "update"
    assert_close(
        {**compiled.state_dict(), "compiled": None}, {**plain.state_dict(), "compiled": None}
    )


class Controlled(nn.Module):
    """Its control flow goes by values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return y if float(y.sum()) > 0 else 2 * y


def plain_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def hooked_model() -> nn.Module:
    model = plain_model()
    next(model.parameters()).register_hook(lambda g: g)
    return model


def hooked_step(model: nn.Module) -> Optimizer:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    optimizer.register_step_post_hook(lambda *_: None)
    return optimizer


class Mine(torch.optim.SGD):
    pass


def several(model: nn.Module) -> list[Optimizer]:
    first, *rest = model.parameters()
    return [torch.optim.SGD([first], lr=0.1), torch.optim.Adam(rest, lr=0.02)]


def adam(model: nn.Module) -> Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.02)


# What of a step there is, what is compiled of it, and the reason that is said.
LESS: dict[str, tuple[Callable[[], nn.Module], Any, dict[str, Any], str, str]] = {
    "an own optimizer": (
        plain_model, lambda m: Mine(m.parameters(), lr=0.1), {}, "gradient", "Mine is not torch's",
    ),
    "several optimizers": (plain_model, several, {"accumulate": 2}, "gradient", "2 optimizers"),
    "a hook on the step": (plain_model, hooked_step, {}, "gradient", "a hook on its step"),
    "outliers": (plain_model, adam, {"outliers": trueloop.Outliers()}, "gradient", "outliers"),
    "a hook on a gradient": (hooked_model, adam, {}, "model", "a hook on its gradient"),
    "control flow by values": (
        lambda: Controlled().double(), adam, {}, "model", "decides by a tensor's values",
    ),
}  # fmt: skip


def spare_model(compile: Any) -> Any:
    """`torch.compile` of anything but a module."""
    return lambda given, **options: (
        given if isinstance(given, nn.Module) else compile(given, **options)
    )


@pytest.mark.parametrize("case", LESS)
def test_the_largest_part_is_compiled_and_the_reason_said_once(case: str, monkeypatch: Any) -> None:
    make, optimizer, options, level, reason = LESS[case]
    monkeypatch.setattr(torch, "compile", spare_model(torch.compile))
    torch.manual_seed(0)
    model = make()
    compiled = trueloop.Step(model, optimizer(model), CRITERION, compile="step", **options)
    other = copy.deepcopy(model) if case != "a hook on a gradient" else make()
    plain = trueloop.Step(other, optimizer(other), CRITERION, **options)
    batches = make_batches(12)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(compiled, batches)
    said = [str(each.message) for each in caught if "compile=" in str(each.message)]
    assert len(said) == 1, said
    assert reason in said[0]
    assert compiled._compiled.level == level
    train(plain, batches)
    assert_close(compiled.model.state_dict(), plain.model.state_dict())


def test_a_state_goes_back_and_forth(tmp_path: Any) -> None:
    """Between a compiled and a plain step; a compiled run that goes on is bitwise the run that
    never stopped, also inside of a window."""
    batches = make_batches(40)
    options = {"accumulate": 3, "clip_norm": 0.5, "schedule": schedules.cosine()}

    def step(**more: Any) -> Any:
        made = make_step("adamw in groups", **options, **more)
        made.plan(epochs=1, batches=40)
        return made

    straight = step(compile="step")
    train(straight, batches)
    first = step(compile="step")
    train(first, batches[:20])
    torch.save(first.state_dict(), tmp_path / "state")
    for compile, tolerance in (("step", 0.0), (None, 1e-10)):
        state = torch.load(tmp_path / "state", weights_only=False)
        second = step(compile=compile)
        second.load_state_dict(state)
        train(second, batches[20:])
        found = second.state_dict()
        found.setdefault("compiled", straight.state_dict()["compiled"])
        assert_close(found, straight.state_dict(), tolerance)


def test_shapes_beyond_the_limit_run_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does a run that goes on: the shapes that have a graph are part of the state."""
    monkeypatch.setattr(compiled_step, "SHAPES", 2)
    sizes = [4, 5, 6, 7]
    batches = [make_batches(1, size=size)[0] for size in [*[8] * FIRST, *sizes, *sizes]]
    plain, compiled = make_step(), make_step(compile="step")
    train(plain, batches)
    with pytest.warns(UserWarning, match="more than 2 distinct shapes") as caught:
        train(compiled, batches)
    assert len(caught) == 1
    assert_close(compiled.model.state_dict(), plain.model.state_dict())
    shapes = compiled.state_dict()["compiled"]["shapes"]
    assert len(shapes) == 2
    resumed = make_step(compile="step")
    resumed.load_state_dict(compiled.state_dict())
    with pytest.warns(UserWarning, match="more than 2 distinct shapes"):
        train(resumed, batches[-1:])
    assert resumed.state_dict()["compiled"]["shapes"] == shapes


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_gradient_that_is_not_finite(accumulate: int) -> None:
    """`skip` leaves the update out, in weights, state and schedule; `stop` names its place."""
    batches = make_batches(12)
    batches[8][0][1, 1] = torch.nan
    compiled = {"accumulate": accumulate, "compile": "step", "clip_norm": 0.5}
    step, plain = (
        make_step("momentum", plain_model(), nonfinite="skip", **each)
        for each in (compiled, {**compiled, "compile": None})
    )
    assert_close([r._asdict() for r in train(step, batches)], [
        r._asdict() for r in train(plain, batches)
    ])  # fmt: skip
    assert step.skipped == 1
    assert_close(step.state_dict()["optimizer"], plain.state_dict()["optimizer"])
    stopping = make_step("momentum", plain_model(), **compiled)
    train(stopping, batches[:8])
    before = copy.deepcopy(stopping.state_dict())
    with pytest.raises(errors.NonFiniteError, match=r"gradient of '0.weight'.* batch 9; the loss"):
        train(stopping, batches[8:])
    assert_close(stopping.model.state_dict(), before["model"], 0.0)
    assert_close(stopping.state_dict()["optimizer"], before["optimizer"], 0.0)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_with_the_loss_scale(precision: str) -> None:
    """As far from float32 as the plain step is, and the scale goes the same way."""
    batches = make_batches(30, torch.float32)
    steps = {
        name: make_step("adam", plain_model().float(), clip_norm=0.5, **options)
        for name, options in (
            ("exact", {}),
            ("plain", {"precision": precision}),
            ("compiled", {"precision": precision, "compile": "step"}),
        )
    }
    if precision == "fp16":
        for name in ("plain", "compiled"):
            scaler = steps[name].precision.scaler
            scaler.load_state_dict({**scaler.state_dict(), "scale": 2.0**24, "growth_interval": 7})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records = {name: train(step, batches) for name, step in steps.items()}
    exact, plain, compiled = (
        torch.cat([p.detach().flatten() for p in step.model.parameters()])
        for step in steps.values()
    )
    assert (compiled - exact).abs().max() <= 2 * (plain - exact).abs().max()
    updated = [[each.updated for each in records[name]] for name in ("plain", "compiled")]
    assert updated[0] == updated[1]
    assert steps["compiled"].precision.state_dict() == steps["plain"].precision.state_dict()
    assert (precision == "fp16") == (steps["compiled"].skipped > 0)
    assert steps["compiled"]._compiled.level == "update"


def test_a_number_that_changes_and_a_metric_that_looks_on(monkeypatch: Any) -> None:
    """Outputs and parts are handed on; a plain number that changes ends the compilation."""
    monkeypatch.setattr(torch, "compile", spare_model(torch.compile))
    seen: list[Any] = []
    weight = [1.0]

    def loss_fn(model: nn.Module, batch: Batch) -> trueloop.LossOutput:
        outputs = model(batch[0])
        loss = nn.functional.cross_entropy(outputs, batch[1])
        parts = {"entropy": loss, "scale": weight[0]}
        return trueloop.LossOutput(loss * weight[0], None, outputs, batch[1], parts)

    model = plain_model()
    step = trueloop.Step(model, adam(model), loss_fn, compile="step")
    step.on_outputs = lambda outputs, targets: seen.append((outputs, targets))
    batches = make_batches(6)
    records = train(step, batches)
    assert step._compiled.level == "update"
    assert [targets.tolist() for _, targets in seen] == [y.tolist() for _, y in batches]
    assert all(float(r.parts["entropy"]) == float(r.loss) for r in records)
    weight[0] = 0.5
    with pytest.warns(UserWarning, match="a plain number that the forward or the loss reads"):
        last = train(step, batches)[-1]
    assert float(last.parts["scale"]) == weight[0]
    assert step._compiled.level == "model"


def test_auto_keeps_the_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways are made in turns; the choice is part of the state."""
    batches = make_batches(30)
    for slow, choice in (("update", "eager"), ("eager", "update")):
        step = make_step(compile="auto")
        trial, now = step._compiled._trial, [0.0]

        def tick(trial: Any = trial, slow: str = slow, now: Any = now) -> float:
            now[0] += 2.0 if trial._turn == slow else 1.0
            return now[0]

        monkeypatch.setattr(trial, "_now", tick)
        a, b = ("2 s", "1 s") if slow == "update" else ("1 s", "2 s")
        kept = "plain" if slow == "update" else "compiled"
        found = f"a compiled update takes {a}, a plain one {b}: {kept} updates are kept"
        with pytest.warns(UserWarning, match="compile='auto'") as caught:
            train(step, batches)
        assert [str(each.message) for each in caught] == [f"compile='auto': {found}"]
        assert trial.choice == choice
        assert len(trial.seconds["eager"]) == len(trial.seconds["update"])
        state = step.state_dict()
        assert state["compiled"]["choice"] == choice
        other = make_step(compile="auto")
        other.load_state_dict(state)
        assert other._compiled._trial.choice == choice


def test_the_update_that_cannot_be_captured_is_made_by_the_compiled_model(monkeypatch: Any) -> None:
    """So a run that is resumed there makes it as the run that never stopped."""
    called: list[str] = []

    def noting(given: Any, **options: Any) -> Any:
        if not isinstance(given, nn.Module):
            return torch_compile(given, **options)
        view = nn.Sequential(given)
        view.register_forward_pre_hook(lambda *_: called.append("compiled"))
        return view

    torch_compile = torch.compile
    monkeypatch.setattr(torch, "compile", noting)
    model = Controlled().double()
    step = trueloop.Step(model, adam(model), CRITERION, compile="step")
    with pytest.warns(UserWarning, match="only the model is compiled"):
        train(step, make_batches(5))
    assert len(called) == 2
