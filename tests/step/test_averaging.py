"""EMA and SWA of the weights: bitwise those of a loop by hand with torch's `AveragedModel`; what is
evaluated, kept, saved and given away is the average, and the training is as if there were none."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

import trueloop
from bits import same
from on_ranks import on_ranks
from trueloop import EMA, SWA, Checkpoints, Feed, Step, load_checkpoint
from trueloop.errors import ConfigError, RunError

CRITERION = trueloop.supervised(nn.CrossEntropyLoss())


class Net(nn.Module):
    """With batch norm, tied weights, a frozen part and a mask of infinities."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.again = nn.Linear(4, 4)
        self.again.weight = self.first.weight
        self.last = nn.Linear(4, 3)
        self.last.bias.requires_grad_(False)
        self.register_buffer("mask", torch.tensor([0.0, 0.0, float("-inf"), 0.0]))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.again(torch.tanh(self.norm(self.first(x))))
        out: Tensor = self.last(torch.softmax(hidden + self.mask, 1))
        return out


def make_model() -> Net:
    torch.manual_seed(0)
    return Net()


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(44, 4, generator=generator)
    return x, (x @ torch.randn(4, 3, generator=generator)).argmax(1)


def feeds() -> tuple[Feed, Feed]:
    return Feed(data(), 8, shuffle=True, drop_last=True), Feed(data(), 16)


def step_of(average: Any, **options: Any) -> Step:
    model = make_model()
    return Step(model, optimizer_of(model), CRITERION, average=average, **options)


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)


def by_hand(
    updates: int, averaging: Any, *, use_buffers: bool = False, due: Any = lambda update: True
) -> tuple[nn.Module, AveragedModel]:
    """The model and its average after so many updates of a loop without trueloop."""
    model, train = make_model(), feeds()[0]
    optimizer = optimizer_of(model)
    averaged = AveragedModel(model, multi_avg_fn=averaging, use_buffers=use_buffers)
    batches = [batch for epoch in range(9) for batch in train.epoch(epoch)]
    for update, (x, y) in enumerate(batches[:updates], start=1):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if due(update):
            averaged.update_parameters(model)
    return model, averaged


def without_constants(module: nn.Module) -> dict[str, Tensor]:
    """Torch's average makes NaN of the mask, and of the count of batches a fraction cut off."""
    state = module.state_dict()
    return {name: state[name] for name in state if name not in ("mask", "norm.num_batches_tracked")}


@pytest.mark.parametrize("use_buffers", [True, False])
def test_ema_is_that_of_a_loop_by_hand(use_buffers: bool) -> None:
    step, (train, val) = step_of(EMA(0.9, use_buffers=use_buffers)), feeds()
    history = trueloop.fit(step, train, val, epochs=3)
    for epoch, record in enumerate(history.records, start=1):
        model, averaged = by_hand(5 * epoch, get_ema_multi_avg_fn(0.9), use_buffers=use_buffers)
        averaged.module.mask.copy_(model.mask)  # type: ignore[arg-type, operator, union-attr]
        expected = trueloop.evaluate(averaged.module, val, CRITERION)
        assert record.scores["val_loss"] == expected.scores["loss"]
    assert same(without_constants(step.model), without_constants(averaged.module))
    assert torch.equal(step.model.mask, model.mask), "a mask of infinities stays"
    assert step.model.norm.num_batches_tracked == 15
    step._modes.train()
    assert same(step.model, model), "the training is that without an average"


def test_the_decay_warms_up_as_tensorflow_does_it() -> None:
    step, (train, _) = step_of(EMA(0.8, warmup=True)), feeds()
    seen = []
    for epoch in range(8):
        for batch in train.epoch(epoch):
            step(batch)
            seen.append(step.model.last.weight.detach().double().clone())
    expected = seen[0]
    for n, weight in enumerate(seen[1:], start=1):
        decay = min(0.8, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * weight
    with step.evaluating():
        found = step.model.last.weight.double()
        assert torch.allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert EMA(0.8, warmup=True).decay_at(34) < 0.8 == EMA(0.8, warmup=True).decay_at(35)


def test_only_updates_that_are_applied_are_averaged() -> None:
    """A window is one update; one whose gradient is not finite is none."""
    options: dict[str, Any] = {"accumulate": 2, "nonfinite": "skip"}
    step, (train, _) = step_of(EMA(0.7), **options), feeds()
    plain = step_of(None, **options)
    averaged = AveragedModel(plain.model, multi_avg_fn=get_ema_multi_avg_fn(0.7), use_buffers=True)
    for epoch in range(2):
        for k, (x, y) in enumerate(train.epoch(epoch)):
            x = x * float("nan") if k == 2 and epoch else x
            step((x, y))
            if plain((x, y)).updated:
                averaged.update_parameters(plain.model)
    assert (step.updates, step.skipped) == (4, 1)
    assert averaged.n_averaged == 4
    step.eval_weights()
    parameters = zip(step.model.parameters(), averaged.module.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in parameters)


def swa_by_hand(updates: int, start: int, every: int) -> AveragedModel:
    model, averaged = by_hand(
        updates, None, due=lambda update: update >= start and update % every == 0
    )
    if averaged.n_averaged:
        train = feeds()[0]
        update_bn(train.epoch((updates - 1) // 5), averaged)
        return averaged
    averaged.module.load_state_dict(model.state_dict())
    return averaged


def test_swa_is_that_of_a_loop_by_hand() -> None:
    step, (train, val) = step_of(SWA(start="50%")), feeds()
    history = trueloop.fit(step, train, val, epochs=4)
    for epoch, record in enumerate(history.records, start=1):
        averaged = swa_by_hand(5 * epoch, start=10, every=5)
        expected = trueloop.evaluate(averaged.module, val, CRITERION)
        assert record.scores["val_loss"] == expected.scores["loss"]
    assert same(step.model, averaged.module)
    step._modes.train()
    assert same(step.model, by_hand(20, None)[0]), "the training is that without an average"


def test_swa_is_evaluated_within_an_epoch_too() -> None:
    step, (train, val) = step_of(SWA(start="4 updates", every=3)), feeds()
    history = trueloop.fit(step, train, val, updates=14, eval_every="7 updates")
    for updates, record in zip((7, 14), history.records, strict=True):
        averaged = swa_by_hand(updates, start=4, every=3)
        expected = trueloop.evaluate(averaged.module, val, CRITERION)
        assert record.scores["val_loss"] == expected.scores["loss"]
    step._modes.train()
    assert same(step.model, by_hand(14, None)[0])


@pytest.mark.parametrize("average", [EMA(0.9, warmup=True), SWA(start="20%", every="3 updates")])
@pytest.mark.parametrize("stop", [1, 5, 8])
def test_a_run_goes_on_exactly(average: Any, stop: int, tmp_path: Path) -> None:
    """Stopped before the first average, at an epoch's end, and within an epoch and a window."""

    def fit(step: Step, **options: Any) -> None:
        train, val = feeds()
        kept = Checkpoints(tmp_path / options.pop("folder"), every="1 updates")
        early = trueloop.EarlyStopping(patience=9)
        trueloop.fit(step, train, val, epochs=3, early_stop=early, checkpoints=kept, **options)

    def stops(record: Any) -> None:
        if isinstance(record, trueloop.StepRecord) and 5 * record.epoch + record.batch == stop:
            raise KeyboardInterrupt

    whole, first, second = (step_of(average, accumulate=2) for _ in range(3))
    fit(whole, folder="whole")
    with pytest.raises(KeyboardInterrupt):
        fit(first, folder="cut", sinks=[stops])
    try:
        state = load_checkpoint(tmp_path / "cut")
    except RunError:
        assert stop == 1  # nothing is saved yet
        return
    fit(second, folder="cut", resume_from=state)
    assert same(whole.model, second.model)
    assert same(whole.state_dict(), second.state_dict())
    found, expected = (
        load_checkpoint(tmp_path / folder, which="best") for folder in ("cut", "whole")
    )
    assert same(found["model"], expected["model"])
    assert same(found["step"]["train_weights"], expected["step"]["train_weights"])


def test_a_state_has_both_weights_and_a_refused_one_changes_nothing() -> None:
    step, (train, _) = step_of(EMA(0.9), accumulate=2), feeds()
    batches = [*train.epoch(0), *train.epoch(1)]
    for batch in batches[:5]:
        step(batch)
    state = copy.deepcopy(step.state_dict())
    with step.evaluating():
        assert same(state["model"], step.model.state_dict())
        assert same(step.state_dict()["model"], state["model"])
        assert same(state["model"], step.model.state_dict()), "a state leaves the mode as it is"
    assert not same(state["model"], step.model.state_dict())
    other = step_of(EMA(0.9), accumulate=2)
    other.load_state_dict(state)
    for batch in batches[5:]:
        assert same(step(batch).loss, other(batch).loss)
    assert same(step.state_dict(), other.state_dict())
    before = copy.deepcopy(other.state_dict())
    state["train_weights"]["norm.running_var"] = torch.zeros(2)
    with pytest.raises(RunError, match=r"train weights of 'norm.running_var'"):
        other.load_state_dict(state)
    state = copy.deepcopy(before)
    state["optimizer"]["state"][0]["exp_avg"] = torch.zeros(1)
    with pytest.raises(RunError):
        other.load_state_dict(state)
    assert same(before, other.state_dict())
    for average in (None, EMA(0.8), SWA()):
        with pytest.raises(RunError, match=r"average=EMA\(decay=0.9.*build the step as it was"):
            step_of(average, accumulate=2).load_state_dict(before)


def test_weights_that_are_loaded_into_the_average_are_trained_on() -> None:
    step, (train, _) = step_of(EMA(0.9)), feeds()
    for batch in train.epoch(0):
        step(batch)
    step.eval_weights()
    loaded = make_model().state_dict()
    step.model.load_state_dict(loaded)
    step._modes.train()
    assert same(step.model.state_dict(), loaded)


def test_dropout_is_off_where_statistics_are_computed_and_frozen_ones_stay() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.9), nn.BatchNorm1d(4), nn.Linear(4, 3))
    model[2].eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = Step(model, optimizer, CRITERION, average=SWA("1 updates", every=1))
    train = feeds()[0]
    for batch in train.epoch(0):
        step(batch)
    assert step.needs_update_bn
    generator, frozen = torch.get_rng_state(), copy.deepcopy(model[2].state_dict())
    step.update_bn(train.epoch(1))
    assert not step.needs_update_bn
    assert torch.equal(generator, torch.get_rng_state())
    assert [module.training for module in model] == [True, True, False, True]
    assert model[0].momentum == 0.1
    x = torch.stack([x for x, _ in train.epoch(1)]).double()
    with step.evaluating():
        assert torch.allclose(model[0].running_mean.double(), x.mean((0, 1)), atol=1e-6)
        assert torch.allclose(model[0].running_var.double(), x.var(1).mean(0), atol=1e-6)
        assert same(model[2].running_mean, frozen["running_mean"])


def test_a_run_gives_away_the_average(tmp_path: Path) -> None:
    step, (train, val) = step_of(EMA(0.9)), feeds()
    early = trueloop.EarlyStopping(patience=9)
    trueloop.fit(step, train, val, epochs=3, early_stop=early, checkpoints=Checkpoints(tmp_path))
    _, averaged = by_hand(15, get_ema_multi_avg_fn(0.9), use_buffers=True)
    other = make_model()
    other.load_state_dict(load_checkpoint(tmp_path, which="best")["model"])
    assert same(without_constants(other), without_constants(averaged.module))
    assert same(without_constants(step.model), without_constants(averaged.module))
    assert early.weights is not None
    assert same(dict(early.weights), dict(step.model.state_dict()))


def on_each_rank(folder: Path) -> Any:
    """An EMA beside one by hand; SWA's statistics, of a sharded model too."""
    train, val = feeds()
    step = step_of(EMA(0.9), parallel="ddp")
    averaged = AveragedModel(step.model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    for batch in train.epoch(0):
        step(batch)
        averaged.update_parameters(step.model)
    with step.evaluating():
        pairs = zip(step.model.parameters(), averaged.module.parameters(), strict=True)
        assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
        loss = trueloop.evaluate(step.model, val, CRITERION).scores["loss"]

    whole, cut, resumed = (step_of(SWA("20%", every=3), parallel="ddp") for _ in range(3))
    trueloop.fit(whole, train, val, epochs=3)
    trueloop.fit(cut, train, val, epochs=2, checkpoints=Checkpoints(folder))
    state = load_checkpoint(folder)
    kept = Checkpoints(folder)
    trueloop.fit(resumed, train, val, epochs=3, checkpoints=kept, resume_from=state)
    sharded = step_of(SWA("20%", every=3), parallel="fsdp")
    trueloop.fit(sharded, train, val, epochs=3)
    states = [dict(one.model.state_dict()) for one in (whole, resumed, sharded)]
    states[2] = {
        n: t.full_tensor() if "DTensor" in repr(type(t)) else t for n, t in states[2].items()
    }
    return loss, *({n: t.numpy() for n, t in state.items()} for state in states)


def test_ranks_have_one_average_and_statistics_of_all_their_batches(tmp_path: Path) -> None:
    (loss, one, resumed, sharded), (other_loss, other, *_) = on_ranks(2, on_each_rank, tmp_path)
    assert loss == other_loss
    assert same(one, other)
    assert same(one, resumed)
    for name, value in one.items():
        assert sharded[name] == pytest.approx(value, abs=1e-5), name
    assert one["norm.num_batches_tracked"] == 5
    # Statistics of the weights that the ranks have, from all batches of the last epoch.
    model = make_model()
    found = {name: torch.as_tensor(value) for name, value in one.items()}
    model.load_state_dict(found)
    update_bn(feeds()[0].epoch(2), model)
    assert torch.allclose(found["norm.running_var"], model.norm.running_var, rtol=1e-5)
    assert torch.allclose(found["norm.running_mean"], model.norm.running_mean, atol=1e-6)


def stream() -> Any:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data()), batch_size=8)


class Uncopied(nn.Linear):
    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("no copies")


def test_a_model_that_cannot_be_copied_has_an_average() -> None:
    torch.manual_seed(0)
    model = Uncopied(4, 3)
    step = Step(model, optimizer_of(model), CRITERION, average=EMA(0.5))
    seen = []
    for batch in list(feeds()[0].epoch(0))[:2]:
        step(batch)
        seen.append(model.weight.detach().clone())
    with step.evaluating():
        assert torch.allclose(model.weight, (seen[0] + seen[1]) / 2)
    assert torch.equal(model.weight, seen[1])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: step_of(0.999), r"average=0.999 is not .*write average=EMA\(0.999\)"),
        (lambda: EMA(1.0), "decay=1.0 must be from 0 to below 1: write e.g. decay=0.999"),
        (lambda: SWA(start="3"), "'3': 3 of what"),
        (lambda: SWA(every="5%"), "every='5%' is a share.*write every='1 epoch'"),
        (
            lambda: step_of(SWA())(next(feeds()[0].epoch(0))),
            r"SWA's start is '75%'.*write start='300 updates'",
        ),
        (lambda: step_of(None).update_bn([]), r"averages no weights.*average=SWA\(\)"),
        (lambda: trueloop.fit(step_of(SWA()), stream(), epochs=2), r"write average=EMA\(0.999\)"),
    ],
)
def test_what_cannot_work_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        wrong()
