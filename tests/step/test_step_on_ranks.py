"""Many ranks: the update of the one-process large batch, however it is cut."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import trueloop
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.step import global_window

Batch = tuple[Tensor, Tensor]


def make_model(dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
    return model.append(nn.Linear(16, 4)).to(dtype)


def make_data(samples: int, dtype: torch.dtype = torch.float64) -> Batch:
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(0, 4, (samples,), generator=generator)
    return torch.randn(samples, 6, generator=generator, dtype=dtype) + y[:, None], y


def part(batch: Batch, number: int, count: int) -> tuple[Batch, bool]:
    """This rank's part of a global batch; of an empty one, a stand-in."""
    n = len(batch[0])
    first, end = (math.ceil(k * n / count) for k in (number, number + 1))
    if first == end:
        return (batch[0][:2], batch[1][:2]), True
    return (batch[0][first:end], batch[1][first:end]), False


def global_batches(data: Batch, size: int, epochs: int = 1) -> list[tuple[Batch, bool]]:
    """Each global batch, and whether it is its epoch's last."""
    n = len(data[0])
    starts = range(0, n, size)
    one = [((data[0][k : k + size], data[1][k : k + size]), k + size >= n) for k in starts]
    return one * epochs


def one_process(
    data: Batch, size: int, accumulate: int, clip: float | None, epochs: int
) -> tuple[list[float], list[float], list[Tensor]]:
    """The losses, gradient norms and weights of a plain loop: the large batch at once."""
    model = make_model(data[0].dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    losses, norms = [], []
    for _ in range(epochs):
        stride = size * accumulate
        for k in range(0, len(data[0]), stride):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(
                model(data[0][k : k + stride]), data[1][k : k + stride]
            )
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)
            optimizer.step()
            losses.append(float(loss.detach()))
            norms.append(float(norm))
    return losses, norms, [p.detach() for p in model.parameters()]


def whole(parameter: Tensor) -> Tensor:
    full = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
    return full.detach().clone()


def train(
    parallel: Any, data: Batch, size: int, accumulate: int, clip: float | None, epochs: int
) -> tuple[list[float], list[float], list[Tensor], list[int]]:
    model = make_model(data[0].dtype)
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5),
        trueloop.supervised(nn.CrossEntropyLoss()),
        accumulate=accumulate,
        clip_norm=clip,
        parallel=parallel,
    )
    losses, norms, samples = [], [], []
    for batch, last in global_batches(data, size, epochs):
        mine, stand_in = part(batch, *ranks.data_parallel())
        record = step(mine, last=last, stand_in=stand_in)
        if record.updated:
            losses.append(float(record.loss))
            norms.append(float(record.grad_norm))  # type: ignore[arg-type]
            samples.append(int(record.samples))
        if last:
            step.end_epoch()
    return losses, norms, [whole(p) for p in step.model.parameters()], samples


CASES = [(61, 8, 1), (61, 7, 3), (13, 5, 4), (33, 4, 2), (32, 8, 2), (9, 4, 1)]
"""Samples, global batch, accumulate: prime sizes, short windows, last batches of 1."""
STRATEGIES = ["ddp", "fsdp"]


@pytest.mark.parametrize("parallel", STRATEGIES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_updates_of_one_process_with_the_large_batch(count: int, parallel: str) -> None:
    for found in on_ranks(count, _compare, parallel):
        for (samples, size, accumulate), difference, sizes in found:
            assert difference < 1e-12, (samples, size, accumulate)
            expected = [
                min(size * accumulate, samples - k) for k in range(0, samples, size * accumulate)
            ]
            assert sizes == expected * 2


def _compare(parallel: str) -> list[tuple[tuple[int, int, int], float, list[int]]]:
    found, clipped = [], set[bool]()
    for case in CASES:
        samples, size, accumulate = case
        data = make_data(samples)
        losses, norms, weights = one_process(data, size, accumulate, 0.5, 2)
        ours = train(parallel, data, size, accumulate, 0.5, 2)
        clipped |= {norm > 0.5 for norm in norms}
        pairs = itertools.chain(zip(losses, ours[0], strict=True), zip(norms, ours[1], strict=True))
        scalars = max(abs(a - b) / max(abs(a), 1.0) for a, b in pairs)
        tensors = max(float((a - b).abs().max()) for a, b in zip(weights, ours[2], strict=True))
        found.append((case, max(scalars, tensors), ours[3]))
    assert clipped == {True, False}, "the cases must exercise both sides of the clip"
    return found


def test_single_precision_agrees_to_its_own() -> None:
    for parallel in STRATEGIES:
        for losses in on_ranks(2, _in_single_precision, parallel):
            assert losses < 1e-5, parallel


def _in_single_precision(parallel: str) -> float:
    data = make_data(61, torch.float32)
    expected = one_process(data, 7, 2, 0.5, 2)[0]
    found = train(parallel, data, 7, 2, 0.5, 2)[0]
    return max(abs(a - b) / max(abs(a), 1.0) for a, b in zip(expected, found, strict=True))


class Noisy(nn.Module):
    """Batch norm and dropout: what a loop by hand has under DDP."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def _by_hand(batches: list[Batch], accumulate: int) -> nn.Module:
    torch.manual_seed(0)
    model = Noisy()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01)
    torch.manual_seed(7 + ranks.rank())
    for k, (inputs, targets) in enumerate(batches):
        ends = (k + 1) % accumulate == 0
        with contextlib.nullcontext() if ends else ddp.no_sync():
            loss = nn.functional.cross_entropy(ddp(inputs), targets)
            (loss / accumulate).backward()
        if ends:
            nn.utils.clip_grad_norm_(ddp.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
    return model


def _bitwise(accumulate: int, wrapped: bool) -> bool:
    count = ranks.world_size()
    data = make_data(8 * count * 6, torch.float32)
    batches = [part(b, ranks.rank(), count)[0] for b, _ in global_batches(data, 8 * count)]
    theirs = _by_hand(batches, accumulate)
    torch.manual_seed(0)
    ours: nn.Module = Noisy()
    given = DistributedDataParallel(ours) if wrapped else ours
    step = trueloop.Step(
        given,
        torch.optim.AdamW(given.parameters(), lr=0.01),
        trueloop.supervised(nn.CrossEntropyLoss()),
        accumulate=accumulate,
        clip_norm=0.5,
        parallel=None if wrapped else "ddp",
    )
    torch.manual_seed(7 + ranks.rank())
    for batch in batches:
        step(batch)
    assert step.updates == 6 // accumulate
    assert step.model is ours
    pairs = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("wrapped", [False, True], ids=["ours", "the user's own DDP"])
@pytest.mark.parametrize(("count", "accumulate"), [(2, 1), (2, 3), (4, 2)])
def test_even_batches_give_bitwise_the_loop_by_hand(
    count: int, accumulate: int, wrapped: bool
) -> None:
    assert all(on_ranks(count, _bitwise, accumulate, wrapped))


def ragged(seed: int) -> list[list[tuple[Tensor, float]]]:
    """Windows of micro-batches, each of values with weights; some weigh nothing."""
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    windows = []
    for _ in range(3):
        window = []
        for _ in range(number(1, 4)):
            n = number(1, 12)
            weights = torch.rand(n, generator=generator, dtype=torch.float64)
            weights[torch.rand(n, generator=generator) < 0.4] = 0
            values = torch.randn(n, 3, generator=generator, dtype=torch.float64)
            window.append((values, weights))
        window[0][1][0] = 1.0  # not nothing at all
        windows.append(window)
    return windows


def _weighted_mean(model: nn.Module, batch: Any) -> Any:
    values, weights = batch
    total = weights.sum()
    losses = model(values).squeeze(1).square() * weights
    # Over nothing it would be 0 / 0.
    return losses.sum() / total.clamp(min=1e-9), total


def _token_counts(parallel: str, seeds: list[int]) -> float:
    worst = 0.0
    for seed in seeds:
        windows = ragged(seed)
        models = []
        for _ in range(2):
            torch.manual_seed(seed)
            models.append(nn.Linear(3, 1, dtype=torch.float64))
        plain = torch.optim.SGD(models[0].parameters(), lr=0.1)
        losses = []
        for window in windows:
            plain.zero_grad()
            union = tuple(torch.cat(parts) for parts in zip(*window, strict=True))
            loss, _ = _weighted_mean(models[0], union)
            loss.backward()
            plain.step()
            losses.append(float(loss.detach()))
        optimizer = torch.optim.SGD(models[1].parameters(), lr=0.1)
        step = trueloop.Step(models[1], optimizer, _weighted_mean, accumulate=3, parallel=parallel)
        records = []
        for window in windows:
            for k, batch in enumerate(window):
                mine, stand_in = part(batch, *ranks.data_parallel())
                record = step(mine, last=k == len(window) - 1, stand_in=stand_in)
            records.append(record)
        found = [float(record.loss) for record in records]
        assert all(record.updated for record in records)
        pairs = zip(models[0].parameters(), step.model.parameters(), strict=True)
        errors = [float((a.detach() - whole(b)).abs().max()) for a, b in pairs]
        errors += [abs(a - b) for a, b in zip(losses, found, strict=True)]
        worst = max([worst, *errors])
    return worst


@pytest.mark.parametrize("parallel", STRATEGIES)
@pytest.mark.parametrize("count", [2, 3])
def test_weights_of_tokens_over_ranks(count: int, parallel: str) -> None:
    """Ragged windows, token weights, and micro-batches of no weight on some ranks."""
    assert max(on_ranks(count, _token_counts, parallel, list(range(12)))) < 1e-12


def _first_counts_of_nothing() -> tuple[float, float]:
    """Rank 0's first micro-batch counts for nothing: the reference is another rank's."""
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        lambda m, b: (m(b).mean(), 0 if ranks.rank() == 0 else 4),
        parallel="ddp",
    )
    record = step(torch.full((2, 1), 1.0 + ranks.rank(), dtype=torch.float64))
    return float(record.grad_norm), float(record.loss / model.weight.detach())  # type: ignore[arg-type]


def test_a_rank_whose_count_is_0_adds_nothing() -> None:
    for norm, loss in on_ranks(2, _first_counts_of_nothing):
        assert norm == pytest.approx(2.0, rel=1e-15)
        assert loss == pytest.approx(2.0, rel=1e-15)


def _poisoned(parallel: str, poison: float, announced: bool) -> tuple[list[float], bool, int]:
    """Micro-batches that count for nothing, whose loss and gradient are not finite; afterwards
    gradients flow again."""
    model = make_model()
    is_stand_in = ranks.rank() == 1
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        lambda m, b: (nn.functional.cross_entropy(m(b[0]) * b[2], b[1]), b[3]),
        accumulate=2,
        parallel=parallel,
    )
    seen = []
    step.on_outputs = lambda outputs, targets: seen.append(1)
    x, y = make_data(8)
    records = []
    for turn in range(2):
        for k in range(2):
            absent = is_stand_in and turn == 0
            bad = torch.tensor(poison if absent else 1.0, dtype=torch.float64)
            batch = (x[4 * k : 4 * k + 4], y[4 * k : 4 * k + 4], bad, 0 if absent else 4)
            records.append(step(batch, stand_in=absent and announced))
    numbers = [float(r.loss) for r in records if r.updated]
    numbers += [float(r.grad_norm) for r in records if r.grad_norm is not None]
    numbers += [float(r.samples) for r in records if r.updated]
    return (
        numbers,
        all(bool(torch.isfinite(whole(p)).all()) for p in step.model.parameters()),
        len(seen),
    )


@pytest.mark.parametrize("parallel", STRATEGIES)
@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("announced", [True, False], ids=["a stand-in", "a count of 0"])
def test_what_counts_for_nothing_cannot_poison_the_update(
    parallel: str, poison: float, announced: bool
) -> None:
    model = make_model()
    x, y = make_data(8)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
    first, second = on_ranks(2, _poisoned, parallel, poison, announced)
    assert first[0] == second[0]
    numbers, finite, _ = first
    assert finite
    assert numbers[0] == pytest.approx(float(loss.detach()), rel=1e-12)
    assert numbers[2] == pytest.approx(float(norm), rel=1e-12)
    assert numbers[4:] == [8 if announced else 16, 16]
    assert (first[2], second[2]) == (4, 2 if announced else 4), "metrics do not see stand-ins"


def _parts(immediate: bool) -> list[dict[str, float]]:
    """Parts that all ranks have, that one has, that come later, and that none has."""
    if not immediate:
        global_window.is_immediate = lambda device: False  # type: ignore[attr-defined]
    rank = ranks.rank()
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)

    def loss_fn(m: nn.Module, batch: Any) -> Any:
        x, turn = batch
        parts = {"all": float(rank)}
        if rank == 1 and turn >= 1:
            parts["late"] = 10.0 * turn
        if rank == 0 and turn != 2:
            parts["first"] = 5.0
        return m(x).mean(), len(x), parts

    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = trueloop.Step(model, optimizer, loss_fn, parallel="ddp")
    x = torch.ones(3 if rank == 0 else 1, 1, dtype=torch.float64)
    records = [step((x, turn)) for turn in range(6)]
    assert [int(record.samples) for record in records] == [4] * 6
    return [{name: float(p) for name, p in record.parts.items()} for record in records]


def test_parts_of_the_loss_over_ranks() -> None:
    for found in on_ranks(2, _parts, True):
        expected = [{"all": 0.25, "first": 5.0}]
        expected += [{"all": 0.25, "first": 5.0, "late": 10.0 * turn} for turn in range(1, 6)]
        del expected[2]["first"]
        assert found == expected


def test_on_an_accelerator_a_rank_has_the_parts_that_it_has_seen() -> None:
    """Without a wait for what the others have: a new name is known some updates later."""
    first, second = on_ranks(2, _parts, False)
    assert (
        first
        == [{"all": 0.25, "first": 5.0}] * 2 + [{"all": 0.25}] + [{"all": 0.25, "first": 5.0}] * 3
    )
    assert second[:2] == [{"all": 0.25}] * 2
    assert second[4:] == [{"all": 0.25, "late": 40.0}, {"all": 0.25, "late": 50.0}]


def _exchanges(parallel: str) -> dict[str, int]:
    """How many collectives there are in a window of three micro-batches."""
    model = make_model()
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        trueloop.supervised(nn.CrossEntropyLoss()),
        accumulate=3,
        parallel=parallel,
    )
    batch = make_data(4)
    for _ in range(6):
        step(batch)
    with torch.profiler.profile() as profile:
        for _ in range(3):
            step(batch)
    names = [event.name for event in profile.events() if event.name.startswith("c10d::")]
    return {name: names.count(name) for name in names}


def test_gradients_travel_once_per_update() -> None:
    """Under ddp one bucket, and one vector beside it; under fsdp a part for each of three blocks,
    and the norms."""
    (ddp, _), (fsdp, _) = on_ranks(2, _exchanges, "ddp"), on_ranks(2, _exchanges, "fsdp")
    assert ddp == {"c10d::allreduce_": 2}
    assert fsdp["c10d::_reduce_scatter_base_"] == 3
    assert fsdp["c10d::allreduce_"] == 2
