"""FSDP2: what a step does with a sharded model."""

from __future__ import annotations

import copy
import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard

import trueloop
from on_ranks import on_ranks
from trueloop import ConfigError, FSDPOptions, Step, evaluate, optimizers, ranks, supervised
from trueloop.step import sharding
from trueloop.step.module_blocks import blocks_of

CRITERION = supervised(nn.CrossEntropyLoss())


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.linear(self.norm(x)))


class Net(nn.Module):
    """Odd sizes, so that shards are uneven and some ranks have none of a bias."""

    def __init__(self, width: int = 7, blocks: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.leave = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)

    def by_another_name(self, x: Tensor) -> Tensor:
        return self.forward(x)


def make_net(dtype: torch.dtype = torch.float64) -> Net:
    torch.manual_seed(0)
    return Net().to(dtype)


def batches(count: int, size: int, dtype: torch.dtype = torch.float64) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.randn(size, 6, generator=generator, dtype=dtype),
            torch.randint(0, 3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def mine(batch: Any) -> Any:
    """This rank's part of an even batch."""
    number, count = ranks.data_parallel()
    return tuple(part.chunk(count)[number] for part in batch)


def whole(tensor: Any) -> Tensor:
    return (tensor.full_tensor() if sharding.is_sharded(tensor) else tensor).detach().clone()


def weights(step: Step) -> dict[str, Tensor]:
    return {name: whole(p) for name, p in step.model.state_dict().items()}


def difference(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    assert a.keys() == b.keys()
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)


def train(step: Step, data: list[Any]) -> dict[str, Tensor]:
    for batch in data:
        step(mine(batch))
    return weights(step)


def plain(make: Any, data: list[Any]) -> dict[str, Tensor]:
    """One process, by hand."""
    model = make_net()
    optimizer = make(model)
    for inputs, targets in data:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return {name: p.detach() for name, p in model.state_dict().items()}


OPTIMIZERS = {
    "adamw": lambda m: optimizers.adamw(m, 1e-2, weight_decay=0.1),
    "adam": lambda m: optimizers.adam(m, 1e-2),
    "sgd": lambda m: optimizers.sgd(m, 1e-1),
    "torch sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
    "rmsprop": lambda m: torch.optim.RMSprop(m.parameters(), lr=1e-3),
}


def test_optimizers_update_shards_as_they_update_whole_parameters() -> None:
    for name, error in on_ranks(2, _optimizers)[0].items():
        assert error < 1e-12, name


def _optimizers() -> dict[str, float]:
    data = batches(4, 8)
    found = {}
    for name, make in OPTIMIZERS.items():
        model = make_net()
        step = Step(model, make(model), CRITERION, parallel="fsdp")
        assert all(sharding.is_sharded(p) for p in step._gradients.parameters)
        found[name] = difference(train(step, data), plain(make, data))
    return found


def test_muon_sees_whole_matrices() -> None:
    """It computes in bfloat16, whose rounding depends on how a product is cut."""
    apart, moved = on_ranks(2, _muon)[0]
    assert apart < 0.1 * moved


def _muon() -> tuple[float, float]:
    data = batches(3, 64, torch.float32)
    before = {name: p.detach().clone() for name, p in make_net(torch.float32).state_dict().items()}
    found = []
    for parallel in ("fsdp", "ddp"):
        model = make_net(torch.float32)
        for p in model.parameters():
            p.requires_grad_(p.ndim == 2)
        matrices = [p for p in model.parameters() if p.ndim == 2]
        optimizer = torch.optim.Muon(matrices, lr=1e-2, weight_decay=0.0)
        found.append(train(Step(model, optimizer, CRITERION, parallel=parallel), data))
    return difference(found[0], found[1]), difference(found[0], before)


def refusals(cases: dict[str, Any]) -> dict[str, str]:
    """What each case is refused with."""
    found = {}
    for name, case in cases.items():
        try:
            case()
        except trueloop.UserError as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            found[name] = "taken"
    return found


def _fsdp(model: nn.Module, make: Any = None, loss_fn: Any = CRITERION, **options: Any) -> Step:
    optimizer = (make or OPTIMIZERS["adamw"])(model)
    return Step(model, optimizer, loss_fn, parallel=FSDPOptions(**options))


def _refused() -> dict[str, str]:
    batch = mine(batches(1, 4)[0])

    def with_state() -> None:
        model = make_net()
        optimizer = OPTIMIZERS["adam"](model)
        CRITERION(model, batch).loss.backward()
        optimizer.step()
        Step(model, optimizer, CRITERION, parallel="fsdp")

    def scalar() -> None:
        model = make_net()
        model.temperature = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
        _fsdp(model)

    def shared() -> None:
        model = make_net()
        model.blocks[2].linear.weight = model.blocks[0].linear.weight
        _fsdp(model)

    def sparse() -> None:
        model = nn.Sequential(nn.Embedding(5, 6, sparse=True), make_net())
        _fsdp(model, lambda m: torch.optim.SGD(m.parameters(), lr=0.1))

    def adafactor() -> None:
        _fsdp(make_net(), lambda m: torch.optim.Adafactor(m.parameters()))(batch)

    def mixed_group() -> None:
        model, scale = make_net(), nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer = torch.optim.Adam([*model.parameters(), scale], foreach=True)
        loss_fn = lambda m, b: nn.functional.cross_entropy(m(b[0]) * scale, b[1])  # noqa: E731
        Step(model, optimizer, loss_fn, parallel="fsdp")(batch)

    def another_method() -> None:
        loss_fn = lambda m, b: nn.functional.cross_entropy(m.by_another_name(b[0]), b[1])  # noqa: E731
        _fsdp(make_net(), loss_fn=loss_fn)(batch)

    def open_window() -> None:
        model = make_net()
        step = Step(model, OPTIMIZERS["sgd"](model), CRITERION, parallel="fsdp", accumulate=3)
        step(batch)
        step.flush()

    def state_of_an_open_window() -> None:
        model = make_net()
        step = Step(model, OPTIMIZERS["sgd"](model), CRITERION, parallel="fsdp", accumulate=3)
        step(batch)
        step.state_dict()

    def wrapped_by_ddp() -> None:
        ddp = nn.parallel.DistributedDataParallel(make_net())
        Step(ddp, OPTIMIZERS["adam"](ddp), CRITERION, parallel="fsdp")

    def optimizer_of_before() -> None:
        model = make_net()
        optimizer = OPTIMIZERS["adam"](model)
        fully_shard(model)
        Step(model, optimizer, CRITERION)

    def no_strategy() -> None:
        model = make_net()
        Step(model, OPTIMIZERS["adam"](model), CRITERION)

    return refusals(
        {
            "state": with_state,
            "scalar": scalar,
            "shared": shared,
            "sparse": sparse,
            "adafactor": adafactor,
            "mixed group": mixed_group,
            "another method": another_method,
            "open window": open_window,
            "state of an open window": state_of_an_open_window,
            "wrapped by DDP": wrapped_by_ddp,
            "optimizer of before": optimizer_of_before,
            "replicate": lambda: _fsdp(make_net(), replicate=3),
            "block": lambda: _fsdp(make_net(), blocks=["Blok"]),
            "no strategy": no_strategy,
        }
    )


REFUSED = {
    "state": "make a new optimizer, and load the state after",
    "scalar": "'temperature' is a scalar.*shape \\(1,\\)",
    "shared": "'blocks.2.linear.weight' is shared by two blocks.*FSDPOptions\\(blocks",
    "sparse": "embedding '0' has sparse gradients.*sparse=False, or write parallel='ddp'",
    "adafactor": "Adafactor cannot update sharded parameters.*parallel='ddp'",
    "mixed group": "group of Adam has sharded parameters and others.*a separate group",
    "another method": "outside the forward of their block.*register_fsdp_forward_method",
    "open window": "window is open.*last=True",
    "state of an open window": "RunError: an accumulation window is open.*after an update",
    "wrapped by DDP": "wrapped in DistributedDataParallel: give the bare model",
    "optimizer of before": "after the model has its final layers",
    "replicate": "replicate=3 does not divide the 2 ranks: write a divisor of 2",
    "block": "names 'Blok'.*did you mean 'Block'",
    "no strategy": "2 ranks train together, and parallel is None.*parallel='ddp'",
}


def test_what_cannot_be_sharded_is_refused_in_one_line() -> None:
    for found in on_ranks(2, _refused):
        assert found.keys() == REFUSED.keys()
        for name, pattern in REFUSED.items():
            assert re.search(pattern, found[name]), f"{name}: {found[name]}"
            assert "\n" not in found[name]


@pytest.mark.parametrize(
    "options",
    [
        {"blocks": "Block"},
        {"blocks": [Block]},
        {"replicate": 0},
        {"param_dtype": "bf17"},
        {"reduce_dtype": 16},
        {"cpu_offload": 1},
        {"reshard_after_forward": "yes"},
    ],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        FSDPOptions(**options)


def test_blocks_are_the_repeated_layers_or_those_named() -> None:
    def names(model: nn.Module, wanted: Any = None) -> list[str]:
        found = {id(block) for block in blocks_of(model, wanted)}
        return [name for name, module in model.named_modules() if id(module) in found]

    assert names(Net()) == ["blocks.0", "blocks.1", "blocks.2"]
    assert names(Net(), ["Linear"]) == [
        "enter", "blocks.0.linear", "blocks.1.linear", "blocks.2.linear", "leave",
    ]  # fmt: skip
    assert names(Net(), ()) == []
    conv = [nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.ReLU()) for _ in range(2)]
    assert names(nn.Sequential(nn.BatchNorm2d(3), *conv, nn.BatchNorm2d(3))) == ["1", "2"]
    assert names(nn.ModuleList([nn.ModuleList([Block(3), Block(3)])] * 2)) == ["0.0", "0.1"]


def _options_at_work() -> dict[str, Any]:
    data = batches(3, 8)
    expected = plain(OPTIMIZERS["sgd"], data)
    found: dict[str, Any] = {}
    for name, options in {
        "resharded": {"reshard_after_forward": True},
        "kept": {"reshard_after_forward": False},
        "one block": {"blocks": ()},
        "all linear": {"blocks": ["Linear"]},
        "offloaded": {"cpu_offload": True},
    }.items():
        step = _fsdp(make_net(), OPTIMIZERS["sgd"], **options)
        sharded = sum(isinstance(m, FSDPModule) for m in step.model.modules())
        found[name] = sharded, difference(train(step, data), expected)
    data = batches(3, 8, torch.float32)
    step = _fsdp(make_net(torch.float32), OPTIMIZERS["sgd"], param_dtype="bf16")
    seen = []
    step.on_outputs = lambda outputs, _: seen.append(outputs.dtype)
    inner = []
    step.model.blocks[1].register_forward_hook(lambda m, i, o: inner.append(o.dtype))
    train(step, data)
    found["dtypes"] = seen[0], inner[0], step._gradients.parameters[0].dtype
    return found


def test_each_option_is_at_work() -> None:
    found = on_ranks(2, _options_at_work)[0]
    assert found.pop("dtypes") == (torch.float32, torch.bfloat16, torch.float32)
    counts = {"resharded": 4, "kept": 4, "one block": 1, "all linear": 6, "offloaded": 4}
    assert {name: count for name, (count, _) in found.items()} == counts
    assert max(error for _, error in found.values()) < 1e-12


def _replicated() -> tuple[float, list[str], float]:
    data = batches(3, 8)
    step = _fsdp(make_net(), OPTIMIZERS["sgd"], replicate=2)
    placements = [str(p) for p in step._gradients.parameters[0].placements]  # type: ignore[attr-defined]
    error = difference(train(step, data), plain(OPTIMIZERS["sgd"], data))
    record = step(mine(data[0]))
    model = make_net()
    model.load_state_dict(plain(OPTIMIZERS["sgd"], data))
    nn.functional.cross_entropy(model(data[0][0]), data[0][1]).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf)
    return error, placements, abs(float(record.grad_norm) - float(norm))  # type: ignore[arg-type]


def test_copies_of_a_sharded_model() -> None:
    for error, placements, norm_error in on_ranks(4, _replicated):
        assert (error < 1e-12, norm_error < 1e-12) == (True, True)
        assert placements == ["Replicate()", "Shard(dim=0)"] or placements == ["R", "S(0)"]


def _sharded_by_user() -> float:
    data = batches(3, 8)
    model = make_net()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    step = Step(model, OPTIMIZERS["adam"](model), CRITERION)
    return difference(train(step, data), plain(OPTIMIZERS["adam"], data))


def test_a_model_that_the_user_has_sharded() -> None:
    assert max(on_ranks(2, _sharded_by_user)) < 1e-12


def _weights_of_rank_0() -> dict[str, Any]:
    torch.manual_seed(ranks.rank())
    model = nn.Sequential(Net(), nn.BatchNorm1d(3))
    nn.init.uniform_(model[1].running_mean)  # type: ignore[arg-type]
    return {name: t.tolist() for name, t in weights(_fsdp(model)).items()}


def test_all_ranks_start_from_the_weights_of_rank_0() -> None:
    torch.manual_seed(0)
    expected = nn.Sequential(Net(), nn.BatchNorm1d(3))
    nn.init.uniform_(expected[1].running_mean)
    for found in on_ranks(2, _weights_of_rank_0):
        assert found == {name: t.tolist() for name, t in expected.state_dict().items()}


def _evaluated() -> tuple[list[float], float, set[str], float]:
    """Evaluate first, then train, then evaluate: the whole parameters of the root stay nowhere."""
    data = batches(3, 8)
    val = trueloop.Feed(tuple(torch.cat(parts) for parts in zip(*data, strict=True)), 5)
    step = _fsdp(make_net(), OPTIMIZERS["sgd"])
    losses = [evaluate(step.model, val, CRITERION)["loss"]]
    error = difference(train(step, data), plain(OPTIMIZERS["sgd"], data))
    losses.append(evaluate(step.model, val, CRITERION)["loss"])
    kinds = {type(p).__name__ for p in step.model.parameters()}
    model = make_net()
    first = evaluate(model, val, CRITERION)["loss"] if ranks.world_size() == 1 else math.nan
    return losses, error, kinds, first


def test_evaluation_before_and_between_training() -> None:
    (expected, *_), (losses, error, kinds, _) = (
        on_ranks(1, _evaluated)[0],
        on_ranks(2, _evaluated)[1],
    )
    assert losses == pytest.approx(expected, rel=1e-12)
    assert error < 1e-12
    assert kinds == {"DTensor"}


class Tracked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.norm = Net(), nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.net(x))


def _buffers(parallel: str) -> tuple[list[Any], float]:
    torch.manual_seed(0)
    model = Tracked().double()
    step = Step(model, OPTIMIZERS["sgd"](model), CRITERION, parallel=parallel)
    data = batches(3, 8)
    train(step, data)
    val = trueloop.Feed(data[0], 4)
    score = evaluate(step.model, val, CRITERION)["loss"]
    return [b.tolist() for b in step.model.buffers()], score


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_all_ranks_evaluate_with_the_statistics_of_rank_0(parallel: str) -> None:
    first, second = on_ranks(2, _buffers, parallel)
    assert first == second


def _kept_apart() -> tuple[float, float]:
    """A generator's backward runs through the discriminator between its micro-batches."""

    def run(together: bool, parallel: Any) -> dict[str, Tensor]:
        torch.manual_seed(0)
        forger, judge = nn.Linear(6, 6).double(), make_net()
        judge_step = Step(
            judge, OPTIMIZERS["sgd"](judge), CRITERION, accumulate=3, parallel=parallel
        )
        forger_step = Step(
            forger,
            OPTIMIZERS["sgd"](forger),
            lambda m, b: judge(m(b[0])).square().mean(),
            accumulate=2,
            parallel=parallel,
        )
        for k, batch in enumerate(batches(9, 4)):
            judge_step(mine(batch))
            if together:
                forger_step(mine(batch), last=k == 8)
        return weights(judge_step)

    alone = run(False, "fsdp")
    return difference(run(True, "fsdp"), alone), difference(run(False, "ddp"), alone)


def test_another_steps_backward_leaves_an_open_window_alone() -> None:
    for together, ddp in on_ranks(2, _kept_apart):
        assert together == 0
        assert ddp < 1e-12


def _after_an_error(parallel: str) -> float:
    data = batches(6, 8)
    found = []
    for fails in (True, False):
        model = make_net()
        step = Step(model, OPTIMIZERS["sgd"](model), CRITERION, accumulate=3, parallel=parallel)
        if fails:
            step(mine(data[5]))
            step.loss_fn = lambda m, b: m(b[0]).sum() / (1 // 0)
            with pytest.raises(ZeroDivisionError):
                step(mine(data[4]))
            step.loss_fn = CRITERION
        found.append(train(step, data))
    return difference(*found)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_half_a_window_does_not_reach_an_update(parallel: str) -> None:
    assert max(on_ranks(2, _after_an_error, parallel)) == 0


def _outside(parallel: str) -> tuple[float, float]:
    """A criterion with a parameter of its own, which the optimizer holds too."""
    data = batches(4, 8)
    found = []
    for distributed in (True, False):
        model, scale = make_net(), nn.Parameter(torch.ones(3, dtype=torch.float64))
        loss_fn = lambda m, b, scale=scale: nn.functional.cross_entropy(m(b[0]) * scale, b[1])  # noqa: E731
        optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.1)
        if distributed:
            step = Step(model, optimizer, loss_fn, parallel=parallel, accumulate=2, clip_norm=0.3)
            train(step, data)
        else:
            for k in (0, 2):
                optimizer.zero_grad()
                loss_fn(model, tuple(map(torch.cat, zip(*data[k : k + 2], strict=True)))).backward()
                nn.utils.clip_grad_norm_([*model.parameters(), scale], 0.3)
                optimizer.step()
        found.append((whole(scale), {n: whole(p) for n, p in model.state_dict().items()}))
    return float((found[0][0] - found[1][0]).abs().max()), difference(found[0][1], found[1][1])


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_parameters_outside_the_model(parallel: str) -> None:
    for errors in on_ranks(2, _outside, parallel):
        assert max(errors) < 1e-12


def _scaled(outside: bool) -> tuple[list[bool], float, float]:
    """fp16, with an overflow on one rank; the second data set is one without."""
    model = make_net(torch.float32)
    scale = nn.Parameter(torch.ones(3))
    held = [{"params": list(model.parameters())}, {"params": [scale] if outside else []}]
    loss_fn = lambda m, b: nn.functional.cross_entropy(m(b[0]) * scale, b[1])  # noqa: E731
    optimizer = torch.optim.SGD(held[: 1 + outside], lr=0.1, fused=True)
    if not outside:
        scale.requires_grad_(False)
    step = Step(model, optimizer, loss_fn, parallel="fsdp", precision="fp16", nonfinite="skip")
    step.precision.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)  # type: ignore[attr-defined]
    updated = []
    for k, (x, y) in enumerate(mine(batch) for batch in batches(4, 8, torch.float32)):
        bad = k == 1 and ranks.rank() == 1
        updated.append(step((x * (math.inf if bad else 1.0), y)).updated)
    moved = float((scale.detach() - 1).abs().max())
    return updated, step.precision.scaler.get_scale(), moved  # type: ignore[attr-defined]


@pytest.mark.parametrize("outside", [False, True])
def test_an_overflow_on_one_rank_is_skipped_by_all(outside: bool) -> None:
    first, second = on_ranks(2, _scaled, outside)
    assert first == second
    assert first[:2] == ([True, False, True, True], 128.0)
    assert 0 < first[2] < 1 if outside else first[2] == 0


def _partly_sharded() -> tuple[float, float]:
    """The user has sharded the blocks alone: the rest is averaged, and counted once in the norm."""
    data = batches(3, 8)
    model, whole_model = make_net(), make_net()
    for block in model.blocks:
        fully_shard(block)
    sgd = torch.optim.SGD
    step = Step(model, sgd(model.parameters(), lr=0.1), CRITERION, clip_norm=0.5)
    optimizer = sgd(whole_model.parameters(), lr=0.1)
    errors = []
    for inputs, targets in data:
        record = step(mine((inputs, targets)))
        optimizer.zero_grad()
        nn.functional.cross_entropy(whole_model(inputs), targets).backward()
        norm = float(nn.utils.clip_grad_norm_(whole_model.parameters(), 0.5))
        optimizer.step()
        errors.append(abs(float(record.grad_norm) - norm))  # type: ignore[arg-type]
    expected = {name: p.detach() for name, p in whole_model.state_dict().items()}
    return difference(weights(step), expected), max(errors)


def test_a_model_that_is_sharded_in_part() -> None:
    assert max(max(errors) for errors in on_ranks(2, _partly_sharded)) < 1e-12


def _saved_and_loaded() -> dict[str, float]:
    data = batches(6, 8)

    def make() -> Step:
        model = make_net()
        return Step(model, OPTIMIZERS["adamw"](model), CRITERION, parallel="fsdp", clip_norm=0.5)

    straight = make()
    expected = train(straight, data)
    first = make()
    train(first, data[:3])
    state = copy.deepcopy(first.state_dict())
    resumed = make()
    resumed.load_state_dict(copy.deepcopy(state))
    found = {"shards": difference(train(resumed, data[3:]), expected)}
    # What one process has saved: whole tensors.
    entries = state["optimizer"]["state"].items()
    state["model"] = {name: whole(t) for name, t in state["model"].items()}
    state["optimizer"]["state"] = {
        k: {name: whole(t) for name, t in entry.items()} for k, entry in entries
    }
    resumed = make()
    resumed.load_state_dict(copy.deepcopy(state))
    assert all(sharding.is_sharded(e["exp_avg"]) for e in resumed.optimizer.state.values())
    found["whole"] = difference(train(resumed, data[3:]), expected)
    bad = copy.deepcopy(state)
    bad["optimizer"]["param_groups"][0]["params"] = []
    before = weights(resumed)
    with pytest.raises(trueloop.UserError):
        resumed.load_state_dict(bad)
    found["refused"] = difference(weights(resumed), before)
    return found


def test_a_state_is_taken_up_from_shards_and_from_whole_tensors() -> None:
    for found in on_ranks(2, _saved_and_loaded):
        assert found == {"shards": 0, "whole": 0, "refused": 0}
