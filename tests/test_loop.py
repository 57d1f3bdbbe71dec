"""fit is the plain loop with its records handed out; evaluate is exact and leaves no trace."""

from __future__ import annotations

import copy
import gc
import math
import os
import signal
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import trueloop
from bits import same
from trueloop import schedules
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.errors import ConfigError, DataError, RunError
from trueloop.records import EvalRecord, LossOutput, StepRecord

LOSS = trueloop.supervised(nn.CrossEntropyLoss())


def make_data(n: int = 100, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=generator)
    x = torch.eye(3)[y] + 0.7 * torch.randn(n, 3, generator=generator)
    return x, y


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3)
    )


def make_step(model: nn.Module | None = None, **options: Any) -> trueloop.Step:
    model = model or make_model()
    return trueloop.Step(model, trueloop.optimizers.adam(model, 1e-2), LOSS, **options)


def feeds() -> tuple[trueloop.Feed, trueloop.Feed]:
    return (
        trueloop.Feed(make_data(), 16, shuffle=True, seed=3),
        trueloop.Feed(make_data(41, seed=1), 8),
    )


# -- evaluate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 8, 41])
def test_evaluate_counts_every_sample_once(batch: int) -> None:
    model, (x, y) = make_model(), make_data(41, seed=1)
    model(x)  # running statistics
    twin = copy.deepcopy(model).double().eval()
    with torch.no_grad():
        logits = twin(x.double())
        loss = float(nn.functional.cross_entropy(logits, y))
        accuracy = float((logits.argmax(1) == y).double().mean())
    record = trueloop.evaluate(
        model,
        trueloop.Feed((x, y), batch),
        LOSS,
        trueloop.metrics.for_task("multiclass", classes=3),
    )
    assert record.samples == 41
    assert record["loss"] == pytest.approx(loss, rel=1e-6)
    assert record["accuracy"] == pytest.approx(accuracy, abs=1e-9)


def test_evaluate_weighs_class_weights_and_ignored_targets_exactly() -> None:
    model, (x, y) = make_model().eval(), make_data(41, seed=1)
    y[::3] = -100
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.1, 1.0, 5.0]))
    with torch.no_grad():
        whole = float(criterion(model(x), y))
    record = trueloop.evaluate(model, trueloop.Feed((x, y), 6), trueloop.supervised(criterion))
    assert record["loss"] == pytest.approx(whole, rel=1e-6)


def test_evaluate_restores_each_modules_own_mode_even_after_an_error() -> None:
    model = make_model().train()
    model[1].eval()
    modes = [m.training for m in model.modules()]
    trueloop.evaluate(model, feeds()[1], LOSS)
    assert [m.training for m in model.modules()] == modes

    def fails(model: nn.Module, batch: Any) -> Tensor:
        assert not any(m.training for m in model.modules())
        assert torch.is_inference_mode_enabled()
        raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        trueloop.evaluate(model, feeds()[1], fails)
    assert [m.training for m in model.modules()] == modes
    assert not torch.is_inference_mode_enabled()


def test_evaluate_leaves_weights_statistics_and_random_state_alone() -> None:
    model = make_model()
    model(make_data()[0])
    before, state = copy.deepcopy(model), torch.get_rng_state()
    trueloop.evaluate(model, feeds()[1], LOSS)
    assert same(model, before)
    assert torch.equal(state, torch.get_rng_state())


def test_evaluate_collects_in_the_feeds_order_and_takes_a_loader() -> None:
    x, y = make_data(41, seed=1)
    model = make_model().eval()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 9)
    record = trueloop.evaluate(model, loader, LOSS, collect=True)
    assert torch.equal(record.details["targets"], y)
    with torch.no_grad():
        torch.testing.assert_close(record.details["outputs"], model(x))


def test_evaluate_refuses_what_cannot_be_measured() -> None:
    class Nothing(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(())

    with pytest.raises(DataError, match="no batch"):
        trueloop.evaluate(make_model(), trueloop.Feed(Nothing(), 4), LOSS)
    with pytest.raises(ConfigError, match="metrics need the model's outputs"):
        trueloop.evaluate(
            make_model(),
            feeds()[1],
            lambda m, b: nn.functional.cross_entropy(m(b[0]), b[1]),
            trueloop.metrics.for_task("multiclass", classes=3),
        )


def test_evaluate_collects_dicts_and_keeps_double_precision() -> None:
    x, y = make_data(41, seed=1)

    def loss_fn(model: nn.Module, batch: Any) -> LossOutput:
        outputs = model(batch[0].double())
        parts = {"logits": outputs, "pair": (outputs[:, 0], outputs[:, 1:].bfloat16())}
        return LossOutput(outputs.square().mean(), outputs=parts, targets=batch[1])

    model = make_model().double().eval()
    found = trueloop.evaluate(model, trueloop.Feed((x, y), 9), loss_fn, collect=True).details
    with torch.no_grad():
        whole = model(x.double())
    torch.testing.assert_close(found["outputs"]["logits"], whole)
    torch.testing.assert_close(found["outputs"]["pair"][0], whole[:, 0])
    assert found["outputs"]["pair"][1].dtype == torch.float32
    assert torch.equal(found["targets"], y)


def test_an_empty_batch_weighs_nothing() -> None:
    class Holes(torch.utils.data.IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter([torch.ones(3, 2), torch.ones(0, 2), 2 * torch.ones(1, 2)])

    loader = torch.utils.data.DataLoader(Holes(), batch_size=None)
    record = trueloop.evaluate(nn.Identity(), loader, lambda m, b: m(b).mean())
    assert (record.samples, record["loss"]) == (4, 1.25)


def test_metrics_are_not_measured_in_lower_precision() -> None:
    class Product(trueloop.metrics.MetricSet):
        def reset(self) -> None:
            self.dtypes: set[Any] = set()

        def update(self, outputs: Any, targets: Any) -> None:
            self.dtypes |= {outputs.dtype, (torch.ones(2, 2) @ torch.ones(2, 2)).dtype}

        def compute(self) -> dict[str, float]:
            return {}

    product = Product()
    trueloop.evaluate(make_model(), feeds()[1], LOSS, product, precision="bf16")
    assert product.dtypes == {torch.bfloat16, torch.float32}


# -- fit ---------------------------------------------------------------------------------------


def by_hand(epochs: int) -> tuple[nn.Module, list[float]]:
    """The loop of the README, without trueloop's step, loop or evaluation."""
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * 7)
    train = feeds()[0]
    losses = []
    for epoch in range(epochs):
        model.train()
        for x, y in train.epoch(epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            x, y = make_data(41, seed=1)
            losses.append(float(nn.functional.cross_entropy(model(x), y)))
    return model, losses


def test_fit_is_bitwise_the_loop_by_hand() -> None:
    theirs, losses = by_hand(4)
    step = make_step(schedule=schedules.cosine(), clip_norm=0.5)
    history = trueloop.fit(step, *feeds(), epochs=4)
    assert same(step.model, theirs)
    assert [r["val_loss"] for r in history.records] == pytest.approx(losses, rel=1e-6)
    assert history.status == "finished"
    assert history.updates == 28
    assert history.best == min(r["val_loss"] for r in history.records)


def test_sinks_receive_every_record_in_order() -> None:
    seen: list[Any] = []
    trueloop.fit(make_step(accumulate=3), *feeds(), epochs=2, sinks=[seen.append])
    updates = [r.updated for r in seen if isinstance(r, StepRecord)]
    assert updates == [False, False, True, False, False, True, True] * 2
    evals = [r for r in seen if isinstance(r, EvalRecord)]
    assert [(r.epoch, r.update) for r in evals] == [(0, 3), (1, 6)]
    assert isinstance(seen[7], EvalRecord)
    assert set(evals[0].scores) == {"train_loss", "val_loss"}


def test_train_loss_is_the_mean_over_the_epochs_samples() -> None:
    step = make_step(nn.Linear(3, 3))
    step.optimizer.param_groups[0]["lr"] = 0.0
    train = feeds()[0]
    history = trueloop.fit(step, train, epochs=1)
    x, y = make_data()
    whole = nn.functional.cross_entropy(step.model(x), y).item()
    assert history.records[0]["train_loss"] == pytest.approx(whole, rel=1e-5)
    assert history.monitor == "train_loss"


def test_train_mode_is_set_once_and_frozen_batch_norm_stays_frozen() -> None:
    model = make_model()
    model[1].eval()
    step = make_step(model)
    trueloop.fit(step, *feeds(), epochs=2)
    assert [m.training for m in model] == [True, False, True, True, True]
    assert model[1].num_batches_tracked == 0
    pretrained = make_step(make_model().eval())
    trueloop.fit(pretrained, *feeds(), epochs=1)
    assert all(m.training for m in pretrained.model.modules())


def test_early_stopping_stops_and_brings_the_best_weights_back() -> None:
    step = make_step()
    stop = trueloop.EarlyStopping("val_loss", patience=3)
    kept: dict[int, nn.Module] = {}

    def keep(record: Any) -> None:
        if isinstance(record, EvalRecord):
            assert record.epoch is not None
            kept[record.epoch] = copy.deepcopy(step.model)

    history = trueloop.fit(step, *feeds(), epochs=200, early_stop=stop, sinks=[keep])
    assert history.status == "stopped early"
    assert history.best_epoch is not None
    assert len(history.records) == history.best_epoch + 1 + 3 < 200
    assert same(step.model, kept[history.best_epoch])


def test_early_stopping_knows_direction_patience_and_nan() -> None:
    model = nn.Linear(1, 1)

    def run(values: list[float], **options: Any) -> list[bool]:
        stop = trueloop.EarlyStopping(**options)
        return [stop(EvalRecord({stop.monitor: v}, 1), model) for v in values]

    assert run([1.0, 0.9, 0.95, 0.92], patience=2) == [False, False, False, True]
    assert run([0.5, 0.6, 0.6, 0.7], monitor="val_accuracy", patience=1) == [
        False, False, True, False,
    ]  # fmt: skip
    assert run([1.0, 0.95, 0.94], patience=2, min_delta=0.1) == [False, False, True]
    assert run([math.nan, math.nan], patience=2) == [False, True]
    with pytest.raises(ConfigError, match="patience"):
        trueloop.EarlyStopping(patience=0)
    with pytest.raises(ConfigError, match="min_delta"):
        trueloop.EarlyStopping(min_delta=-1.0)
    with pytest.raises(ConfigError, match="did you mean 'val_loss'"):
        trueloop.EarlyStopping("val_los", mode="min")(EvalRecord({"val_loss": 1.0}, 1), model)


def test_early_stopping_begins_afresh_with_each_fit() -> None:
    """One object for several models (folds, say) must not carry weights from one to the next."""
    stop = trueloop.EarlyStopping("train_loss", patience=1)
    first, second = make_step(), make_step()
    trueloop.fit(first, feeds()[0], epochs=6, early_stop=stop)
    second.optimizer.param_groups[0]["lr"] = 1e-12
    before = [p.detach().clone() for p in second.model.parameters()]
    trueloop.fit(second, feeds()[0], epochs=2, early_stop=stop)
    for a, b in zip(before, second.model.parameters(), strict=True):
        torch.testing.assert_close(a, b.detach())


def test_the_weights_brought_back_are_those_of_the_best_epoch_reported() -> None:
    """A gain below min_delta is none for the patience, and still the best epoch."""
    losses = iter([1.0, 0.95, 0.97, 0.98])
    model = nn.Linear(2, 1)

    def loss_fn(model: nn.Module, batch: Tensor) -> Tensor:
        return model(batch).sum() * 0.1 + next(losses) - model(batch).sum().item() * 0.1

    step = trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_fn)
    kept: list[Tensor] = []

    def keep(record: Any) -> None:
        if isinstance(record, EvalRecord):
            kept.append(model.bias.detach().clone())

    stop = trueloop.EarlyStopping("train_loss", patience=3, min_delta=0.1)
    train = trueloop.Feed(torch.ones(2, 2), 2)
    history = trueloop.fit(step, train, epochs=9, early_stop=stop, sinks=[keep])
    assert (history.status, history.best_epoch) == ("stopped early", 1)
    assert torch.equal(model.bias, kept[1])


def test_early_stopping_keeps_a_modules_extra_state() -> None:
    class Noted(nn.Linear):
        note = 0

        def get_extra_state(self) -> dict[str, int]:
            return {"note": self.note}

        def set_extra_state(self, state: dict[str, int]) -> None:
            self.note = state["note"]

    step = make_step(nn.Sequential(Noted(3, 3)))
    stop = trueloop.EarlyStopping("train_loss")
    assert trueloop.fit(step, feeds()[0], epochs=1, early_stop=stop).status == "finished"


def test_a_run_that_stopped_early_trains_no_further_when_resumed(tmp_path: Path) -> None:
    def run(**more: Any) -> tuple[trueloop.Step, trueloop.loop.History]:
        step, stop = make_step(), trueloop.EarlyStopping(patience=2, min_delta=10)
        return step, trueloop.fit(step, *feeds(), epochs=9, early_stop=stop, **more)

    first, history = run(checkpoints=Checkpoints(tmp_path))
    again, same_history = run(resume_from=load_checkpoint(tmp_path))
    assert history.status == same_history.status == "stopped early"
    assert first.updates == again.updates
    assert same(first.model, again.model)


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": trueloop.metrics.for_task("multiclass", classes=3)},
        {"early_stop": trueloop.EarlyStopping("val_loss")},
        {"checkpoints": Checkpoints("nowhere")},
    ],
)
def test_what_needs_a_val_is_refused_before_the_first_batch(options: dict[str, Any]) -> None:
    step = make_step()
    with pytest.raises(ConfigError, match="give val="):
        trueloop.fit(step, feeds()[0], epochs=1, **options)
    plateau = make_step(schedule=schedules.plateau())
    with pytest.raises(ConfigError, match="the schedule's is 'val_loss'"):
        trueloop.fit(plateau, feeds()[0], epochs=1)
    assert step.updates == plateau.updates == 0


def test_a_second_fit_that_would_train_nothing_is_refused() -> None:
    step = make_step()
    trueloop.fit(step, *feeds(), epochs=2)
    with pytest.raises(ConfigError, match=r"has done 2 epochs already.*write epochs=4"):
        trueloop.fit(step, *feeds(), epochs=2)
    assert trueloop.fit(step, *feeds(), epochs=4).updates == 28


@pytest.mark.parametrize("epochs", [0, -1, 1.5, True, "3"])
def test_epochs_that_train_nothing(epochs: Any) -> None:
    with pytest.raises(ConfigError, match="epochs="):
        trueloop.fit(make_step(), *feeds(), epochs=epochs)


def test_a_schedule_of_another_length_is_refused_before_the_first_batch() -> None:
    step = make_step(schedule=schedules.cosine(1000))
    with pytest.raises(trueloop.errors.ScheduleError):
        trueloop.fit(step, *feeds(), epochs=2)
    assert step.updates == 0


# -- stopping and going on ---------------------------------------------------------------------


def options() -> dict[str, Any]:
    return {"schedule": schedules.cosine(), "clip_norm": 0.5, "accumulate": 2}


class At:
    """A sink that calls a function when the micro-batch (epoch, batch) has been taken."""

    def __init__(self, epoch: int, batch: int, act: Any) -> None:
        self.where, self.act = (epoch, batch), act

    def __call__(self, record: Any) -> None:
        if isinstance(record, StepRecord) and (record.epoch, record.batch) == self.where:
            self.act()


@pytest.mark.parametrize("where", [(0, 0), (1, 2), (2, 3), (2, 6)])
def test_ctrl_c_ends_after_the_update_and_going_on_is_the_same_run(
    tmp_path: Path, where: tuple[int, int]
) -> None:
    straight = make_step(**options())
    torch.manual_seed(7)
    whole = trueloop.fit(
        straight, *feeds(), epochs=4, early_stop=trueloop.EarlyStopping(patience=9)
    )
    stopped = make_step(**options())
    torch.manual_seed(7)
    interrupt = At(*where, lambda: os.kill(os.getpid(), signal.SIGINT))
    handler = signal.getsignal(signal.SIGINT)
    history = trueloop.fit(
        stopped,
        *feeds(),
        epochs=4,
        sinks=[interrupt],
        checkpoints=Checkpoints(tmp_path),
        early_stop=trueloop.EarlyStopping(patience=9),
    )
    assert history.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is handler
    torch.manual_seed(12345)
    resumed = make_step(**options())
    torch.nn.init.zeros_(resumed.model[0].weight)  # type: ignore[index, arg-type]
    rest = trueloop.fit(
        resumed,
        *feeds(),
        epochs=4,
        resume_from=load_checkpoint(tmp_path),
        early_stop=trueloop.EarlyStopping(patience=9),
    )
    assert same(resumed.model, straight.model)
    assert rest.best_epoch == whole.best_epoch
    assert [r.scores for r in rest.records] == [r.scores for r in whole.records]


@pytest.mark.parametrize("generator", [True, False])
@pytest.mark.parametrize("where", [(1, 2), (2, 6)])
def test_a_dataloaders_order_goes_on_too(
    tmp_path: Path, where: tuple[int, int], generator: bool
) -> None:
    def run(seed: int, **more: Any) -> nn.Module:
        own = torch.Generator().manual_seed(5) if generator else None
        data = torch.utils.data.TensorDataset(*make_data())
        loader = torch.utils.data.DataLoader(data, 16, shuffle=True, generator=own)
        step = make_step(accumulate=2)
        torch.manual_seed(seed)
        trueloop.fit(step, loader, epochs=4, **more)
        return step.model

    straight = run(7)
    interrupt = At(*where, lambda: os.kill(os.getpid(), signal.SIGINT))
    run(7, sinks=[interrupt], checkpoints=Checkpoints(tmp_path, keep_best="train_loss"))
    assert same(run(99, resume_from=load_checkpoint(tmp_path)), straight)


def test_a_resumed_run_takes_the_same_batches_or_none(tmp_path: Path) -> None:
    trueloop.fit(make_step(), *feeds(), epochs=1, checkpoints=Checkpoints(tmp_path))
    other = trueloop.Feed(make_data(), 8, shuffle=True, seed=3)
    with pytest.raises(RunError, match="batch_size=16"):
        trueloop.fit(make_step(), other, epochs=2, resume_from=load_checkpoint(tmp_path))


@pytest.mark.parametrize(("where", "best_epoch"), [((0, 3), 0), ((3, 3), 2)])
def test_an_epoch_cut_short_is_the_best_only_if_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[int, int], best_epoch: int
) -> None:
    """The run may go on inside it: the best checkpoint, once there is one, is of a whole epoch."""
    now = [0.0]
    monkeypatch.setattr(trueloop.stopping.stop, "time", SimpleNamespace(monotonic=lambda: now[0]))
    history = trueloop.fit(
        make_step(),
        *feeds(),
        epochs=9,
        checkpoints=Checkpoints(tmp_path),
        max_seconds=60,
        sinks=[At(*where, lambda: now.append(now.pop() + 100))],
    )
    assert history.status == "out of time"
    assert [r.epoch for r in history.records] == list(range(where[0] + 1))
    assert history.best_epoch == load_checkpoint(tmp_path, "best")["epoch"] == best_epoch
    if best_epoch < where[0]:
        assert history.records[-1]["val_loss"] < history.records[best_epoch]["val_loss"]


def test_the_clock_ends_a_run_evaluated_and_saved(tmp_path: Path) -> None:
    step = make_step()
    history = trueloop.fit(
        step, *feeds(), epochs=10_000, max_seconds=0.3, checkpoints=Checkpoints(tmp_path)
    )
    assert history.status == "out of time"
    assert history.records[-1].update == step.updates
    state = load_checkpoint(tmp_path)
    assert state["step"]["counters"][2] == step.updates
    with pytest.raises(ConfigError, match="max_seconds"):
        trueloop.fit(step, *feeds(), epochs=10_000, max_seconds=0)


def test_the_best_checkpoint_holds_the_best_epochs_weights(tmp_path: Path) -> None:
    step = make_step()
    kept: dict[int, nn.Module] = {}

    def keep(record: Any) -> None:
        if isinstance(record, EvalRecord):
            assert record.epoch is not None
            kept[record.epoch] = copy.deepcopy(step.model)

    history = trueloop.fit(
        step, *feeds(), epochs=30, checkpoints=Checkpoints(tmp_path), sinks=[keep]
    )
    best = load_checkpoint(tmp_path, "best")
    assert best["epoch"] == history.best_epoch
    model = make_model()
    model.load_state_dict(best["model"])
    assert history.best_epoch is not None
    assert same(model, kept[history.best_epoch])
    with pytest.raises(RunError, match="not a state to resume from"):
        trueloop.fit(make_step(), *feeds(), epochs=3, resume_from={"model": best["model"]})
    with pytest.raises(RunError, match="checkpoints of a different run"):
        trueloop.fit(make_step(), *feeds(), epochs=3, checkpoints=Checkpoints(tmp_path))


def test_fit_works_outside_the_main_thread() -> None:
    found: list[str] = []

    def work() -> None:
        found.append(trueloop.fit(make_step(), *feeds(), epochs=1).status)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["finished"]


def test_an_error_in_a_sink_is_the_callers_to_see() -> None:
    def broken(record: Any) -> None:
        raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        trueloop.fit(make_step(), *feeds(), epochs=1, sinks=[broken])


def log_of(run: trueloop.Run) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in line.items() if k not in ("time", "seconds")} for line in run.metrics()
    ]


def test_the_log_of_a_resumed_run_is_that_of_one_never_stopped(tmp_path: Path) -> None:
    def run(name: str, sinks: Any = (), **more: Any) -> trueloop.Run:
        folder = tmp_path / name
        run = trueloop.Run(folder) if folder.exists() else trueloop.Run.create(folder, config={})
        torch.manual_seed(7)
        saved = Checkpoints(run.checkpoints)
        step = make_step(**options())
        trueloop.fit(step, *feeds(), epochs=4, run=run, sinks=sinks, checkpoints=saved, **more)
        return run

    whole = run("whole")
    stop = At(2, 3, lambda: os.kill(os.getpid(), signal.SIGINT))
    stopped = run("stopped", [stop])
    stray = '{"kind":"update","epoch":2,"batch":5,"update":11,"loss":0.0}'
    (stopped.path / "metrics.jsonl").open("a").write(stray + "\n")  # logged, then killed
    assert log_of(stopped) != log_of(whole)
    run("stopped", resume_from=load_checkpoint(stopped.checkpoints))
    assert log_of(stopped) == log_of(whole)
    assert len(log_of(whole)) == 4 * (4 + 1)


def test_without_a_best_to_keep_the_folder_holds_the_last_few_alone(tmp_path: Path) -> None:
    saved = Checkpoints(tmp_path, keep_best=None, keep_last=2, every="3 updates")
    trueloop.fit(make_step(), *feeds(), epochs=4, checkpoints=saved)
    assert sorted(os.listdir(tmp_path)) == ["e00003-b00006-u000000027", "e00004-b00000-u000000028"]


# -- a loop of one's own -----------------------------------------------------------------------


class KilledError(Exception):
    pass


def own_loop(folder: Path, kill_at: int | None = None) -> tuple[nn.Module, list[float]]:
    """The loop of the README with a line to save and a line to go on."""
    torch.manual_seed(7)
    step, (train, val) = make_step(**options()), feeds()
    step.plan(epochs=4, batches=len(train))
    saved = Checkpoints(folder, every="1 updates", keep_last=2)
    saved.resume(step, train)
    losses = []
    for epoch in range(step.epoch, 4):
        for batch in train.epoch(epoch, start=step.batch):
            record = step(batch)
            saved.keep(step, train)
            if record.updated and step.updates == kill_at:
                saved.wait()
                raise KilledError
        scores = trueloop.evaluate(step.model, val, LOSS)
        step.end_epoch(scores)
        saved.keep(step, train, scores)
        losses.append(scores["loss"])
    saved.wait()
    return step.model, losses


@pytest.mark.parametrize("kill_at", [1, 5, 8, 15])
def test_a_loop_of_ones_own_goes_on_with_two_lines(tmp_path: Path, kill_at: int) -> None:
    whole, losses = own_loop(tmp_path / "whole")
    with pytest.raises(KilledError):
        own_loop(tmp_path / "killed", kill_at)
    rest, last = own_loop(tmp_path / "killed")
    assert same(rest, whole)
    assert last == losses[-len(last) :]
    best = load_checkpoint(tmp_path / "killed", "best")
    assert best["scores"]["loss"] == min(losses)
    assert best["epoch"] == losses.index(min(losses))
    with pytest.raises(RunError, match="a loop of your own"):
        trueloop.fit(
            make_step(**options()),
            *feeds(),
            epochs=4,
            resume_from=load_checkpoint(tmp_path / "killed"),
        )


def test_a_run_that_is_over_leaves_nothing_to_the_garbage_collector(tmp_path: Path) -> None:
    """A loader's workers that live on end with their loader; the collector would need 5 s each."""

    def trained(name: str) -> list[weakref.ref[Any]]:
        model = nn.Linear(1, 1)
        data = DataLoader(TensorDataset(torch.rand(8, 1), torch.rand(8, 1)), 2)
        feed = trueloop.Feed(data)
        step = trueloop.Step(
            model, trueloop.optimizers.sgd(model, 0.1), trueloop.supervised(nn.MSELoss())
        )
        saved = Checkpoints(tmp_path / name)
        trueloop.fit(step, feed, feed, updates=6, eval_every="2 updates", checkpoints=saved)
        return [weakref.ref(each) for each in (model, data, feed, step)]

    trained("first")  # what is imported on the way may hold its first callers
    gc.collect()
    gc.disable()
    try:
        assert [each() for each in trained("second")] == [None] * 4
    finally:
        gc.enable()
