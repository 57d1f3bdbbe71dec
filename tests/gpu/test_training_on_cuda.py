"""On a GPU: bitwise the loop written by hand, exact resume, compiled updates, exact evaluation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from bits import same
from on_gpu import DEVICE, IS_CUDA, needs_cuda, needs_device
from trueloop import schedules
from trueloop.checkpoint import Checkpoints, load_checkpoint

pytestmark = needs_device
UPDATES = 60
LOSS = trueloop.supervised(nn.CrossEntropyLoss())
DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def model_of(*, dropout: float = 0.2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(dropout), nn.Linear(64, 4)
    ).to(DEVICE)


def data(n: int = 640) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    y = torch.randint(0, 4, (n,), generator=generator)
    return torch.eye(12)[y] + 0.8 * torch.randn(n, 12, generator=generator), y


def on_device(at: int, size: int = 32) -> tuple[Tensor, Tensor]:
    x, y = data()
    begin = at * size % len(x)
    return x[begin : begin + size].to(DEVICE), y[begin : begin + size].to(DEVICE)


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "adamw": lambda m: torch.optim.AdamW(m.parameters(), lr=3e-3),
    "adamw-fused": lambda m: torch.optim.AdamW(m.parameters(), lr=3e-3, fused=True),
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9),
}


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("precision", DTYPES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_bitwise_the_loop_by_hand(optimizer: str, precision: str, accumulate: int) -> None:
    theirs, dtype = model_of(), DTYPES[precision]
    optim = OPTIMIZERS[optimizer](theirs)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optim, UPDATES)
    scaler = torch.amp.GradScaler(DEVICE.type, enabled=precision == "fp16")
    torch.manual_seed(2)
    for at in range(UPDATES * accumulate):
        inputs, targets = on_device(at)
        with torch.autocast(DEVICE.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(theirs(inputs), targets)
        scaler.scale(loss / accumulate).backward()
        if (at + 1) % accumulate:
            continue
        scaler.unscale_(optim)
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        scale = scaler.get_scale()
        scaler.step(optim)
        scaler.update()
        optim.zero_grad()
        if scaler.get_scale() >= scale:
            schedule.step()

    ours = model_of()
    step = trueloop.Step(
        ours,
        OPTIMIZERS[optimizer](ours),
        LOSS,
        schedule=schedules.cosine(),
        precision=precision,
        clip_norm=0.5,
        accumulate=accumulate,
    )
    step.plan(epochs=1, batches=UPDATES * accumulate)
    torch.manual_seed(2)
    for at in range(UPDATES * accumulate):
        step(on_device(at))
    assert step.updates + step.skipped == UPDATES
    if accumulate == 1:
        assert same(ours.state_dict(), theirs.state_dict())
    else:  # sums, divided once, in place of a sum of quotients: other roundings
        close = {"fp32": 1e-4, "bf16": 3e-2, "fp16": 3e-2}[precision]
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, other, rtol=close, atol=close)


def fitted(stop_after: int | None, folder: Path | None, **options: Any) -> tuple[Any, Any]:
    """Model and history of 4 epochs, stopped after so many updates and resumed in new objects."""

    def parts() -> tuple[Any, Any, Any]:
        model = model_of()
        optimizer = trueloop.optimizers.adamw(model, 3e-3)
        step = trueloop.Step(
            model, optimizer, LOSS, schedule=schedules.cosine(), clip_norm=1.0, **options
        )
        train = trueloop.Feed(data(), 32, shuffle=True, seed=3, device=DEVICE)
        return step, train, trueloop.Feed(data(90), 32, device=DEVICE)

    trueloop.seed.seed_everything(5)
    step, *feeds = parts()
    if stop_after is None:
        return step.model, trueloop.fit(step, *feeds, epochs=4, progress=False)
    assert folder is not None

    def stop(record: Any) -> None:
        if step.updates == stop_after:
            step.stop()

    saving = Checkpoints(folder, every="7 updates")
    trueloop.fit(step, *feeds, epochs=4, checkpoints=saving, sinks=[stop], progress=False)
    assert step.updates == stop_after
    step, *feeds = parts()
    nn.init.zeros_(step.model[0].weight)
    torch.rand(3, device=DEVICE)
    state = load_checkpoint(folder)
    return step.model, trueloop.fit(step, *feeds, epochs=4, resume_from=state, progress=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": "bf16", "accumulate": 3},
        {"precision": "fp16"},
        {"compile": "step"},
        {"compile": True, "precision": "bf16"},
        {"average": trueloop.EMA(0.9)},
        {"recompute": "Linear"},
    ],
    ids=str,
)
def test_a_resumed_run_is_the_run_that_never_stopped(
    options: dict[str, Any], tmp_path: Path
) -> None:
    straight, first = fitted(None, None, **options)
    resumed, second = fitted(17, tmp_path, **options)
    assert same(resumed.state_dict(), straight.state_dict())
    assert [each.scores for each in first.records] == [each.scores for each in second.records]


@pytest.mark.parametrize("precision", DTYPES)
@pytest.mark.parametrize("mode", [True, "step"])
def test_compiled_updates_are_the_eager_ones_but_for_rounding(mode: Any, precision: str) -> None:
    def trained(**options: Any) -> tuple[nn.Module, Any]:
        model = model_of(dropout=0.0)
        # Adam would turn the rounding of a gradient of 0 (a bias before batch norm) into a step.
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        step = trueloop.Step(
            model, optimizer, LOSS, clip_norm=1.0, precision=precision, nonfinite="stop", **options
        )
        record = None
        for at in range(UPDATES):
            record = step(on_device(at))
        return model, record

    model, record = trained()
    compiled, same_record = trained(compile=mode)
    close = {"fp32": 1e-4, "bf16": 3e-2, "fp16": 3e-2}[precision]
    torch.testing.assert_close(same_record.loss, record.loss, rtol=10 * close, atol=10 * close)
    flat, others = (nn.utils.parameters_to_vector(m.parameters()) for m in (compiled, model))
    assert (flat - others).norm() <= close * others.norm()


def test_a_compiled_step_reads_what_changes_between_updates() -> None:
    """Learning rate, clip and loss scale are inputs of the CUDA graph, not constants of it."""

    def trained(**options: Any) -> nn.Module:
        model = model_of(dropout=0.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = trueloop.Step(
            model, optimizer, LOSS, clip_norm=1.0, schedule=schedules.one_cycle(), **options
        )
        step.plan(epochs=1, batches=UPDATES)
        for at in range(UPDATES):
            if at == UPDATES // 2:
                step.clip_norm = 0.05
            step(on_device(at))
        return model

    for mine, other in zip(
        trained(compile="step").parameters(), trained().parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_records_of_a_compiled_step_keep_their_values() -> None:
    """A CUDA graph writes into the same memory at each replay: a record must not change with it."""
    model = model_of(dropout=0.0)
    step = trueloop.Step(model, trueloop.optimizers.adamw(model, 1e-2), LOSS, compile="step")
    records = [step(on_device(at)) for at in range(20)]
    seen = [float(record.loss) for record in records]
    plain = model_of(dropout=0.0)
    step = trueloop.Step(plain, trueloop.optimizers.adamw(plain, 1e-2), LOSS)
    expected = [float(step(on_device(at)).loss) for at in range(20)]
    assert seen == pytest.approx(expected, rel=1e-3, abs=1e-3)


@needs_cuda
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_compiled_step_records_its_cuda_graph_once(accumulate: int) -> None:
    """One graph for each function; records that are alive must not have it recorded again."""
    from torch._dynamo.utils import counters
    from torch._inductor.cudagraph_trees import get_container

    def recorded() -> int:
        manager = get_container(torch.cuda.current_device()).tree_manager
        return 0 if manager is None else manager.new_graph_id().id

    model, skipped = model_of(), counters["inductor"]["cudagraph_skips"]
    optimizer = trueloop.optimizers.adamw(model, 1e-2)
    step = trueloop.Step(model, optimizer, LOSS, compile="step", accumulate=accumulate)
    records = [step(on_device(at)) for at in range(12)]
    before = recorded()
    records += [step(on_device(at)) for at in range(40)]
    assert recorded() == before + 1  # the call that asks takes a number itself
    assert counters["inductor"]["cudagraph_skips"] == skipped
    assert len({id(each.loss) for each in records}) == len(records)


def test_evaluation_is_that_of_float64() -> None:
    x, y = data(401)
    model = model_of().eval()
    twin = model_of().double().eval()
    with torch.no_grad():
        logits = twin(x.to(DEVICE).double())
        loss = float(nn.functional.cross_entropy(logits, y.to(DEVICE)))
        accuracy = float((logits.argmax(1) == y.to(DEVICE)).double().mean())
    metrics = trueloop.metrics.for_task("multiclass", classes=4)
    record = trueloop.evaluate(model, trueloop.Feed((x, y), 32, device=DEVICE), LOSS, metrics)
    assert record.samples == 401
    assert record["loss"] == pytest.approx(loss, rel=1e-5)
    assert record["accuracy"] == pytest.approx(accuracy, abs=1e-9)


def test_feed_gives_the_same_batches_as_on_the_cpu() -> None:
    cpu = trueloop.Feed(data(), 32, shuffle=True, seed=3)
    gpu = trueloop.Feed(data(), 32, shuffle=True, seed=3, device=DEVICE)
    kept = trueloop.Feed(tuple(t.to(DEVICE) for t in data()), 32, shuffle=True, seed=3)
    for epoch in range(2):
        for ours, moved, there in zip(
            cpu.epoch(epoch), gpu.epoch(epoch), kept.epoch(epoch), strict=True
        ):
            assert moved[0].device.type == there[0].device.type == DEVICE.type
            assert same(ours, tuple(t.cpu() for t in moved))
            assert same(ours, tuple(t.cpu() for t in there))


@needs_cuda
def test_a_batch_too_large_for_the_gpu_is_split() -> None:
    """The allocator's own error, by a limit on its memory."""
    width, samples = 4096, 40_000
    x = torch.randn(samples, 64, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, 4, (samples,), generator=torch.Generator().manual_seed(1))

    def trained(**options: Any) -> tuple[nn.Module, Any]:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
        ).to(DEVICE)
        step = trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=0.1), LOSS, **options)
        batch = (x.to(DEVICE), y.to(DEVICE))
        for _ in range(2):
            record = step(batch)
        return model, record

    whole, record = trained()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    room = torch.cuda.memory_reserved() + 1_200_000_000
    torch.cuda.set_per_process_memory_fraction(room / total)
    try:
        with pytest.warns(RuntimeWarning, match="parts"):
            split, same_record = trained(on_oom="accumulate")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert float(same_record.loss) == pytest.approx(float(record.loss), rel=1e-5)
    for mine, other in zip(split.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def test_recomputed_gradients_are_bitwise_the_same() -> None:
    def gradients(recompute: Any) -> list[Tensor]:
        torch.manual_seed(0)
        blocks = [
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True) for _ in range(4)
        ]
        model = nn.Sequential(*blocks).to(DEVICE)
        seen: list[Tensor] = []
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(
                lambda p: seen.append(p.grad.clone())  # type: ignore[union-attr]
            )
        loss_fn = trueloop.supervised(nn.MSELoss())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = trueloop.Step(model, optimizer, loss_fn, recompute=recompute)
        x = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(1)).to(DEVICE)
        for _ in range(3):
            step((x, x))
        return seen

    assert same(gradients(1), gradients(None))


@needs_cuda
@pytest.mark.parametrize("there", ["cpu", "cuda"])
def test_a_checkpoint_of_the_gpu_is_loaded_on_either_device(tmp_path: Path, there: str) -> None:
    model, _ = fitted(None, None)
    step = trueloop.Step(model, trueloop.optimizers.adamw(model, 1e-3), LOSS)
    feed = trueloop.Feed(data(), 32, shuffle=True, device=DEVICE)
    saving = Checkpoints(tmp_path, keep_best=None)
    trueloop.fit(step, feed, epochs=1, checkpoints=saving, progress=False)
    torch.manual_seed(7)
    other = model_of().to(there)
    step = trueloop.Step(other, trueloop.optimizers.adamw(other, 1e-3), LOSS)
    state = load_checkpoint(tmp_path, map_location=there)
    feed = trueloop.Feed(data(), 32, shuffle=True, device=there)
    trueloop.fit(step, feed, epochs=1, resume_from=state, progress=False)
    for name, value in other.state_dict().items():
        assert value.device.type == there
        assert torch.equal(value.cpu(), model.state_dict()[name].cpu()), name


@needs_cuda
@pytest.mark.parametrize(
    "options",
    [{}, {"precision": "bf16"}, {"compile": "step"}, {"average": trueloop.EMA(0.9)}],
    ids=str,
)
def test_fit_waits_for_nothing_within_an_epoch(options: dict[str, Any]) -> None:
    """`set_sync_debug_mode` raises at a synchronisation; the ends of epochs may wait."""
    assert IS_CUDA
    model = model_of()
    step = trueloop.Step(model, trueloop.optimizers.adamw(model, 1e-3), LOSS, **options)
    feed = trueloop.Feed(data(), 8, shuffle=True, device=DEVICE)
    trueloop.fit(step, feed, epochs=1, progress=False)
    batches = iter(feed.epoch(1))
    for _ in range(4):
        step(next(batches))
    torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches:
            step(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
