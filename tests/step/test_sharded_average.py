"""EMA, SWA and parts thawed late, of a model that FSDP2 has sharded: as one process by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from test_sharded import CRITERION, OPTIMIZERS, batches, difference, make_net, mine, weights, whole
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import trueloop
from bits import same
from on_ranks import on_ranks
from trueloop import EMA, SWA, Checkpoints, Feed, FSDPOptions, Step, load_checkpoint

Weights = dict[str, Tensor]


def make_step(parallel: Any = "fsdp", **options: Any) -> Step:
    model = make_net()
    return Step(model, OPTIMIZERS["adamw"](model), CRITERION, parallel=parallel, **options)


def held(model: nn.Module) -> Weights:
    return {name: p.detach().clone() for name, p in model.state_dict().items()}


def by_hand(
    data: list[Any], averaging: Any = None, takes: Any = lambda update: True, thaws: Any = None
) -> tuple[Weights, Weights]:
    """The weights of one process, and their average."""
    model = make_net()
    averaged = AveragedModel(model, multi_avg_fn=averaging)
    optimizer = OPTIMIZERS["adamw"](model)
    for update, (inputs, targets) in enumerate(data):
        if thaws is not None:
            thaws(model, update)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        if takes(update + 1):
            averaged.update_parameters(model)
    return held(model), held(averaged.module)


AVERAGES = {
    "ema": (EMA(0.7), get_ema_multi_avg_fn(0.7), lambda update: True),
    "swa": (SWA("2 updates", every=2), None, lambda update: update % 2 == 0),
}


def on_each_rank(folder: Path) -> dict[str, Any]:
    data, found = batches(6, 8), {}
    for name, (average, averaging, takes) in AVERAGES.items():
        live, averaged = by_hand(data, averaging, takes)
        model = make_net()
        model.load_state_dict(averaged)
        inputs, targets = data[0]
        expected = float(nn.functional.cross_entropy(model(inputs), targets))
        step = make_step(average=average)
        scores = []
        for batch in data:
            step(mine(batch))
            with step.evaluating():
                scores.append(trueloop.evaluate(step.model, Feed(data[0], 3), CRITERION)["loss"])
        found[f"{name}: weights in training"] = difference(weights(step), live)
        with step.evaluating():
            found[f"{name}: average"] = difference(weights(step), averaged)
        found[f"{name}: evaluated"] = abs(scores[-1] - expected)
        saved = {k: whole(t) for k, t in step.state_dict()["model"].items()}
        found[f"{name}: saved"] = difference(saved, averaged)
    found |= resumed(folder) | thawed(folder)
    return found


def feeds() -> tuple[Feed, Feed]:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    data = inputs, torch.randint(0, 3, (40,), generator=generator)
    return Feed(data, 8, shuffle=True), Feed(data, 16)


def gathered(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: gathered(part) for key, part in tree.items()}
    return whole(tree) if isinstance(tree, Tensor) else tree


RESUMED = {
    "ema": {"average": EMA(0.7, warmup=True), "accumulate": 2},
    "swa": {"average": SWA("2 updates", every=2)},
    "unfreeze": {"unfreeze": {"enter": "8 updates", "blocks.1": "1 epoch"}},
}


def resumed(folder: Path) -> dict[str, Any]:
    """Runs of 4 epochs, beside those that stop after two and go on from the checkpoint."""
    found = {}
    for name, options in RESUMED.items():
        full, cut, rest = (make_step(**options) for _ in range(3))
        train, val = feeds()
        end = trueloop.fit(full, train, val, epochs=4, progress=False)
        kept = Checkpoints(folder / name)
        trueloop.fit(cut, train, val, epochs=2, checkpoints=kept, progress=False)
        trueloop.fit(
            rest, train, val, epochs=4, resume_from=load_checkpoint(folder / name), progress=False
        )
        one, other = gathered(full.state_dict()), gathered(rest.state_dict())
        found[f"{name} goes on bitwise"] = float(not same(one, other))
        found[f"{name} has an average"] = float(
            "average" in options and same(one["model"], one["train_weights"])
        )
        # With the state of this moment, in one process and whole.
        found[f"{name} loads"] = float(not _loads_whole(options, one))
        assert end.records
    return found


def _loads_whole(options: dict[str, Any], state: Any) -> bool:
    step = make_step(**options)
    step.load_state_dict(state)
    return same(gathered(step.state_dict()), state)


def thawed(folder: Path) -> dict[str, Any]:
    """A part within a block's shards, and a block as a whole."""
    data, found = batches(6, 8), {}

    def thaws(model: nn.Module, update: int) -> None:
        model.enter.requires_grad_(update >= 2)
        model.blocks[1].requires_grad_(update >= 4)

    unfreeze = {"enter": "2 updates", "blocks.1": "4 updates"}
    step = make_step(unfreeze=unfreeze, clip_norm=100.0)
    for batch in data:
        step(mine(batch))
        trueloop.evaluate(step.model, Feed(data[0], 3), CRITERION)  # leaves nothing whole
    found["thawed"] = difference(weights(step), by_hand(data, thaws=thaws)[0])

    # Gradients that are computed in bf16 are summed and applied in the parameters' own dtype.
    model = make_net(torch.float32)
    step = Step(
        model, OPTIMIZERS["sgd"](model), CRITERION, parallel=FSDPOptions(param_dtype="bf16"),
        unfreeze=unfreeze,
    )  # fmt: skip
    before = weights(step)
    for k, batch in enumerate(batches(6, 8, torch.float32)):
        step(mine(batch))
        now = weights(step)
        name = "blocks.1.linear.weight"
        assert torch.equal(now[name], before[name]) == (k < 4), k
        assert now[name].dtype == torch.float32
    return found


def test_a_sharded_model_is_averaged_and_thawed_as_in_one_process(tmp_path: Path) -> None:
    found, other = on_ranks(2, on_each_rank, tmp_path, seconds=120.0)
    assert found == other
    assert {name: error for name, error in found.items() if error > 1e-12} == {}
    assert len(found) == 8 + 9 + 1
