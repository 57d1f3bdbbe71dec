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
from trueloop import schedules
from trueloop.step import lowering

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
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
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
    assert_close(compiled.state_dict(), plain.state_dict())


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
