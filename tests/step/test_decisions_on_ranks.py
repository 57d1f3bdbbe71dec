"""What all ranks must decide alike: gradients that are not finite, parameters without one, windows
that end early."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import pytest
import torch
from test_step_on_ranks import make_data, make_model, part, whole
from torch import Tensor, nn

import trueloop
from on_ranks import on_ranks
from trueloop import DDPOptions, errors, ranks, schedules
from trueloop.step import deferred_reads, nonfinite
from trueloop.step.nonfinite import NonFiniteContext

CRITERION = trueloop.supervised(nn.CrossEntropyLoss())
BOTH = pytest.mark.parametrize("parallel", ["ddp", "fsdp"])


def make_step(parallel: Any, **options: Any) -> trueloop.Step:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return trueloop.Step(model, optimizer, CRITERION, parallel=parallel, **options)


def bad_on(rank: int, batch: Any) -> Any:
    return (batch[0] * math.nan, batch[1]) if ranks.rank() == rank else batch


def _stopped(parallel: str, accumulate: int) -> tuple[str, int, int, bool]:
    step = make_step(parallel, accumulate=accumulate)
    x, y = make_data(8)
    before = [whole(p) for p in step.model.parameters()]
    bad = [bad_on(1, (x, y)) if k == accumulate // 2 else (x, y) for k in range(accumulate)]
    for batch in bad[:-1]:
        step(batch)
    with pytest.raises(trueloop.NonFiniteError) as e:
        step(bad[-1])
    same = all(
        torch.equal(a, whole(b)) for a, b in zip(before, step.model.parameters(), strict=True)
    )
    for _ in range(accumulate):
        record = step((x, y))  # the next window is a new one
    assert record.updated
    return str(e.value), e.value.batch, step.updates, same


@BOTH
@pytest.mark.parametrize("accumulate", [1, 3])
def test_all_ranks_stop_with_the_same_words(parallel: str, accumulate: int) -> None:
    found = on_ranks(2, _stopped, parallel, accumulate)
    assert found[0] == found[1]
    message, batch, updates, same = found[0]
    assert f"batch {accumulate // 2 + 1} on rank 1; the loss was not finite already" in message
    assert (batch, updates, same) == (accumulate // 2, 1, True)


def _skipped(parallel: str, precision: str) -> list[Any]:
    step = make_step(parallel, nonfinite="skip", precision=precision)
    if precision == "fp16":
        step.precision.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)  # type: ignore[attr-defined]
        step.model.float()  # after the step was made
    x, y = make_data(8, torch.float32 if precision == "fp16" else torch.float64)
    records = [step(bad_on(1, (x, y)) if k == 1 else (x, y)) for k in range(3)]
    scale = getattr(step.precision, "scaler", None)
    return [
        [record.skipped for record in records],
        step.updates,
        None if scale is None else scale.get_scale(),
        all(bool(torch.isfinite(whole(p)).all()) for p in step.model.parameters()),
        [whole(p).tolist() for p in step.model.parameters()],
    ]


@BOTH
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_all_ranks_leave_out_the_same_update(parallel: str, precision: str) -> None:
    first, second = on_ranks(2, _skipped, parallel, precision)
    assert first == second
    scale = 128.0 if precision == "fp16" else None
    assert first[:4] == [[False, True, False], 2, scale, True]


def _over_nothing(parallel: str) -> str:
    step = make_step(parallel)
    step.loss_fn = lambda m, b: (CRITERION(m, b).loss, 0)
    with pytest.raises(trueloop.NonFiniteError) as e:
        step(make_data(4))
    return str(e.value)


@BOTH
def test_a_mean_over_nothing_on_all_ranks(parallel: str) -> None:
    for message in on_ranks(2, _over_nothing, parallel):
        assert "the count beside the loss is 0" in message


def _late() -> tuple[int, str]:
    """Verdicts that arrive late are read at the same update on all ranks."""
    verdicts = nonfinite.NonFinitePolicy("stop", make_step("ddp").precision)
    for update in range(6):
        try:
            verdicts.raise_late()
        except trueloop.NonFiniteError as error:
            return update, str(error)
        losses = [torch.tensor(math.nan if ranks.rank() == 1 and update == 2 else 1.0)]
        evidence = NonFiniteContext((update, 0, update), torch.tensor([math.nan]), ["w"], losses)
        verdicts.late.send(torch.tensor(math.nan if update == 2 else 1.0), evidence)
    return -1, ""


def test_late_verdicts_are_read_at_the_same_update() -> None:
    found = on_ranks(2, _late)
    assert found[0] == found[1]
    assert found[0][0] == 2 + deferred_reads.LAG
    assert "batch 3 on rank 1" in found[0][1]


class Heads(nn.Module):
    """Each batch uses one of two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.heads = nn.Linear(6, 8), nn.ModuleList(nn.Linear(8, 4) for _ in range(2))

    def forward(self, x: Tensor, head: int) -> Tensor:
        return self.heads[head](torch.tanh(self.body(x)))  # type: ignore[no-any-return]


def _one_head(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0], batch[2]), batch[1])


def _heads(parallel: Any, accumulate: int) -> Any:
    torch.manual_seed(0)
    model = Heads().double()
    theirs = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = trueloop.Step(model, optimizer, _one_head, parallel=parallel, accumulate=accumulate)
    plain = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    x, y = make_data(8)
    for k in range(6):
        head = k // accumulate % 2
        plain.zero_grad()
        (_one_head(theirs, (x, y, head)) / 1).backward()
        if (k + 1) % accumulate == 0:
            plain.step()
        mine, _ = part((x, y), *ranks.data_parallel())
        try:
            step((*mine, head))
        except trueloop.ConfigError as error:
            return str(error)
    pairs = zip(model.parameters(), theirs.parameters(), strict=True)
    return max(float((whole(a) - b.detach()).abs().max()) for a, b in pairs)


def test_a_parameter_without_a_gradient_is_named_at_once() -> None:
    for message in on_ranks(2, _heads, "ddp", 1):
        assert "does not depend on 'heads.1.weight', 'heads.1.bias'" in message
        assert message.endswith(
            "write parallel=DDPOptions(find_unused_parameters=True), or freeze what is never used "
            "with requires_grad_(False)"
        )
        assert "\n" not in message


@pytest.mark.parametrize("accumulate", [1, 2])
def test_parameters_that_some_batches_do_not_use(accumulate: int) -> None:
    for parallel in (DDPOptions(find_unused_parameters=True), "fsdp"):
        for error in on_ranks(2, _heads, parallel, accumulate):
            assert error < 1e-12, parallel


def _flushed(how: str) -> tuple[float, int, list[str]]:
    """A window that no last micro-batch closes; a frozen layer, and one that is unfrozen later."""
    x, y = make_data(24)
    models = [make_model(), make_model()]
    for model in models:
        model[0].weight.requires_grad_(False)  # type: ignore[index, union-attr]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
    step = trueloop.Step(models[0], optimizers[0], CRITERION, accumulate=4, parallel="ddp")
    said = []
    for turn in range(3):
        if turn == 2:
            for model in models:
                model[0].weight.requires_grad_(True)  # type: ignore[index, union-attr]
        batch = x[8 * turn : 8 * turn + 8], y[8 * turn : 8 * turn + 8]
        optimizers[1].zero_grad()
        CRITERION(models[1], batch).loss.backward()
        optimizers[1].step()
        mine, _ = part(batch, *ranks.data_parallel())
        for half in zip(mine[0].chunk(2), mine[1].chunk(2), strict=True):
            step(half)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step.flush() if how == "flush" else step.end_epoch()
        said += [str(one.message) for one in caught]
    pairs = zip(models[0].parameters(), models[1].parameters(), strict=True)
    error = max(float((a.detach() - b.detach()).abs().max()) for a, b in pairs)
    return error, step.updates, said


@pytest.mark.parametrize("how", ["flush", "end_epoch"])
def test_an_open_window_under_ddp_is_averaged_by_hand(how: str) -> None:
    for error, updates, said in on_ranks(2, _flushed, how):
        assert error < 1e-12
        assert updates == 3
        assert len(said) == (how == "end_epoch"), said


def _sparse(accumulate: int) -> float:
    torch.manual_seed(0)
    models: list[Any] = [nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Flatten())]
    models[0].append(nn.Linear(8, 3)).double()
    models.append(copy.deepcopy(models[0]))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
    step = trueloop.Step(
        models[0], optimizers[0], CRITERION, accumulate=accumulate, parallel="ddp", clip_norm=0.2
    )
    generator = torch.Generator().manual_seed(4)
    for _ in range(3):
        x = torch.randint(0, 10, (8 * accumulate, 2), generator=generator)
        y = torch.randint(0, 3, (8 * accumulate,), generator=generator)
        optimizers[1].zero_grad()
        CRITERION(models[1], (x, y)).loss.backward()
        grads = [p.grad.to_dense() for p in models[1].parameters()]
        norm = math.sqrt(sum(float(g.square().sum()) for g in grads))
        for p, g in zip(models[1].parameters(), grads, strict=True):
            p.grad = g * min(1.0, 0.2 / (norm + 1e-6))
        optimizers[1].step()
        for batch in zip(x.chunk(accumulate), y.chunk(accumulate), strict=True):
            record = step(part(batch, *ranks.data_parallel())[0])
        assert float(record.grad_norm) == pytest.approx(norm, rel=1e-12)  # type: ignore[arg-type]
    pairs = zip(models[0].parameters(), models[1].parameters(), strict=True)
    return max(float((a.detach() - b.detach()).abs().max()) for a, b in pairs)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_sparse_gradients_under_ddp(accumulate: int) -> None:
    assert max(on_ranks(2, _sparse, accumulate)) < 1e-12


def _any_way() -> list[float]:
    """A loss that calls the model twice, by another method, or without its argument."""
    found = []
    for way in ("twice", "a layer", "closure"):
        model = make_model()
        ways = {
            "twice": lambda m, b: (m(b[0]) - m(b[0] * 0.5)).square().mean(),
            "a layer": lambda m, b: m[2](m[1](m[0](b[0]))).square().mean(),
            "closure": lambda m, b, model=model: model(b[0]).square().mean(),
        }
        parameters = list(model[:3].parameters()) if way == "a layer" else list(model.parameters())  # type: ignore[index]
        for p in model.parameters():
            p.requires_grad_(any(p is q for q in parameters))
        step = trueloop.Step(model, torch.optim.SGD(parameters, lr=0.0), ways[way], parallel="ddp")
        batch = make_data(8)
        loss = ways[way](model, batch)
        grads = torch.autograd.grad(loss, parameters)
        norm = torch.stack([g.norm() for g in grads]).norm()
        record = step(part(batch, *ranks.data_parallel())[0])
        found.append(abs(float(record.grad_norm) - float(norm)))  # type: ignore[arg-type]
    return found


def test_a_loss_may_call_the_model_in_any_way_under_ddp() -> None:
    for found in on_ranks(2, _any_way):
        assert max(found) < 1e-12


def _scheduled(parallel: str) -> tuple[list[float], str]:
    step = make_step(parallel, schedule=schedules.cosine(), accumulate=2)
    step.plan(epochs=2, batches=5)
    data = make_data(8)
    lrs = []
    for _ in range(2):
        records = [step(data) for _ in range(5)]
        lrs += [record.lr for record in records if record.updated]
        step.end_epoch()
    model = nn.Sequential(make_model(), nn.Linear(4, 4, dtype=torch.float64))
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    other = trueloop.Step(model, optimizer, CRITERION, parallel=parallel)
    with pytest.raises(trueloop.ConfigError) as e:
        other(data)
    return lrs, str(e.value)


@BOTH
def test_schedules_and_ownership_are_as_in_one_process(parallel: str) -> None:
    (lrs, _), *others = on_ranks(1, _scheduled, parallel) + on_ranks(2, _scheduled, parallel)
    for found, message in others:
        assert found == lrs
        assert "the loss depends on 1.weight, 1.bias, and the optimizer does not have" in message


def _resumed() -> tuple[float, str, bool]:
    """The agreed reference is part of the state: an odd first batch must not be agreed on again."""
    x, y = make_data(5 + 4 * 8)
    batches = [(x[:5], y[:5]), *zip(x[5:].chunk(4), y[5:].chunk(4), strict=True)]
    mine = [part(batch, *ranks.data_parallel())[0] for batch in batches]
    straight, first, second = (make_step("ddp") for _ in range(3))
    for batch in mine:
        straight(batch)
    for batch in mine[:2]:
        first(batch)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for batch in mine[2:]:
        second(batch)
    pairs = zip(straight.model.parameters(), second.model.parameters(), strict=True)
    same = all(torch.equal(a, b) for a, b in pairs)
    accumulating = make_step("ddp", accumulate=2)
    accumulating(mine[0])
    with pytest.raises(trueloop.UserError) as e:
        accumulating.state_dict()
    state = make_step("ddp", accumulate=2).state_dict()
    state["window"]["micro_batches"] = 1
    state["window"]["losses"] = [torch.tensor(1.0)]
    with pytest.raises(errors.RunError, match="inside an accumulation window by one process"):
        make_step("ddp", accumulate=2).load_state_dict(state)
    return float(first.state_dict()["agreed"]["reference"]), str(e.value), same


def test_a_resumed_run_is_bitwise_the_same() -> None:
    for reference, message, same in on_ranks(2, _resumed):
        assert same
        assert reference == 3
        assert "step.is_accumulating is False" in message


def test_a_step_from_before_the_process_group_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    step = make_step(None)
    monkeypatch.setattr(ranks, "world_size", lambda: 2)
    with pytest.raises(trueloop.ConfigError, match="made with 1 rank, and there are 2 now: make"):
        step(make_data(4))
