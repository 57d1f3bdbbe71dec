"""Several optimizers on two ranks: DDP as by hand, FSDP as DDP, the same decisions, and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from test_optimizer_modes import ScheduleFreeSGD
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import trueloop
from bits import same
from on_ranks import on_ranks
from trueloop import ranks, schedules

WIDTH, UPDATES = 7, 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 13), nn.Linear(13, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))  # type: ignore[no-any-return]


class Net(nn.Module):
    """Odd sizes, so that shards are uneven."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)  # type: ignore[no-any-return]


def optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
    hidden = [p for name, p in model.named_parameters() if "blocks" in name and p.ndim == 2]
    rest = [p for p in model.parameters() if all(p is not h for h in hidden)]
    # Not fused, which rounds an entry by its place in the vectors of the processor.
    return [torch.optim.Muon(hidden, lr=0.02), torch.optim.AdamW(rest, lr=3e-3, foreach=True)]


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8 * UPDATES, WIDTH, generator=generator)
    return x, torch.randint(0, 3, (8 * UPDATES,), generator=generator)


def loss_fn(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def step_of(parallel: str | None, **options: Any) -> trueloop.Step:
    model = Net()
    options = {"schedule": schedules.cosine(UPDATES), **options}
    return trueloop.Step(model, optimizers(model), loss_fn, parallel=parallel, **options)


def part(k: int) -> tuple[Tensor, Tensor]:
    """This rank's half of global batch `k`."""
    x, y = data()
    here = slice(8 * k + ranks.rank(), 8 * (k + 1), ranks.world_size())
    return x[here], y[here]


def whole(step: trueloop.Step) -> list[Any]:
    """Weights, and what the optimizers keep of them, as arrays: a tensor's memory ends with the
    rank."""
    state = step.state_dict()
    kept = state["optimizer"]["state"]
    slots = [slot for key in sorted(kept) for slot in kept[key].values()]
    return [
        (v.full_tensor() if hasattr(v, "full_tensor") else v).detach().numpy().copy()
        for v in (*state["model"].values(), *slots)
    ]


def _by_hand() -> list[Any]:
    model = Net()
    both = optimizers(model)
    drivers = [torch.optim.lr_scheduler.CosineAnnealingLR(each, UPDATES) for each in both]
    replica = DistributedDataParallel(model)
    for k in range(UPDATES):
        replica.zero_grad()
        loss_fn(replica, part(k)).backward()
        nn.utils.clip_grad_norm_(replica.parameters(), 0.5)
        for each in both:
            each.step()
        for driver in drivers:
            driver.step()
    return [p.detach().numpy().copy() for p in model.parameters()]


def _trained(parallel: str | None, **options: Any) -> list[Any]:
    step = step_of(parallel, **options)
    for k in range(UPDATES):
        step(part(k))
    return whole(step)


def _poisoned(parallel: str) -> tuple[bool, int, bool]:
    """Rank 1's part of the second batch is not finite: whether it was skipped, and nothing else."""
    step = step_of(parallel, nonfinite="skip")
    step(part(0))
    before = whole(step)
    x, y = part(1)
    record = step((x * float("nan") if ranks.rank() == 1 else x, y))
    return record.skipped, step.skipped, same(before, whole(step))


def _both_ways() -> Any:
    by_hand, clipped = _by_hand(), _trained("ddp", clip_norm=0.5)
    # The norm of shards is summed in a different order, so without a clip.
    ddp, fsdp = _trained("ddp"), _trained("fsdp")
    half = _trained("ddp", precision="fp16"), _trained("fsdp", precision="fp16")
    return (
        same(by_hand, clipped[: len(by_hand)]),
        same(ddp, fsdp),
        same(*half),
        _poisoned("ddp"),
        _poisoned("fsdp"),
    )


def test_ddp_is_the_loop_by_hand_and_fsdp_is_ddp_bit_by_bit() -> None:
    for by_hand, sharded, half, skipped, skipped_sharded in on_ranks(2, _both_ways):
        assert by_hand, "ddp is not the loop by hand"
        assert sharded, "fsdp is not ddp"
        assert half, "fsdp is not ddp in fp16"
        assert skipped == (True, 1, True)
        assert skipped_sharded == (True, 1, True)


def _feed() -> trueloop.Feed:
    return trueloop.Feed(data(), 8)


def _train(folder: str, parallel: str | None, updates: int) -> list[Any]:
    """Go on in `folder` up to `updates`, saved after each."""
    step = step_of(parallel)
    feed = _feed()
    kept = trueloop.Checkpoints(folder, every="1 updates", keep_best=None)
    kept.resume(step, feed)
    batches = feed.epoch(0, start=step.batch)
    for batch in batches:
        step(batch)
        kept.keep(step, feed)
        if step.updates == updates:
            break
    kept.wait()
    return whole(step)


def _sharded_and_back(folder: str) -> bool:
    straight = _train(f"{folder}/straight", "fsdp", UPDATES)
    _train(f"{folder}/stopped", "fsdp", 2)
    _train(f"{folder}/stopped", "ddp", 4)
    return same(straight, _train(f"{folder}/stopped", "fsdp", UPDATES))


def test_a_run_goes_on_exactly_under_fsdp_ddp_and_in_one_process(tmp_path: Path) -> None:
    assert on_ranks(2, _sharded_and_back, str(tmp_path)) == [True, True]
    step, feed = step_of(None), _feed()
    # What both ranks have saved together, taken up by one process.
    assert trueloop.Checkpoints(tmp_path / "stopped", keep_best=None).resume(step, feed)
    assert step.updates == UPDATES
    assert [len(each.state) for each in step.optimizers] == [4, 6]
    assert all("momentum_buffer" in slots for slots in step.optimizers[0].state.values())


def _schedule_free(folder: str, parallel: str | None, *updates: int) -> list[Any]:
    """A run in as many parts, evaluated and saved on the way: weights of both modes, and z."""
    for until in updates:
        model = Net()
        step = trueloop.Step(
            model, ScheduleFreeSGD(model.parameters(), lr=0.5), loss_fn, parallel=parallel
        )
        kept = trueloop.Checkpoints(folder, every="1 updates")
        resumed = trueloop.load_checkpoint(folder) if until != updates[0] else None
        trueloop.fit(step, _feed(), _feed(), updates=until, checkpoints=kept, resume_from=resumed)
    state = step.state_dict()
    slots = [entry["z"] for entry in state["optimizer"]["state"].values()]
    found = [*state["model"].values(), *state["train_weights"].values(), *slots]
    return [
        (v.full_tensor() if hasattr(v, "full_tensor") else v).detach().numpy().copy() for v in found
    ]


def _schedule_free_both_ways(folder: str) -> tuple[bool, bool]:
    straight = _schedule_free(f"{folder}/straight", "fsdp", 4)
    stopped = _schedule_free(f"{folder}/stopped", "fsdp", 2, 4)
    return same(straight, stopped), same(straight, _schedule_free(f"{folder}/ddp", "ddp", 1, 4))


def test_weights_of_two_modes_are_sharded_saved_and_taken_up(tmp_path: Path) -> None:
    assert on_ranks(2, _schedule_free_both_ways, str(tmp_path)) == [(True, True)] * 2
    best = trueloop.load_checkpoint(tmp_path / "straight", which="best", map_location="cpu")
    assert set(best["step"]["train_weights"]) == set(best["model"])
