"""Outlying gradient norms, against the policy written out by hand."""

from __future__ import annotations

import copy
import math
import statistics
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

import trueloop
from on_ranks import on_ranks
from trueloop import Outliers, errors, schedules
from trueloop.step import outliers as outliers_of_steps, precision as precisions
from trueloop.step.outliers import NormHistory, Position

SMALL: dict[str, Any] = {"factor": 3.0, "window": 8, "min_updates": 4}


def make_model(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)


def batches(count: int, poisoned: tuple[int, ...] = (), size: int = 8) -> list[Tensor]:
    """Inputs of which the poisoned ones give a gradient a hundred times as large."""
    generator = torch.Generator().manual_seed(1)
    found = [torch.randn(size, 4, generator=generator) for _ in range(count)]
    return [100 * x if k in poisoned else x for k, x in enumerate(found)]


def loss_fn(model: nn.Module, x: Tensor) -> Tensor:
    # The output grows with the input's scale, and its gradient with it.
    return (model(x / x.abs().amax()) * x.abs().amax() - x.sum(1, keepdim=True)).square().mean()


def make_step(policy: Outliers | None, **options: Any) -> trueloop.Step:
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return trueloop.Step(model, optimizer, loss_fn, outliers=policy, **options)


def by_hand(
    inputs: list[Tensor], policy: Outliers, clip_norm: float | None = None
) -> tuple[nn.Module, list[int]]:
    """The plain loop with the policy in Python; the weights, and which updates were outliers."""
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    norms: list[float] = []
    found = []
    for k, x in enumerate(inputs):
        optimizer.zero_grad()
        loss_fn(model, x).backward()
        norm = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(p.grad) for p in model.parameters()])
        )
        kept = norms[-policy.window :]
        median = statistics.median_low(kept) if kept else math.nan
        limit = math.inf if clip_norm is None else clip_norm
        if len(kept) >= policy.min_updates and norm.item() > policy.factor * median:
            found.append(k)
            if policy.action == "skip":
                continue
            limit = min(limit, policy.factor * median)
        else:
            norms.append(norm.item())
        if norm.item() > limit:
            for p in model.parameters():
                p.grad *= limit / norm.item()
        optimizer.step()
    return model, found


def assert_same(a: nn.Module, b: nn.Module, *, exactly: bool = True) -> None:
    for one, two in zip(a.parameters(), b.parameters(), strict=True):
        if exactly:
            assert torch.equal(one, two)
        else:
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("action", ["clip", "skip"])
@pytest.mark.parametrize("clip_norm", [None, 1.0, 500.0])
def test_it_is_the_policy_by_hand(action: str, clip_norm: float | None) -> None:
    policy = Outliers(action=action, **SMALL)
    inputs = batches(40, poisoned=(1, 9, 10, 30))  # the second comes before anything is judged
    step = make_step(policy, clip_norm=clip_norm)
    records = [step(x) for x in inputs]
    model, found = by_hand(inputs, policy, clip_norm)
    assert [k for k, r in enumerate(records) if r.outlier and r.outlier.outlier] == found
    assert {9, 10, 30} <= set(found)
    assert 1 not in found
    assert_same(step.model, model, exactly=False)
    assert step.skipped == (len(found) if action == "skip" else 0)
    assert step.updates == 40 - step.skipped


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_skipped_batch_changes_nothing_but_its_own_update(precision: str) -> None:
    """Bitwise the weights, and the lr, of the run that never saw it."""
    poisoned = (9, 10, 22)
    inputs = batches(30, poisoned)
    options: dict[str, Any] = {"precision": precision, "schedule": schedules.cosine(60)}
    if precision == "fp16":
        options["nonfinite"] = "skip"
    seen, unseen = (make_step(Outliers(action="skip", **SMALL), **options) for _ in range(2))
    for step in (seen, unseen):
        if precision == "fp16":
            step.precision.scaler._init_scale = 64.0  # no overflow of its own
            step.precision.scaler._growth_interval = 10**6
    skipped = [k for k, x in enumerate(inputs) if seen(x).skipped]
    assert skipped == list(poisoned)
    for k, x in enumerate(inputs):
        if k not in poisoned:
            assert unseen(x).updated
    assert_same(seen.model, unseen.model)
    assert seen.optimizer.param_groups[0]["lr"] == unseen.optimizer.param_groups[0]["lr"]


@pytest.mark.parametrize("action", ["clip", "skip"])
def test_without_an_outlier_the_weights_are_bitwise_those_without_the_policy(action: str) -> None:
    inputs = batches(20)
    with_it = make_step(Outliers(factor=1e6, action=action, min_updates=1, window=4), clip_norm=0.5)
    without = make_step(None, clip_norm=0.5)
    for x in inputs:
        assert not with_it(x).outlier.outlier  # type: ignore[union-attr]
        assert without(x).outlier is None
    assert_same(with_it.model, without.model)


def test_an_update_of_several_micro_batches_is_judged_as_one() -> None:
    step = make_step(Outliers(action="skip", **SMALL), accumulate=3)
    inputs = batches(30, poisoned=(19,))
    records = [step(x) for x in inputs]
    judged = [r.outlier for r in records if r.outlier is not None]
    assert len(judged) == 10
    assert [bool(c.outlier) for c in judged] == [False] * 6 + [True] + [False] * 3
    assert judged[6].first == 18
    assert all(r.outlier is None for r in records if not (r.updated or r.skipped))
    unseen = make_step(Outliers(action="skip", **SMALL), accumulate=3)
    for x in inputs[:18] + inputs[21:]:
        unseen(x)
    assert_same(step.model, unseen.model)


@pytest.mark.parametrize("action", ["clip", "skip"])
@pytest.mark.parametrize("cut", [3, 10, 11, 12, 17])
def test_a_resume_goes_on_with_the_same_history(action: str, cut: int) -> None:
    """In a row of outliers, before anything is judged, and with another window."""
    policy = Outliers(action=action, **SMALL)
    inputs = batches(30, poisoned=(10, 11, 20))
    whole, before, after = (make_step(policy) for _ in range(3))
    for x in inputs:
        whole(x)
    for x in inputs[:cut]:
        before(x)
    after.load_state_dict(copy.deepcopy(before.state_dict()))
    for x in inputs[cut:]:
        after(x)
    assert_same(whole.model, after.model)
    assert repr(whole.state_dict()) == repr(after.state_dict())


def test_a_state_with_another_window_and_one_without() -> None:
    inputs = batches(12)
    step = make_step(Outliers(**SMALL))
    for x in inputs:
        step(x)
    state = copy.deepcopy(step.state_dict())
    norms = state["outliers"]["norms"]
    longer, shorter = (
        make_step(Outliers(window=10, min_updates=5)),
        make_step(Outliers(window=5, min_updates=5)),
    )
    for other, expected in ((longer, [math.nan] * 2 + norms.tolist()), (shorter, norms[3:])):
        other.load_state_dict(copy.deepcopy(state))
        found = other.state_dict()["outliers"]["norms"]
        assert torch.equal(found.nan_to_num(), torch.as_tensor(expected).nan_to_num())
    make_step(None).load_state_dict(copy.deepcopy(state))
    del state["outliers"]
    fresh = make_step(Outliers(**SMALL))
    fresh.load_state_dict(state)
    assert fresh.state_dict()["outliers"]["norms"].isnan().all()
    state["outliers"] = {"norms": torch.zeros(2, 2), "counts": torch.zeros(2, dtype=torch.int64)}
    with pytest.raises(errors.RunError, match=r"step\.outliers\.norms"):
        fresh.load_state_dict(state)


@pytest.mark.parametrize("action", ["clip", "skip"])
def test_one_in_a_row_too_many_is_an_error(action: str) -> None:
    step = make_step(Outliers(action=action, max_in_a_row=2, **SMALL))
    inputs = batches(20, poisoned=(6, 7, 9, 10, 11))
    for x in inputs[:11]:
        step(x)
    weights = [p.detach().clone() for p in step.model.parameters()]
    with pytest.raises(errors.OutlierError, match=r"batch 12\) is outlier number 3 in a row") as e:
        step(inputs[11])
    assert "\n" not in str(e.value)
    assert all(map(torch.equal, weights, step.model.parameters()))
    assert step(inputs[12]).updated


def test_a_gradient_that_is_not_finite_is_left_to_its_own_policy() -> None:
    step = make_step(Outliers(action="clip", **SMALL), nonfinite="skip")
    inputs = batches(20)
    inputs[9] = inputs[9] * math.nan
    records = [step(x) for x in inputs]
    assert [k for k, r in enumerate(records) if r.skipped] == [9]
    assert not any(r.outlier.outlier for r in records if r.outlier is not None)
    assert step.state_dict()["outliers"]["norms"].isfinite().all()
    with pytest.raises(trueloop.NonFiniteError):
        make_step(Outliers())(inputs[9])


@given(
    norms=st.lists(
        st.one_of(st.floats(0, 1e3, width=32), st.sampled_from([math.inf, math.nan])), max_size=60
    ),
    window=st.integers(1, 9),
    minimum=st.integers(1, 9),
)
@settings(max_examples=60)
def test_the_running_median(norms: list[float], window: int, minimum: int) -> None:
    policy = Outliers(
        factor=2.0, window=window, min_updates=min(minimum, window), max_in_a_row=10**6
    )
    history = NormHistory(policy, precisions.by_name("fp32", torch.device("cpu")))
    kept: list[float] = []
    for k, norm in enumerate(norms):
        check, factor = history.check_norm(torch.tensor(norm), Position(k, 0, k, 1))
        recent = kept[-window:]
        median = statistics.median_low(recent) if recent else math.nan
        enough = len(recent) >= policy.min_updates and median > 0
        expected = enough and math.isfinite(norm) and torch.tensor(norm).item() > 2 * median
        assert check is not None
        assert bool(check.outlier) == expected
        assert math.isnan(median) == math.isnan(check.median.item())
        assert math.isnan(median) or check.median.item() == median
        assert (factor is None) == (not expected)
        if factor is not None:
            assert factor.item() == pytest.approx(2 * median / norm)
        elif math.isfinite(norm):
            kept.append(norm)


def test_on_an_accelerator_clip_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As there, on a device where reading is no wait: nothing is read before it has arrived."""
    monkeypatch.setattr(outliers_of_steps, "is_immediate", lambda device: False)
    policy = Outliers(max_in_a_row=1, **SMALL)
    inputs = batches(20, poisoned=(9,))
    late, prompt = make_step(policy), make_step(None)
    for x in inputs:
        late(x)
    monkeypatch.undo()
    prompt = make_step(policy)
    for x in inputs:
        prompt(x)
    assert_same(late.model, prompt.model)
    monkeypatch.setattr(outliers_of_steps, "is_immediate", lambda device: False)
    for x in batches(20, poisoned=(18, 19))[18:]:
        late(x)
    with pytest.raises(errors.OutlierError, match="number 2 in a row"):
        late.end_epoch()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"factor": 1}, "factor=1 must be above 1: write e.g. factor=5.0"),
        ({"factor": "3"}, "factor='3' is not a number"),
        ({"action": "stop"}, "action='stop' is unknown: write action='clip' or action='skip'"),
        ({"window": 0}, "window=0 is not an integer of at least 1"),
        ({"min_updates": 0}, "min_updates=0 is not"),
        ({"window": 16}, "min_updates=32 is more than window=16: write min_updates=16"),
        ({"max_in_a_row": 0}, "max_in_a_row=0 is not"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], says: str) -> None:
    with pytest.raises(errors.ConfigError, match=says):
        Outliers(**options)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("skip", r"outliers='skip' is not an Outliers: write outliers=Outliers\(action='skip'\)"),
        (Outliers, r"write outliers=Outliers\(\), with brackets"),
        (5.0, "outliers=5.0 is not an Outliers: write e.g."),
    ],
)
def test_what_is_no_policy(value: Any, says: str) -> None:
    with pytest.raises(errors.ConfigError, match=says):
        make_step(value)


def _on_a_rank(parallel: str, action: str) -> tuple[list[bool], list[float], dict[str, Any]]:
    step = make_step(Outliers(action=action, **SMALL), parallel=parallel)
    rank = trueloop.ranks.rank()
    flags = []
    # The poison is in rank 1's part alone.
    for k, x in enumerate(batches(14, size=16)):
        mine = x[rank::2]
        flags.append(bool(step(100 * mine if k == 9 and rank == 1 else mine).outlier.outlier))  # type: ignore[union-attr]
    weights = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in step.model.parameters()]
    state = step.state_dict()["outliers"]
    return flags, torch.cat([w.flatten() for w in weights]).tolist(), state["norms"].tolist()


@pytest.mark.parametrize(("parallel", "action"), [("ddp", "skip"), ("fsdp", "clip")])
def test_all_ranks_decide_alike(parallel: str, action: str) -> None:
    found = on_ranks(2, _on_a_rank, parallel, action)
    assert repr(found[0]) == repr(found[1])
    assert found[0][0] == [k == 9 for k in range(14)]
