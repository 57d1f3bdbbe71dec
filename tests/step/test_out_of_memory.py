"""`Step(on_oom="accumulate")`: batches in parts have the gradient of the whole batch."""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import trueloop
from trueloop import errors
from trueloop.step.splitting import Splitting, split

IGNORED = -100
LIMIT = 3


class Memory:
    """A device that holds the activations of at most so many samples."""

    def __init__(self, limit: int | None, where: str = "forward") -> None:
        self.limit = limit
        self.where = where
        self.failures = 0

    def ask(self, where: str, samples: int) -> None:
        if self.limit is not None and where == self.where and samples > self.limit:
            self.failures += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


class Held(torch.autograd.Function):
    """Passes its input on, and takes memory both ways."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, memory: Memory) -> Tensor:
        ctx.memory, ctx.samples = memory, len(x)
        memory.ask("forward", len(x))
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.memory.ask("backward", ctx.samples)
        return gradients[0], None


class Loss:
    """Mean over the targets that count; of each kind that a loss_fn may return."""

    def __init__(self, kind: str, memory: Memory) -> None:
        self.kind = kind
        self.memory = memory

    def __call__(self, model: nn.Module, batch: dict[str, Tensor]) -> Any:
        outputs = Held.apply(model(batch["x"]), self.memory)
        targets = batch["y"]
        if self.kind == "samples":
            return cross_entropy(outputs[:, 0], targets[:, 0].clamp(min=0))
        loss = cross_entropy(outputs.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        count = (targets != IGNORED).sum()
        if self.kind == "callable":
            return trueloop.LossOutput(loss, lambda: count, outputs=outputs, targets=targets)
        if self.kind == "parts":
            return loss, int(count), {"nll": loss.detach(), "square": loss.detach() ** 2}
        return loss, int(count) if self.kind == "number" else count


def batches(number: int, dtype: torch.dtype = torch.float64) -> list[dict[str, Tensor]]:
    """Of different sizes, with targets that are ignored, of some samples all."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for k in range(number):
        size = (7, 3, 8, 2)[k % 4]
        y = torch.randint(0, 5, (size, 4), generator=generator)
        y[torch.rand(size, 4, generator=generator) < 0.3] = IGNORED
        y[0] = IGNORED
        found.append({"x": torch.randn(size, 4, 6, generator=generator, dtype=dtype), "y": y})
    return found


def make(
    memory: Memory,
    kind: str = "samples",
    layer: nn.Module | None = None,
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> trueloop.Step:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), layer or nn.Identity(), nn.Linear(8, 5))
    model = model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    return trueloop.Step(model, optimizer, Loss(kind, memory), **options)


def run(step: trueloop.Step, data: list[dict[str, Tensor]]) -> list[trueloop.StepRecord]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [step(batch, last=k == len(data) - 1) for k, batch in enumerate(data)]


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("kind", ["samples", "number", "tensor", "callable", "parts"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_gradient_is_that_of_the_whole_batch(kind: str, where: str, accumulate: int) -> None:
    options = {"accumulate": accumulate, "clip_norm": 0.5}
    memory = Memory(LIMIT, where)
    whole = make(Memory(None), kind, **options)
    parted = make(memory, kind, **options, on_oom="accumulate")
    data = batches(8)
    one, two = run(whole, data), run(parted, data)
    # 7 and 8 samples in 2 parts are too many still; then they are known.
    assert memory.failures == 4
    for a, b in zip(one, two, strict=True):
        assert (a.samples, a.updated) == (b.samples, b.updated)
        torch.testing.assert_close(b.loss, a.loss, rtol=1e-12, atol=1e-12)
        assert a.parts.keys() == b.parts.keys()
        for name in a.parts if kind == "parts" and accumulate == 1 else ():
            if name == "nll":
                torch.testing.assert_close(b.parts[name], a.parts[name], rtol=1e-12, atol=1e-12)
        if a.grad_norm is not None:
            torch.testing.assert_close(b.grad_norm, a.grad_norm, rtol=1e-12, atol=1e-12)
    for a, b in zip(whole.model.parameters(), parted.model.parameters(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_with_memory_enough_it_is_bitwise_the_plain_step(accumulate: int, precision: str) -> None:
    options: dict[str, Any] = {"dtype": torch.float32, "accumulate": accumulate}
    options["precision"] = precision
    data = batches(8, torch.float32)
    plain = make(Memory(None), "number", **options)
    ready = make(Memory(None), "number", **options, on_oom="accumulate")
    for a, b in zip(run(plain, data), run(ready, data), strict=True):
        assert torch.equal(a.loss, b.loss)
    for a, b in zip(plain.model.parameters(), ready.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_in_half_precision_it_is_the_whole_batch_to_its_rounding(precision: str) -> None:
    options: dict[str, Any] = {"dtype": torch.float32, "precision": precision}
    data = batches(4, torch.float32)
    whole = make(Memory(None), "number", **options)
    parted = make(Memory(LIMIT), "number", **options, on_oom="accumulate")
    records = run(whole, data), run(parted, data)
    assert [r.updated for r in records[0]] == [r.updated for r in records[1]]
    assert any(r.updated for r in records[0])
    for a, b in zip(whole.model.parameters(), parted.model.parameters(), strict=True):
        torch.testing.assert_close(b, a, rtol=0.03, atol=0.01)


def test_it_says_so_once_for_a_size_of_batch() -> None:
    step = make(Memory(LIMIT), on_oom="accumulate")
    data = batches(4)
    with pytest.warns(RuntimeWarning) as said:
        _ = [step(batch) for batch in data * 2]
    assert [str(one.message) for one in said] == [
        f"out of memory with a batch of {size} samples: such batches are now made in 4 parts, with "
        "the gradient of the whole batch"
        for size in (7, 8)
    ]


def test_batch_norm_is_named() -> None:
    step = make(Memory(LIMIT), layer=nn.BatchNorm1d(4), on_oom="accumulate")
    with pytest.warns(RuntimeWarning, match="but for batch norm, which takes its statistics from"):
        step(batches(1)[0])


def test_a_resumed_step_splits_as_before() -> None:
    def new() -> tuple[trueloop.Step, Memory]:
        memory = Memory(LIMIT)
        return make(memory, "tensor", nn.Dropout(0.3), on_oom="accumulate"), memory

    data = batches(8)
    (whole, _), (first, _), (second, memory) = new(), new(), new()
    torch.manual_seed(5)
    run(whole, data)
    torch.manual_seed(5)
    run(first, data[:4])
    second.load_state_dict(first.state_dict())
    run(second, data[4:])
    assert memory.failures == 0  # which would have drawn from the dropout's numbers
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert second.state_dict()["split"] == [[7, 4], [8, 4]]
    # A step that does not split takes the state all the same.
    make(Memory(None)).load_state_dict(first.state_dict())


def test_a_metric_sees_the_outputs_of_all_parts() -> None:
    seen: list[list[Tensor]] = []
    data = batches(1)
    for memory in (Memory(None), Memory(LIMIT)):
        step = make(memory, "callable", on_oom="accumulate")
        step.on_outputs = lambda *both: seen.append(list(both))
        run(step, data)
    assert torch.equal(seen[0][1], seen[1][1])
    torch.testing.assert_close(seen[0][0], seen[1][0])


def test_too_little_for_one_sample() -> None:
    step = make(Memory(0), on_oom="accumulate")
    with pytest.raises(errors.DeviceError, match="out of memory with one sample at a time, beside"):
        step(batches(1)[0])
    assert all(p.grad is None for p in step.model.parameters())


def test_other_errors_and_stop_are_torchs_own() -> None:
    data = batches(1)[0]
    with pytest.raises(torch.OutOfMemoryError):
        make(Memory(LIMIT))(data)

    def fail(model: nn.Module, batch: Any) -> Tensor:
        raise RuntimeError("shapes do not fit")

    step = make(Memory(LIMIT), on_oom="accumulate")
    step.loss_fn = fail
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        step(data)


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        ({"x": torch.zeros(4, 2), "lengths": torch.zeros(9)}, r"a tensor of shape \(9,\) beside 4"),
        ([torch.zeros(4, 2), object()], "an object in it"),
    ],
)
def test_batches_that_cannot_be_split(batch: Any, why: str) -> None:
    with pytest.raises(errors.DeviceError, match=f"cannot be split by samples \\({why}.*lower the"):
        list(split(batch, 4, 2))


def test_a_split_batch_keeps_its_form() -> None:
    x, names = torch.arange(10.0).reshape(5, 2), list("abcde")
    parts = list(split({"x": (x, [x]), "names": names, "scale": 3, "t": torch.tensor(1.0)}, 5, 3))
    assert [samples for _, samples in parts] == [1, 2, 2]
    assert [part["names"] for part, _ in parts] == [["a"], ["b", "c"], ["d", "e"]]
    assert torch.equal(torch.cat([part["x"][1][0] for part, _ in parts]), x)
    assert all(part["scale"] == 3 and part["t"] == 1 for part, _ in parts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_oom": "split"}, "on_oom"),
        ({"on_oom": "accumulate", "compile": "step"}, "cannot split an update that is one graph"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.ConfigError, match=words):
        make(Memory(None), **options)


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """Room for 200 MB beside what the process has."""
    from trueloop.tune.memory import limit_memory

    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(200_000_000)
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
@pytest.mark.usefixtures("_little_memory")
def test_an_allocation_that_fails_for_want_of_memory() -> None:
    """Activations of 8 layers with 48 MB each, of which two batches of a quarter fit."""
    model = nn.Linear(1, 1)

    def loss_fn(model: nn.Module, batch: Tensor) -> Tensor:
        x = model(batch).expand(-1, 250_000)
        for _ in range(8):
            x = x.tanh()
        return x.mean()

    step = trueloop.Step(
        model, torch.optim.SGD(model.parameters(), lr=0.1), loss_fn, on_oom="accumulate"
    )
    with pytest.warns(RuntimeWarning, match="out of memory with a batch of 48 samples"):
        assert step(torch.ones(48, 1)).updated
    assert isinstance(step._parallel, Splitting)
    assert step._parallel.parts[48] in (4, 8)
