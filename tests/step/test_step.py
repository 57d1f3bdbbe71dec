"""What a step refuses, what it reports, and what it does about a gradient that is not finite."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop import errors, schedules
from trueloop.records import LossOutput
from trueloop.step import clip, nonfinite


def make_step(model: nn.Module | None = None, **options: Any) -> trueloop.Step:
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return trueloop.Step(model, optimizer, mean_square, **options)


def mean_square(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch).square().mean()


def good() -> Tensor:
    return torch.randn(3, 2, generator=torch.Generator().manual_seed(0))


def bad() -> Tensor:
    batch = good()
    batch[1, 1] = math.nan
    return batch


def snapshot(step: trueloop.Step) -> list[Tensor]:
    return [p.detach().clone() for p in step.model.parameters()]


class Planted(torch.autograd.Function):
    """The identity, whose gradient is infinite."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return grad * math.inf


def test_stop_names_update_parameter_epoch_and_batch_and_changes_nothing() -> None:
    step = make_step()
    for _ in range(3):
        step(good())
    step.end_epoch()
    step(good())
    before = snapshot(step)
    with pytest.raises(
        trueloop.NonFiniteError, match=r"update 5.*'0\.weight'.*epoch 2, batch 2"
    ) as e:
        step(bad())
    assert (e.value.update, e.value.epoch, e.value.batch) == (4, 1, 1)
    assert e.value.parameter == "0.weight"
    assert "loss was not finite" in str(e.value)
    assert "\n" not in str(e.value)
    assert all(torch.equal(a, b) for a, b in zip(before, snapshot(step), strict=True))


def test_stop_names_the_parameter_where_it_began() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))

    def loss_fn(model: nn.Module, batch: Tensor) -> Tensor:
        hidden = model[1](model[0](batch)).detach()  # type: ignore[index]
        return Planted.apply(model[2](hidden)).mean() + model[0](batch).mean()  # type: ignore[index, no-any-return, no-untyped-call]

    step = trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_fn)
    with pytest.raises(trueloop.NonFiniteError, match="loss was finite") as e:
        step(good())
    assert e.value.parameter == "2.weight"


def test_the_bad_micro_batch_of_a_window_is_named() -> None:
    step = make_step(accumulate=4)
    step(good())
    step(good())
    step(bad())
    with pytest.raises(trueloop.NonFiniteError) as e:
        step(good())
    assert e.value.batch == 2


def test_skip_counts_and_leaves_weights_moments_and_schedule_alone() -> None:
    step = make_step(nonfinite="skip", schedule=schedules.cosine(10))
    step(good())
    lr, before = step(good()).lr, snapshot(step)
    moments = copy.deepcopy(step.optimizer.state_dict()["state"])
    record = step(bad())
    assert (record.updated, record.skipped, step.skipped, step.updates) == (False, True, 1, 2)
    assert record.grad_norm is not None
    assert math.isnan(float(record.grad_norm))
    assert all(torch.equal(a, b) for a, b in zip(before, snapshot(step), strict=True))
    after = step.optimizer.state_dict()["state"]
    assert all(torch.equal(moments[k]["exp_avg"], after[k]["exp_avg"]) for k in moments)
    following = step(good())
    assert following.updated
    assert following.lr < lr
    assert step.optimizer.param_groups[0]["lr"] == pytest.approx(
        0.01 * (1 + math.cos(math.pi * 3 / 10)) / 2
    )


def test_a_step_that_the_scaler_skips_ticks_no_schedule() -> None:
    step = make_step(precision="fp16", schedule=schedules.cosine(10))
    step.precision.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)  # type: ignore[attr-defined]
    skipped = 0
    while not (record := step(good())).updated:
        assert record.skipped
        assert record.lr == 0.01
        skipped += 1
        assert skipped < 60
    assert skipped == step.skipped > 5
    assert step.updates == 1
    assert step.optimizer.param_groups[0]["lr"] == pytest.approx(
        0.01 * (1 + math.cos(math.pi / 10)) / 2
    )


def test_fp16_stops_when_the_loss_itself_is_not_finite() -> None:
    with pytest.raises(trueloop.NonFiniteError):
        make_step(precision="fp16")(bad())


def test_gradients_are_gone_after_the_update_and_modes_are_left_alone() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    model[1].eval()
    step = make_step(model)
    step(good())
    assert all(p.grad is None for p in model.parameters())
    assert [m.training for m in model] == [True, False, True]


def test_a_model_wholly_in_eval_mode_is_refused_where_it_matters() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(), nn.Linear(4, 1))
    step = make_step(model)
    model.eval()
    with pytest.raises(trueloop.ConfigError, match=r"eval mode.*model\.train\(\)"):
        step(good())
    model[0].train()  # somebody chose the modes one by one
    step(good())
    plain = make_step()
    plain.model.eval()
    plain(good())  # nothing in it behaves differently


def test_the_step_draws_no_random_numbers() -> None:
    step = make_step(clip_norm=1.0, accumulate=2, precision="bf16")
    state = torch.get_rng_state()
    for _ in range(4):
        step(good())
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("loss_fn", "message"),
    [
        (lambda m, b: m(b).square(), "shape"),
        (lambda m, b: m(b).square().mean().item(), "float"),
        (lambda m, b: m(b).square().mean().detach(), "does not depend"),
        (lambda m, b: None, "returned None"),
        (lambda m, b: torch.ones(1, requires_grad=True).sum(), "does not depend"),
    ],
)
def test_losses_that_cannot_train(loss_fn: Any, message: str) -> None:
    model = nn.Linear(2, 1)
    step = trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_fn)
    with pytest.raises(errors.LossError, match=message):
        step(good())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip_norm": 0.0}, "clip_norm=0"),
        ({"clip_norm": -1.0}, "clip_norm=-1"),
        ({"clip_norm": math.nan}, "clip_norm=nan"),
        ({"clip_value": 0}, "clip_value=0"),
        ({"clip_norm": 1.0, "clip_value": 1.0}, "one of them"),
        ({"nonfinite": "ignore"}, "nonfinite"),
        ({"precision": "fp61"}, "did you mean"),
        ({"compile": "reduce_overhead"}, "did you mean 'reduce-overhead'"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(trueloop.ConfigError, match=message) as e:
        make_step(**options)
    assert "\n" not in str(e.value)


def test_an_optimizer_of_another_model_is_refused() -> None:
    stale = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
    with pytest.raises(trueloop.ConfigError, match="none of the model's parameters"):
        trueloop.Step(nn.Linear(2, 1), stale, mean_square)
    model = nn.Linear(2, 1)
    with pytest.raises(trueloop.ConfigError, match="LBFGS"):
        trueloop.Step(model, torch.optim.LBFGS(model.parameters()), mean_square)


def test_parameters_added_to_the_optimizer_later_are_clipped_too() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    step = trueloop.Step(model, optimizer, mean_square, clip_norm=1e-3)
    model[0].requires_grad_(False)
    step(good())
    model[0].requires_grad_(True)
    optimizer.add_param_group({"params": list(model[0].parameters())})
    expected = copy.deepcopy(model)
    mean_square(expected, good()).backward()
    norm = nn.utils.clip_grad_norm_(expected.parameters(), 1e-3)
    assert step(good()).grad_norm == norm
    with torch.no_grad():
        for p in expected.parameters():
            assert p.grad is not None
            p -= 0.1 * p.grad
    for a, b in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_state_taken_inside_a_window_continues_bitwise(precision: str) -> None:
    batches = [torch.randn(3, 2, generator=torch.Generator().manual_seed(k)) for k in range(30)]

    def build() -> trueloop.Step:
        torch.manual_seed(0)
        step = make_step(
            nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)),
            accumulate=4,
            clip_norm=0.1,
            precision=precision,
            schedule=schedules.warmup_cosine("20%"),
        )
        step.plan(epochs=1, batches=30)
        return step

    straight = build()
    for batch in batches:
        straight(batch)
    straight.end_epoch()
    first = build()
    for batch in batches[:13]:
        first(batch)
    state = copy.deepcopy(first.state_dict())
    second = build()
    for p in second.model.parameters():
        nn.init.zeros_(p)
    second.load_state_dict(state)
    assert (second.epoch, second.batch) == (0, 13)
    for batch in batches[13:]:
        second(batch)
    second.end_epoch()
    for a, b in zip(snapshot(straight), snapshot(second), strict=True):
        assert torch.equal(a, b)
    assert straight.updates == second.updates
    assert straight.skipped == second.skipped


def test_a_state_of_another_configuration_is_refused() -> None:
    state = make_step(accumulate=2).state_dict()
    with pytest.raises(errors.RunError, match=r"accumulate=2.*accumulate=1"):
        make_step().load_state_dict(state)


def test_compiled_forward_trains_the_same_model() -> None:
    """`compile` changes what runs, not what is trained or saved."""
    eager, compiled = make_step(), make_step(compile={"backend": "eager"})
    assert set(compiled.model.state_dict()) == set(eager.model.state_dict())
    for k in range(5):
        batch = torch.randn(3, 2, generator=torch.Generator().manual_seed(k))
        assert torch.equal(eager(batch).loss, compiled(batch).loss)
    for a, b in zip(snapshot(eager), snapshot(compiled), strict=True):
        assert torch.equal(a, b)


def test_loss_outputs_of_every_form_are_the_same_update() -> None:
    forms = [
        mean_square,
        lambda m, b: (mean_square(m, b), 3),
        lambda m, b: LossOutput(mean_square(m, b)),
        lambda m, b: mean_square(m, b).reshape(1),
    ]
    results = []
    for form in forms:
        step = make_step()
        step.loss_fn = form
        step(good())
        results.append(snapshot(step))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("where", ["backward", "optimizer", "gradient"])
def test_an_error_leaves_nothing_behind(where: str) -> None:
    """Whoever catches an error and goes on trains as if that batch had not been."""
    fails = False

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
            if fails and where == "backward":
                raise MemoryError("planted")
            return grad

    def loss_fn(model: nn.Module, batch: Tensor) -> Tensor:
        hidden: Tensor = Failing.apply(model[0](batch))  # type: ignore[index, no-untyped-call]
        return model[2](torch.relu(hidden)).square().mean()  # type: ignore[index, no-any-return]

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if fails and where == "optimizer":
            raise MemoryError("planted")

    step, straight = make_step(), make_step()
    step.loss_fn = loss_fn
    step.optimizer.register_step_pre_hook(before)
    for each in (step, straight):
        each(good())
    fails = True
    with pytest.raises((MemoryError, trueloop.NonFiniteError)):
        step(bad() if where == "gradient" else good() + 1)
    fails = False
    for each in (step, straight):
        record = each(good())
        assert (record.update, record.samples) == (2, 3)
    assert all(torch.equal(a, b) for a, b in zip(snapshot(step), snapshot(straight), strict=True))


@pytest.mark.parametrize("where", ["forward", "loss", "backward", "outputs"])
def test_after_any_error_the_window_is_given_up(where: str) -> None:
    """Wherever it was raised: its micro-batches train nothing, and the next call starts afresh."""

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
            raise MemoryError("planted")

    def fail(*_: Any) -> None:
        raise MemoryError("planted")

    failing = {
        "forward": lambda m, b: fail(),
        "loss": lambda m, b: (mean_square(m, b), -1),
        "backward": lambda m, b: Failing.apply(mean_square(m, b)),  # type: ignore[no-untyped-call]
        "outputs": mean_square,
    }
    step, straight = make_step(accumulate=2), make_step(accumulate=2)
    step(good() + 1)
    step.loss_fn, step.on_outputs = failing[where], fail if where == "outputs" else None
    with pytest.raises((MemoryError, errors.LossError)):
        step(good())
    assert not step.is_accumulating
    step.loss_fn, step.on_outputs = mean_square, None
    for each in (step, straight):
        assert not each(good()).updated
        record = each(good())
        assert (record.updated, record.samples, record.update) == (True, 6, 1)
    assert all(torch.equal(a, b) for a, b in zip(snapshot(step), snapshot(straight), strict=True))


def test_parameters_replaced_in_the_optimizer_are_clipped_and_cleared() -> None:
    step = make_step(clip_norm=1e-3)
    step(good())
    head = nn.Linear(4, 1)
    step.model[2] = head  # type: ignore[operator]
    step.optimizer.param_groups[0]["params"][2:] = list(head.parameters())
    expected = copy.deepcopy(step.model)
    mean_square(expected, good()).backward()
    norm = nn.utils.clip_grad_norm_(expected.parameters(), 1e-3)
    assert step(good()).grad_norm == norm
    assert all(p.grad is None for p in step.model.parameters())


def test_a_tensor_lr_is_recorded_as_it_was() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
    step = trueloop.Step(model, optimizer, mean_square, schedule=schedules.cosine(4))
    rates = [step(good()).lr for _ in range(4)]
    assert rates == pytest.approx([0.01 * (1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)])


def test_a_schedule_of_its_own_length_continues_without_a_plan() -> None:
    def build() -> trueloop.Step:
        return make_step(schedule=schedules.warmup_cosine(4, 20))

    straight = build()
    fresh = build()
    fresh.load_state_dict(copy.deepcopy(straight.state_dict()))  # before the first batch
    for _ in range(6):
        straight(good())
    resumed = build()
    resumed.load_state_dict(copy.deepcopy(straight.state_dict()))
    assert [resumed(good()).lr for _ in range(3)] == [straight(good()).lr for _ in range(3)]


def test_a_saved_schedule_must_end_where_the_longer_run_ends() -> None:
    first, longer = (make_step(schedule=schedules.cosine()) for _ in range(2))
    first.plan(epochs=2, batches=10)
    first(good())
    longer.plan(epochs=4, batches=10)
    with pytest.raises(errors.ScheduleError, match=r"20 updates.*makes 40.*saved"):
        longer.load_state_dict(first.state_dict())


@pytest.mark.filterwarnings("ignore:.*to a meta parameter")
def test_the_state_of_an_open_window_goes_to_the_models_device() -> None:
    """Loaded on the CPU for a model elsewhere; `meta` stands in for the accelerator."""
    saved = make_step(accumulate=3)
    saved(good())
    state = copy.deepcopy(saved.state_dict())
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).to("meta")
    step = make_step(model, accumulate=3)
    step.load_state_dict(state)
    assert step(good().to("meta")).loss.device.type == "meta"


def test_a_late_verdict_knows_its_own_windows_losses() -> None:
    """On an accelerator the verdict is read when its window has long been closed."""
    step = make_step()
    evidence = nonfinite.NonFiniteContext(
        (4, 1, 7),
        torch.tensor([math.nan, 1.0]),
        ["0.weight", "0.bias"],
        [torch.tensor(1.0), torch.tensor(math.nan), torch.tensor(1.0)],
    )
    step._nonfinite.late.send(torch.tensor(math.nan), evidence)
    with pytest.raises(trueloop.NonFiniteError, match="loss was not finite already") as e:
        step(good())
    assert (e.value.update, e.value.batch, e.value.parameter) == (4, 6, "0.weight")


def test_the_loss_beside_the_models_output_is_refused() -> None:
    """(loss, outputs), as many models return it, is not (loss, count)."""
    step = make_step()
    step.loss_fn = lambda m, b: (m(b).square().mean(), m(b))
    with pytest.raises(errors.LossError, match="LossOutput"):
        step(good())


def test_clipping_is_never_left_out_in_bfloat16() -> None:
    every = torch.arange(1, 1 << 15, dtype=torch.int16).view(torch.bfloat16)
    norms = every[torch.isfinite(every) & (every > 1e-6) & (every < 100)]
    for limit in (1e-4, 3.5242e-4, 1e-3, 0.03, 1.0, 5.0):
        coefficients = torch.clamp(limit / (norms + 1e-6), max=1.0)
        is_close = (coefficients != 1) & (norms < 2 * limit)
        for norm, coefficient in zip(norms[is_close], coefficients[is_close], strict=True):
            gradient = torch.ones(1, dtype=torch.bfloat16)
            clip.divide_and_clip([gradient], norm, 1.0, limit, None)
            assert gradient == coefficient


@pytest.mark.skipif(
    not hasattr(torch.cpu.Stream, "record_event"), reason="torch 2.6 shards on accelerators alone"
)
def test_the_norm_of_a_sharded_model_is_a_plain_tensor() -> None:
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard

    plain = make_step(nn.Linear(2, 1), clip_norm=0.1, accumulate=2)
    sharded_model = copy.deepcopy(plain.model)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        fully_shard(sharded_model, mesh=dist.init_device_mesh("cpu", (1,)))
        sharded = make_step(sharded_model, clip_norm=0.1, accumulate=2)
        for _ in range(4):
            expected, record = plain(good()), sharded(good())
        assert type(record.grad_norm) is Tensor
        assert record.grad_norm == expected.grad_norm
        for a, b in zip(sharded_model.parameters(), plain.model.parameters(), strict=True):
            assert torch.equal(a.full_tensor(), b)  # type: ignore[attr-defined]
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_a_late_verdict_still_names_its_own_update() -> None:
    step = make_step(nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).cuda())
    step(good().cuda())
    step(bad().cuda())
    with pytest.raises(trueloop.NonFiniteError, match="update 2"):
        step.end_epoch()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("accumulate", [1, 3])
def test_on_cuda_the_step_waits_for_nothing(accumulate: int) -> None:
    step = make_step(
        nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).cuda(),
        clip_norm=1.0,
        accumulate=accumulate,
    )
    batch = good().cuda()
    for _ in range(accumulate):
        step(batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            step(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
