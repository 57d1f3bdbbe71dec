"""Checkpoints that several ranks write together, and their way to other numbers of ranks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

import trueloop
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.checkpoint import (
    Checkpoints,
    capture,
    has_checkpoint,
    load_checkpoint,
    place_of,
    store,
)
from trueloop.checkpoint.sharded import ShardedState
from trueloop.errors import RunError

WIDTH = 40


class Net(nn.Module):
    """With a buffer, a tied weight, uneven rows and a weight of fewer rows than ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(7, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH + 1)
        self.again = nn.Linear(WIDTH, WIDTH + 1)
        self.again.weight = self.second.weight
        self.last = nn.Linear(WIDTH + 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x)).tanh()
        return self.last((self.second(x) + self.again(x)).tanh())


def make(strategy: Any) -> tuple[trueloop.Step, trueloop.Feed]:
    torch.manual_seed(0)
    model = Net().double()
    step = trueloop.Step(
        model,
        torch.optim.AdamW(model.parameters(), 1e-2),
        trueloop.supervised(nn.MSELoss()),
        parallel=strategy,
    )
    x, y = (torch.rand(32, n, generator=torch.Generator().manual_seed(n)) for n in (7, 1))
    return step, trueloop.Feed((x, y), 8)


def trained(step: trueloop.Step, updates: int) -> list[float]:
    """The loss of each update, every rank on the same samples: batch norm sees the same."""
    losses = []
    for _ in range(updates):
        x, y = (torch.rand(16, n, generator=torch.Generator().manual_seed(n)) for n in (7, 1))
        losses.append(step((x.double() + step.updates, y.double())).loss.item())
    return losses


def save_and_train(folder: Path, strategy: Any, asynchronous: bool) -> list[float]:
    step, feed = make(strategy)
    torch.manual_seed(100 + ranks.rank())
    trained(step, 3)
    saved = Checkpoints(folder, asynchronous=asynchronous)
    saved.save(capture(step, feed), place_of(step))
    losses = trained(step, 3)
    saved.wait()
    return [*losses, float(torch.rand(()))]


def go_on(folder: Path, strategy: Any) -> list[float]:
    step, feed = make(strategy)
    saved = Checkpoints(folder)
    read: list[int] = []
    fill = ShardedState.fill

    def counted(self: ShardedState, wanted: Any) -> None:
        boxes = (shard.tensor for shard in wanted.values())
        read.append(sum(box.numel() for box in boxes if box.is_floating_point()))
        fill(self, wanted)

    ShardedState.fill = counted  # type: ignore[method-assign]
    assert saved.resume(step, feed)
    assert step.updates == 3
    whole_state = 3 * sum(p.numel() for p in step.model.parameters())
    if strategy == "fsdp" and ranks.is_distributed():
        # A row more of each tensor than an even share.
        assert sum(read) < 1.2 * whole_state / ranks.world_size() + 500
    losses = trained(step, 3)
    saved.wait()
    return [*losses, float(torch.rand(()))]


HSDP = trueloop.FSDPOptions(replicate=2)


def test_what_replicated_shards_hold_is_written_once(tmp_path: Path) -> None:
    saved, *_ = on_ranks(4, save_and_train, tmp_path, HSDP, True)
    (name,) = store.names_in(tmp_path)
    files = store.manifest(tmp_path / name)["files"]
    sizes = [said["size"] for file, said in files.items() if file.endswith(".distcp")]
    values = 3 * 8 * sum(p.numel() for p in Net().parameters())
    assert len(sizes) == 4
    assert values < sum(sizes) < values + 60 * 2000 + 3 * 20_000, "and frames, and generators"
    for count, strategy in [(1, None), (4, HSDP)]:
        for losses in on_ranks(count, go_on, tmp_path, strategy):
            assert losses[:3] == pytest.approx(saved[:3], rel=0, abs=1e-12)


def test_what_four_fsdp_ranks_have_saved_goes_on_anywhere(tmp_path: Path) -> None:
    saved = on_ranks(4, save_and_train, tmp_path, "fsdp", True)
    draws = [rank.pop() for rank in saved]
    for count, strategy in [(4, "fsdp"), (1, None), (2, "fsdp"), (2, "ddp")]:
        found = on_ranks(count, go_on, tmp_path, strategy)
        for rank, losses in enumerate(found):
            draw = losses.pop()
            assert torch.allclose(torch.tensor(losses), torch.tensor(saved[0]), rtol=0, atol=1e-12)
            assert (draw == draws[rank]) == (count == 4 or rank == 0)
        assert len(set(draws)) == 4


@pytest.mark.parametrize(("count", "strategy"), [(1, None), (2, "ddp")])
def test_whole_states_are_taken_up_in_shards(
    tmp_path: Path, count: int, strategy: str | None
) -> None:
    """Those of one process (which writes no shards), and of DDP."""
    saved, *_ = on_ranks(count, save_and_train, tmp_path, strategy, False)
    (name,) = store.names_in(tmp_path)
    assert store.manifest(tmp_path / name)["format"] == (2 if count == 1 else 3)
    for ranks_now, other in [(2, "fsdp"), (1, None)]:
        for losses in on_ranks(ranks_now, go_on, tmp_path, other):
            assert losses[:3] == pytest.approx(saved[:3], rel=0, abs=1e-12)


def save_wide(folder: Path) -> None:
    """One large tensor, in which every row has a number of its own, and some small ones."""
    step, feed = make("ddp")
    state = capture(step, feed)
    rows = torch.arange(1001.0).repeat_interleave(5000).view(1001, 5000)
    state["ranks"]["parameters"]["wide"] = "wide"
    state["model"] = {**state["model"], "wide": rows}
    saved = Checkpoints(folder)
    saved.save(state, (0, 0, 1))
    saved.wait()


def test_ddp_ranks_divide_the_writing(tmp_path: Path) -> None:
    on_ranks(4, save_wide, tmp_path)
    (name,) = store.names_in(tmp_path)
    files = store.manifest(tmp_path / name)["files"]
    sizes = [said["size"] for file, said in files.items() if file.endswith(".distcp")]
    assert len(sizes) == 4
    assert max(sizes) < 1.05 * min(sizes)
    assert sum(sizes) < 1.01 * 4 * 1001 * 5000, "of each value there is one copy"
    wide = load_checkpoint(tmp_path)["model"]["wide"]
    assert torch.equal(wide, torch.arange(1001.0)[:, None].expand(1001, 5000))


class HaltError(Exception):
    """The run is cut off here."""


def fit_on(folder: Path, strategy: str | None, stop: int | None = None) -> Any:
    """A fit with early stopping and state of its own: the losses, that state, and the weights."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 64), nn.Tanh(), nn.Linear(64, 65), nn.Linear(65, 1)).double()
    step = trueloop.Step(
        model,
        trueloop.optimizers.adamw(model, 1e-2),
        trueloop.supervised(nn.MSELoss()),
        schedule=trueloop.schedules.warmup_cosine(),
        parallel=strategy,
    )
    x, y = (torch.rand(26, n, generator=torch.Generator().manual_seed(n)) for n in (7, 1))
    feed = trueloop.Feed((x.double(), y.double()), 8, shuffle=True)
    own = {"updates": 0, "rank": ranks.rank()}
    losses = {}

    def sink(record: Any) -> None:
        if isinstance(record, trueloop.StepRecord):
            losses[record.update] = record.loss.item()
            own["updates"] += 1
            if record.update == stop:
                raise HaltError

    saved = Checkpoints(folder, every="3 updates", state={"own": own})
    state = load_checkpoint(folder) if has_checkpoint(folder) else None
    early = trueloop.EarlyStopping(patience=9)
    try:
        trueloop.fit(
            step, feed, feed, epochs=4, checkpoints=saved, sinks=[sink], early_stop=early,
            resume_from=state,
        )  # fmt: skip
    except HaltError:
        return None
    weights = torch.cat([p.detach().flatten() for p in whole(model.parameters())])
    return losses, own, weights.tolist()


def whole(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Gathered where they are in shards."""
    return [t.full_tensor() if isinstance(t, DTensor) else t for t in tensors]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_a_fit_that_is_cut_off_goes_on_on_any_number_of_ranks(
    tmp_path: Path, strategy: str
) -> None:
    ((losses, _, weights),) = on_ranks(1, fit_on, tmp_path / "whole", None)
    assert len(losses) == 16
    on_ranks(2, fit_on, tmp_path / "cut", strategy, 11)
    for count, other in [(1, None), (2, strategy)]:
        folder = tmp_path / f"{count}"
        shutil.copytree(tmp_path / "cut", folder)
        for rank, (again, counts, found) in enumerate(on_ranks(count, fit_on, folder, other)):
            assert list(again) == list(range(10, 17))
            assert again == pytest.approx({n: losses[n] for n in again}, rel=0, abs=1e-12)
            assert found == pytest.approx(weights, rel=0, abs=1e-11)
            assert counts == {"updates": 16, "rank": rank if count == 2 else 0}


def export(folder: Path) -> None:
    """Weights of a sharded model, into a file and back, and its checkpoint."""
    step, feed = make("fsdp")
    trained(step, 2)
    saved = Checkpoints(folder / "saved")
    saved.save(capture(step, feed), place_of(step))
    saved.wait()
    largest = []
    full = DTensor.full_tensor
    DTensor.full_tensor = lambda self: largest.append(self.numel()) or full(self)  # type: ignore
    trueloop.save_weights(step.model, folder / "live.safetensors")
    assert len(largest) == 9, "one after another, the tied weight once"
    before = [p.to_local().clone() for p in step.model.parameters()]
    trained(step, 1)
    assert trueloop.load_weights(step.model, folder / "live.safetensors").is_complete
    after = [p.to_local() for p in step.model.parameters()]
    assert all(map(torch.equal, before, after))
    if ranks.is_main():
        (folder / "file").touch()
    with pytest.raises(RunError, match="cannot write"):
        trueloop.save_weights(step.model, folder / "file" / "live.safetensors")


def test_sharded_weights_are_exported_one_tensor_at_a_time(tmp_path: Path) -> None:
    on_ranks(4, export, tmp_path)
    state = load_checkpoint(tmp_path / "saved")["model"]
    trueloop.save_weights(state, tmp_path / "whole.safetensors")
    trueloop.save_weights(tmp_path / "saved", tmp_path / "saved.safetensors")
    live = (tmp_path / "live.safetensors").read_bytes()
    assert live == (tmp_path / "whole.safetensors").read_bytes()
    assert live == (tmp_path / "saved.safetensors").read_bytes()
    model = Net().double()
    assert trueloop.load_weights(model, tmp_path / "live.safetensors").is_complete
    assert model.again.weight is model.second.weight
    assert torch.equal(model.first.weight, state["first.weight"])


def loop_of_ones_own(folder: Path, strategy: str | None, stop: int | None = None) -> Any:
    """With `keep`, by the clock, an average of the weights and a generator of the rank's own."""
    step, feed = make(strategy)
    x, y = (torch.rand(22, n, generator=torch.Generator().manual_seed(n)) for n in (7, 1))
    feed = trueloop.Feed((x.double(), y.double()), 8)
    average = {name: p.detach().clone() for name, p in step.model.named_parameters()}
    draws = torch.Generator().manual_seed(ranks.rank())
    own = {"average": average, "draws": draws, "drawn": []}
    saved = Checkpoints(folder, every="0.0001 minutes", keep_last=99, state=own)
    resumed = saved.resume(step, feed)
    loss_fn = trueloop.supervised(nn.MSELoss())
    for epoch in range(step.epoch, 4):
        batches = feed.epoch(epoch, start=step.batch)
        for batch in batches:
            step(batch, last=batches.last, stand_in=batches.stand_in)
            for name, p in step.model.named_parameters():
                average[name].lerp_(p.detach(), 0.1)
            own["drawn"].append(float(torch.rand((), generator=draws)))
            time.sleep(0.002 * ranks.rank())
            saved.keep(step, feed)
            if step.updates == stop:
                saved.wait()
                return store.names_in(folder)
        scores = trueloop.evaluate(step.model, feed, loss_fn)
        step.end_epoch(scores)
        saved.keep(step, feed, scores)
    saved.wait()
    whole_average = [
        getattr(p, "full_tensor", lambda p=p: p)().sum().item() for p in average.values()
    ]
    return resumed, whole_average, own["drawn"]


def load_both_ways(folder: Path) -> tuple[str, Any]:
    """Where a large weight is, and all of them with a `map_location`."""
    state, alone = load_checkpoint(folder), load_checkpoint(folder, map_location="cpu")
    return str(state["model"]["second.weight"].device), sums(alone["model"])


def sums(weights: dict[str, Tensor]) -> dict[str, float]:
    """Of each weight; the running statistics are each rank's own."""
    return {n: float(t.sum()) for n, t in weights.items() if not n.startswith("norm.running")}


@pytest.mark.parametrize(("count", "strategy"), [(2, "fsdp"), (2, "ddp")])
def test_a_loop_of_ones_own_goes_on_with_what_each_rank_has(
    tmp_path: Path, count: int, strategy: str
) -> None:
    undisturbed = on_ranks(count, loop_of_ones_own, tmp_path / "whole", strategy)
    names, others = on_ranks(count, loop_of_ones_own, tmp_path / "cut", strategy, 8)
    assert names == others
    assert len(names) > 3, "by the clock, and the best epochs"
    assert load_checkpoint(tmp_path / "cut", "best")["scores"]["loss"] > 0
    for place, found in on_ranks(count, load_both_ways, tmp_path / "cut"):
        assert place == "meta", "on the disk until a resume reads this rank's part"
        assert found == sums(load_checkpoint(tmp_path / "cut")["model"])
    again = on_ranks(count, loop_of_ones_own, tmp_path / "cut", strategy)
    for (_, average, drawn), (resumed, average_again, drawn_again) in zip(
        undisturbed, again, strict=True
    ):
        assert resumed
        assert average_again == pytest.approx(average, rel=0, abs=1e-11)
        assert drawn_again == drawn
    assert undisturbed[0][2] != undisturbed[1][2]
