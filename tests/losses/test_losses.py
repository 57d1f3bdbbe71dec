"""Losses against torch's own, formulas written out, and inputs that do not fit."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from sklearn.metrics import mean_pinball_loss
from torch import Tensor, nn

from trueloop import losses
from trueloop.errors import ConfigError, DataError, LossError


class Identity(nn.Module):
    """A model whose outputs are its inputs, so that a test chooses them."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def indices(classes: int, *shape: int, seed: int = 1) -> Tensor:
    return torch.randint(classes, shape, generator=torch.Generator().manual_seed(seed))


def weighted_mean(
    criterion: Callable[..., Any], outputs: Tensor, targets: Tensor, sizes: list[int]
) -> Tensor:
    """The micro-batches' losses, put together with their counts."""
    loss_fn = losses.supervised(criterion)
    total = weight = torch.zeros((), dtype=torch.float64)
    parts = zip(outputs.split(sizes), targets.split(sizes), strict=True)
    for x, y in parts:
        result = loss_fn(Identity(), (x, y))
        count = len(x) if result.count is None else result.count()
        total = total + count * result.loss
        weight = weight + count
    return total / weight


# --- apply_model and supervised -----------------------------------------------------------------


def test_apply_model_takes_tensors_tuples_and_mappings() -> None:
    def model(x: Tensor, y: Any = 0.0) -> Any:
        return x + 10 * y

    one, two = torch.tensor(1.0), torch.tensor(2.0)
    assert losses.apply_model(model, one) == 1
    assert losses.apply_model(model, (one, two)) == 21
    assert losses.apply_model(model, [one, two]) == 21
    assert losses.apply_model(model, {"y": one, "x": two}) == 12


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Linear(4, 2), (3, 4)),
        (nn.Conv2d(3, 4, 3), (2, 3, 8, 8)),
        (nn.ConvTranspose2d(3, 4, 3), (2, 3, 8, 8)),
        (nn.BatchNorm1d(4), (3, 4)),
        (nn.LayerNorm(4), (3, 4)),
        (nn.LSTM(4, 5), (2, 3, 4)),
        (nn.TransformerEncoderLayer(8, 2, 16), (2, 3, 8)),
        (nn.PReLU(), (3, 4)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float64])
def test_inputs_of_a_dtype_that_the_model_does_not_compute_with(
    model: nn.Module, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    says = f"inputs are {dtype} and the model's parameters torch.float32: write inputs.to(torch."
    with pytest.raises(DataError, match=re.escape(says)):
        losses.apply_model(model, torch.ones(shape).to(dtype))


def test_a_fault_after_an_embedding_is_not_one_of_its_integer_inputs() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2).double())
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        losses.apply_model(model, torch.tensor([1, 2]))


@pytest.mark.parametrize(
    "criterion",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1),
        losses.for_task("multiclass", classes=3),
        F.cross_entropy,
        partial(F.cross_entropy, label_smoothing=0.1),
    ],
)
def test_supervised_is_bitwise_the_call_by_hand(criterion: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    model, x, y = nn.Linear(4, 3), torch.randn(16, 4), indices(3, 16)
    by_hand = criterion(model(x), y)
    expected = torch.autograd.grad(by_hand, list(model.parameters()))
    result = losses.supervised(criterion)(model, (x, y))
    got = torch.autograd.grad(result.loss, list(model.parameters()))
    assert torch.equal(result.loss, by_hand)
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    assert torch.equal(result.outputs, model(x))
    assert result.targets is y


def named(criterion: object) -> str:
    """A name without an address, which would differ between the processes that run the tests."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(criterion))


WEIGHT = torch.tensor([0.3, 1.0, 2.5, 0.7, 1.9], dtype=torch.float64)
INDEXED = [
    nn.CrossEntropyLoss(),
    nn.CrossEntropyLoss(ignore_index=2),
    nn.CrossEntropyLoss(WEIGHT),
    nn.CrossEntropyLoss(WEIGHT, ignore_index=2, label_smoothing=0.2),
    nn.CrossEntropyLoss(WEIGHT, ignore_index=-100, label_smoothing=0.2),
    nn.CrossEntropyLoss(label_smoothing=0.3, ignore_index=255),
    nn.NLLLoss(WEIGHT, ignore_index=1),
    nn.NLLLoss(),
    F.cross_entropy,
    F.nll_loss,
    partial(F.cross_entropy, weight=WEIGHT, ignore_index=3, label_smoothing=0.1),
    losses.for_task("multiclass", classes=5),
    losses.for_task("multiclass", class_weights=WEIGHT, label_smoothing=0.1, ignore_index=255),
    losses.for_task("multiclass", class_weights=WEIGHT.tolist(), ignore_index=2),
]


@pytest.mark.parametrize("criterion", INDEXED, ids=named)
@pytest.mark.parametrize("extra", [(), (3,), (2, 3)], ids=str)
def test_micro_batches_add_up_to_their_union_with_class_indices(
    criterion: Callable[..., Any], extra: tuple[int, ...]
) -> None:
    ignored = getattr(criterion, "ignore_index", -100)
    if isinstance(criterion, partial):
        ignored = criterion.keywords["ignore_index"]
    outputs = drawn(23, 5, *extra)
    targets = indices(5, 23, *extra)
    targets[torch.rand(targets.shape, generator=torch.Generator().manual_seed(3)) < 0.3] = ignored
    targets[[0, 9, 10, 22]] = 0  # torch's own losses are NaN where all is ignored
    union = criterion(outputs, targets)
    got = weighted_mean(criterion, outputs, targets, [9, 1, 8, 5])
    torch.testing.assert_close(got, union, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "criterion",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(WEIGHT, label_smoothing=0.1),
        losses.for_task("multiclass", class_weights=WEIGHT, label_smoothing=0.1),
        F.cross_entropy,
    ],
    ids=named,
)
@pytest.mark.parametrize("extra", [(), (4,)], ids=str)
def test_micro_batches_add_up_to_their_union_with_soft_targets(
    criterion: Callable[..., Any], extra: tuple[int, ...]
) -> None:
    outputs = drawn(12, 5, *extra)
    targets = drawn(12, 5, *extra, seed=5).softmax(1)
    union = criterion(outputs, targets)
    got = weighted_mean(criterion, outputs, targets, [5, 1, 6])
    torch.testing.assert_close(got, union, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "criterion",
    [
        nn.MSELoss(),
        nn.L1Loss(),
        nn.SmoothL1Loss(beta=0.5),
        nn.HuberLoss(delta=0.5),
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)),
        nn.KLDivLoss(reduction="batchmean"),
        losses.for_task("regression"),
        losses.for_task("regression", method="mae"),
        losses.for_task("robust", delta=0.3),
        losses.for_task("multilabel", classes=3, pos_weight=[1.0, 2.0, 3.0]),
    ],
    ids=named,
)
def test_micro_batches_add_up_to_their_union_with_dense_targets(
    criterion: Callable[..., Any],
) -> None:
    outputs, targets = drawn(10, 3), drawn(10, 3, seed=7).sigmoid()
    got = weighted_mean(criterion, outputs, targets, [3, 6, 1])
    torch.testing.assert_close(got, criterion(outputs, targets), rtol=1e-12, atol=0)


def test_elements_are_counted_where_samples_differ_in_length() -> None:
    long, short = drawn(2, 8), drawn(3, 5, seed=1)
    union = F.mse_loss(torch.cat([long.flatten(), short.flatten()]), torch.zeros(31).double())
    loss_fn = losses.supervised(nn.MSELoss())
    parts = [loss_fn(Identity(), (x, torch.zeros_like(x))) for x in (long, short)]
    total = sum(part.count() * part.loss for part in parts) / sum(part.count() for part in parts)
    torch.testing.assert_close(total, union, rtol=1e-12, atol=0)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    weighted=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 2**16),
)
def test_gradients_add_up_to_the_unions_with_empty_micro_batches_too(
    sizes: list[int],
    weighted: bool,
    smoothing: float,
    seed: int,
) -> None:
    n = sum(sizes)
    outputs = drawn(n, 5, seed=seed).requires_grad_()
    targets = indices(5, n, seed=seed)
    targets[torch.rand(n, generator=torch.Generator().manual_seed(seed)) < 0.6] = -100
    targets[0] = 1
    weight = WEIGHT if weighted else None
    criterion = losses.for_task("multiclass", class_weights=weight, label_smoothing=smoothing)
    reference = nn.CrossEntropyLoss(weight, label_smoothing=smoothing)
    (expected,) = torch.autograd.grad(reference(outputs, targets), outputs)
    (got,) = torch.autograd.grad(weighted_mean(criterion, outputs, targets, sizes), outputs)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "options", [{}, {"class_weights": [1.0, 2.0, 3.0]}, {"label_smoothing": 0.1}]
)
def test_a_batch_with_every_target_ignored_costs_nothing(options: dict[str, Any]) -> None:
    criterion = losses.for_task("multiclass", ignore_index=7, **options)
    outputs = drawn(4, 3).requires_grad_()
    targets = torch.full((4,), 7)
    loss = criterion(outputs, targets)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(outputs.grad, torch.zeros(4, 3))
    assert criterion.count(outputs, targets) == 0


def test_nan_logits_are_not_taken_for_an_empty_batch() -> None:
    criterion = losses.for_task("multiclass")
    outputs = torch.full((2, 3), float("nan"))
    assert criterion(outputs, torch.tensor([0, -100])).isnan()


def test_a_custom_criterion_says_what_its_mean_is_over() -> None:
    class PerToken(nn.Module):
        def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return ((outputs - targets) ** 2)[targets > 0].mean()

        def count(self, outputs: Tensor, targets: Tensor) -> Any:
            return (targets > 0).sum()

    outputs, targets = drawn(12), drawn(12, seed=4)
    targets[:4] = targets[:4].abs() + 0.1
    targets[4:] = -targets[4:].abs()
    targets[-1] = 1.0
    got = weighted_mean(PerToken(), outputs, targets, [4, 8])
    torch.testing.assert_close(got, PerToken()(outputs, targets), rtol=1e-12, atol=0)


def test_the_count_of_another_forward_is_not_guessed() -> None:
    class Focal(nn.CrossEntropyLoss):
        def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return super().forward(outputs, targets) ** 2

    result = losses.supervised(Focal())(Identity(), (drawn(4, 3), indices(3, 4)))
    assert result.count is None


def test_count_is_a_plain_number_on_the_cpu() -> None:
    result = losses.supervised(nn.CrossEntropyLoss())(Identity(), (drawn(4, 3), indices(3, 4)))
    assert type(result.count()) is int


def test_supervised_survives_copies() -> None:
    loss_fn = losses.supervised(nn.CrossEntropyLoss(ignore_index=1))
    batch = (drawn(4, 3), torch.tensor([0, 1, 1, 2]))
    for twin in (copy.deepcopy(loss_fn), pickle.loads(pickle.dumps(loss_fn))):
        assert twin(Identity(), batch).count() == 2


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (nn.CrossEntropyLoss(reduction="sum"), 'write reduction="mean"'),
        (nn.MSELoss(reduction="none"), 'write reduction="mean"'),
        (partial(F.cross_entropy, reduction="none"), 'write reduction="mean"'),
        (nn.CrossEntropyLoss, "write CrossEntropyLoss()"),
        ("mse", "write e.g. supervised(nn.CrossEntropyLoss())"),
    ],
)
def test_supervised_refuses_what_takes_no_mean(criterion: Callable[..., Any], message: str) -> None:
    with pytest.raises(LossError, match=re.escape(message)):
        losses.supervised(criterion)


@pytest.mark.parametrize(
    "batch", [torch.zeros(2, 3), (torch.zeros(2),), {"x": torch.zeros(2)}, (1, 2, 3)]
)
def test_supervised_refuses_a_batch_that_is_no_pair(batch: object) -> None:
    with pytest.raises(LossError, match=r"write your own loss_fn\(model, batch\)"):
        losses.supervised(nn.MSELoss())(Identity(), batch)


def test_supervised_refuses_silent_broadcasting_and_vectors() -> None:
    loss_fn = losses.supervised(nn.MSELoss())
    with pytest.raises(LossError, match=r"write outputs\.squeeze\(1\) in the model or targets"):
        loss_fn(Identity(), (drawn(4, 1), drawn(4)))
    with pytest.raises(LossError, match="the model returned a tuple, not a tensor"):
        loss_fn(Identity(), ({"x": (drawn(4), drawn(4))}, drawn(4)))
    unreduced = losses.supervised(lambda outputs, targets: (outputs - targets) ** 2)
    with pytest.raises(LossError, match=r"a tensor of shape \(4,\), not a scalar"):
        unreduced(Identity(), (drawn(4), drawn(4)))


# --- the selection table ------------------------------------------------------------------------


def test_unknown_tasks_and_options_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'regression'"):
        losses.for_task("regresion")
    with pytest.raises(
        ConfigError,
        match="no option 'smoothing': its options are class_weights, label_smoothing, ignore_index",
    ):
        losses.for_task("multiclass", smoothing=0.1)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("binary", {"classes": 3}, "write the task 'multiclass'"),
        ("binary", {"pos_weight": 0}, "must be above 0"),
        ("binary", {"pos_weight": [1.0, 2.0]}, "2 entries for 1 classes"),
        ("multiclass", {"classes": 1}, "at least 2"),
        ("multiclass", {"classes": 3, "class_weights": [1, 2]}, "2 entries for 3 classes"),
        ("multiclass", {"class_weights": [1, 0]}, "class_weights=0 must be above 0"),
        ("multiclass", {"class_weights": [1, float("nan")]}, "is not a number"),
        ("multiclass", {"class_weights": "balanced"}, "is not a number"),
        ("multiclass", {"class_weights": 2.0}, "write one weight per class"),
        ("multiclass", {"label_smoothing": 1}, "from 0 to below 1"),
        ("multiclass", {"ignore_index": 1.5}, "is not a class index"),
        ("regression", {"classes": 2}, "leave classes out"),
        ("regression", {"method": "rmse"}, "write method='mse' or method='mae'"),
        ("robust", {"delta": -1}, "must be above 0"),
        ("robust", {"method": "mse"}, "write method='huber' or method='smooth_l1'"),
        ("quantile", {"quantiles": [0.5, 1.0]}, "quantiles=[0.5, 1.0] must be numbers between 0"),
        ("quantile", {"quantiles": (0.9, 0.1)}, "must be numbers between 0 and 1 that ascend"),
        ("quantile", {"quantiles": (0.5, 0.5)}, "write e.g. quantiles=(0.05, 0.5, 0.95)"),
        ("quantile", {"quantiles": [float("nan")]}, "quantiles=[nan] must be"),
        ("quantile", {"quantiles": []}, "quantiles=[] must be"),
        ("quantile", {"quantiles": 0.5}, "quantiles=0.5 must be"),
        ("quantile", {"classes": 3}, "leave classes out"),
        ("ranking", {"method": "logistic", "margin": 1.0}, "leave margin out"),
        ("distillation", {"temperature": 0}, "must be above 0"),
        ("distillation", {"alpha": 1.1}, "from 0 to 1"),
        ("segmentation", {"weights": (1,)}, "write weights="),
        ("segmentation", {"weights": 2.0}, "write weights="),
        ("segmentation", {"smooth": -1}, "must not be below 0"),
    ],
)
def test_options_that_cannot_work_are_refused(
    task: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        losses.for_task(task, **options)


def test_binary_is_torchs_own_for_both_shapes_and_every_target_dtype() -> None:
    outputs = drawn(8)
    targets = indices(2, 8)
    weight = torch.tensor(2.5, dtype=torch.float64)
    expected = F.binary_cross_entropy_with_logits(outputs, targets.double(), pos_weight=weight)
    for dtype in (torch.bool, torch.int64, torch.uint8, torch.float32, torch.float64):
        loss = losses.for_task("binary", classes=2, pos_weight=2.5)
        assert torch.equal(loss(outputs, targets.to(dtype)), expected)
    column = losses.for_task("binary", pos_weight=2.5)(outputs[:, None], targets[:, None])
    assert torch.equal(column, expected)


def test_multiclass_is_bitwise_torchs_own() -> None:
    weight = torch.tensor([0.3, 1.0, 2.5])
    ours = losses.for_task(
        "multiclass", classes=3, class_weights=weight, label_smoothing=0.1, ignore_index=2
    )
    torchs = nn.CrossEntropyLoss(weight, ignore_index=2, label_smoothing=0.1)
    for seed in range(20):
        x = drawn(17, 3, seed=seed, dtype=torch.float32).requires_grad_()
        y = indices(3, 17, seed=seed)
        assert torch.equal(ours(x, y), torchs(x, y))
        (a,) = torch.autograd.grad(ours(x, y.to(torch.int32)), x)
        (b,) = torch.autograd.grad(torchs(x, y), x)
        assert torch.equal(a, b)


def test_regression_and_robust_are_torchs_own() -> None:
    x, y = drawn(6, 2), drawn(6, 2, seed=1)
    assert torch.equal(losses.for_task("regression")(x, y), F.mse_loss(x, y))
    assert torch.equal(losses.for_task("regression", method="mae")(x, y), F.l1_loss(x, y))
    robust = losses.for_task("robust", delta=0.7)
    assert torch.equal(robust(x, y), F.huber_loss(x, y, delta=0.7))
    smooth = losses.for_task("robust", method="smooth_l1", delta=0.7)
    assert torch.equal(smooth(x, y), F.smooth_l1_loss(x, y, beta=0.7))


@settings(max_examples=25, deadline=None)
@given(
    quantiles=st.lists(st.floats(0.001, 0.999), min_size=1, max_size=5, unique=True).map(sorted),
    n=st.integers(1, 40),
    wide=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_the_quantile_loss_is_scikit_learns(
    quantiles: list[float], n: int, wide: bool, seed: int
) -> None:
    outputs = drawn(n, len(quantiles), seed=seed)
    targets = drawn(n, seed=seed + 1)
    each = [
        mean_pinball_loss(targets.numpy(), outputs[:, k].numpy(), alpha=q)
        for k, q in enumerate(quantiles)
    ]
    loss = losses.for_task("quantile", quantiles=quantiles)
    got = loss(outputs, targets[:, None] if wide else targets)
    assert got.item() == pytest.approx(sum(each) / len(each), rel=1e-12, abs=1e-15)
    # Of sorted outputs it is never more.
    assert loss(outputs.sort(dim=1).values, targets) <= got + 1e-12


def test_the_least_quantile_loss_is_at_the_quantile_of_the_targets() -> None:
    targets = drawn(101)
    quantiles = (0.05, 0.5, 0.95)
    loss = losses.for_task("quantile", quantiles=quantiles)
    best = targets.quantile(torch.tensor(quantiles).double())
    at_best = loss(best.expand(101, 3), targets)
    for k in range(3):
        for step in (-0.1, 0.1):
            beside = best.clone()
            beside[k] += step
            assert loss(beside.expand(101, 3), targets) > at_best


def test_half_precision_outputs_are_compared_in_float32() -> None:
    # In bfloat16 the target 4001 would be 4000, and the loss 0.
    loss = losses.for_task("regression")(
        torch.tensor([4000.0], dtype=torch.bfloat16), torch.tensor([4001])
    )
    assert loss.dtype == torch.float32
    assert loss.item() == 1.0


def test_ranking_by_margin_and_by_logistic() -> None:
    scores, y = drawn(9, 2), indices(2, 9) * 2 - 1
    gap = y * (scores[:, 0] - scores[:, 1])
    margin = losses.for_task("ranking", margin=0.5)
    torch.testing.assert_close(margin(scores, y), (0.5 - gap).clamp(min=0).mean())
    logistic = losses.for_task("ranking", method="logistic")
    torch.testing.assert_close(logistic(scores, y), -gap.sigmoid().log().mean())
    pair = (scores[:, 0], scores[:, 1])
    assert torch.equal(losses.for_task("ranking", margin=0.5)(pair, y), margin(scores, y))


def test_distillation_is_the_formula_of_its_docstring() -> None:
    student, teacher = drawn(7, 4).requires_grad_(), drawn(7, 4, seed=2).requires_grad_()
    labels = indices(4, 7)
    p, q = (teacher / 3).softmax(1), (student / 3).softmax(1)
    divergence = (p * (p / q).log()).sum(1).mean()
    expected = 0.7 * 9 * divergence + 0.3 * F.cross_entropy(student, labels)
    loss = losses.for_task("distillation", temperature=3.0, alpha=0.7)(student, (labels, teacher))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert teacher.grad is None
    assert student.grad.abs().sum() > 0


def dice_by_hand(probability: Tensor, truth: Tensor, smooth: float) -> float:
    overlap = (probability * truth).sum().item()
    size = probability.sum().item() + truth.sum().item()
    return 1 - (2 * overlap + smooth) / (size + smooth)


def test_segmentation_of_one_class() -> None:
    x, y = drawn(3, 1, 4, 5), indices(2, 3, 1, 4, 5)
    dice = [dice_by_hand(x[i].sigmoid(), y[i], 1.0) for i in range(3)]
    expected = sum(dice) / 3 + F.binary_cross_entropy_with_logits(x, y.double()).item()
    for dtype in (torch.int64, torch.bool, torch.float32):
        loss = losses.for_task("segmentation")(x, y.to(dtype))
        assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_segmentation_of_many_classes_with_weights_and_ignored_pixels() -> None:
    x, y = drawn(3, 4, 5, 6), indices(4, 3, 5, 6)
    y[0, :2], y[1] = 255, 255
    weight = WEIGHT[:4]
    terms = []
    for i in (0, 2):
        kept = y[i] != 255
        entropy = F.cross_entropy(x[i : i + 1], y[i : i + 1], weight, ignore_index=255).item()
        p = x[i].softmax(0)
        dice = [dice_by_hand(p[c][kept], (y[i] == c)[kept], 0.5) for c in range(4)]
        terms.append(2.0 * sum(dice) / 4 + 0.5 * entropy)
    criterion = losses.for_task(
        "segmentation", classes=4, smooth=0.5, weights=(2.0, 0.5), class_weights=weight,
        ignore_index=255,
    )  # fmt: skip
    assert criterion(x, y).item() == pytest.approx(sum(terms) / 2, rel=1e-12)
    assert criterion.count(x, y) == 2


@pytest.mark.parametrize("channels", [1, 3])
def test_segmentation_micro_batches_add_up_to_their_union(channels: int) -> None:
    shape = (7, 1, 4, 4) if channels == 1 else (7, 4, 4)
    x, y = drawn(7, channels, 4, 4).requires_grad_(), indices(max(channels, 2), *shape)
    y[2], y[3:5, ..., :2] = -100, -100
    criterion = losses.for_task("segmentation")
    union = criterion(x, y)
    got = weighted_mean(criterion, x, y, [2, 1, 4])
    torch.testing.assert_close(got, union, rtol=1e-12, atol=0)
    (a,) = torch.autograd.grad(union, x)
    (b,) = torch.autograd.grad(got, x)
    torch.testing.assert_close(b, a, rtol=1e-12, atol=1e-16)
    assert torch.equal(a[2], torch.zeros_like(a[2]))


# --- inputs that do not fit ---------------------------------------------------------------------

F32 = torch.float32
MISFITS = [
    ("binary", {}, drawn(4, 1), torch.ones(4),
     "write outputs.squeeze(1) in the model or targets.unsqueeze(1)"),
    ("binary", {}, drawn(4), torch.ones(4, 1), "write targets.squeeze(1), or outputs.unsqueeze(1)"),
    ("binary", {}, drawn(4, 2), torch.ones(4), "write the task 'multiclass'"),
    ("binary", {}, drawn(4, 5), torch.ones(4, 5), "write the task 'multilabel'"),
    ("binary", {}, drawn(4), torch.tensor([0, 1, 2, 1]), "target 2 of sample 2 is outside 0 to 1"),
    ("binary", {}, drawn(4), torch.tensor([-1, 1, 1, -1]), "write (targets + 1) / 2"),
    ("binary", {}, drawn(2), torch.tensor([0.0, float("nan")]), "target of sample 1 is nan"),
    ("binary", {}, drawn(4).long(), torch.ones(4), "return the model's logits"),
    ("binary", {}, drawn(0), torch.ones(0), "the batch is empty"),
    ("multiclass", {}, drawn(4, 3), torch.ones(4), "write targets.long()"),
    ("multiclass", {}, drawn(4, 3), torch.ones(4, 1).long(), "write targets.squeeze(1)"),
    ("multiclass", {}, drawn(4, 3), F.one_hot(indices(3, 4), 3), "write targets.argmax(1)"),
    ("multiclass", {}, drawn(4, 3), torch.tensor([0, 1, 3, 5]),
     "target 3 of sample 2 is outside the classes 0 to 2 (C = 3)"),
    ("multiclass", {}, drawn(3, 3), torch.tensor([3, 1, 2]), "write targets - 1"),
    ("multiclass", {}, drawn(3, 3), torch.tensor([0, -1, 2]), "write ignore_index=-1"),
    ("multiclass", {"ignore_index": 9}, drawn(2, 3), torch.tensor([9, 8]),
     "target 8 of sample 1"),
    ("multiclass", {"classes": 5}, drawn(4, 3), indices(3, 4),
     "have 3 classes on dimension 1, the data 5: give the model's last layer 5 outputs"),
    ("multiclass", {}, drawn(4, 1), indices(2, 4), "write the task 'binary'"),
    ("multiclass", {}, drawn(4), indices(2, 4), "fewer than two classes"),
    ("multiclass", {}, drawn(4, 7, 3), indices(3, 4, 7), "write outputs.movedim(-1, 1)"),
    ("multiclass", {}, drawn(4, 3), drawn(4, 5).softmax(1), "last layer 5 outputs"),
    ("multiclass", {}, drawn(4, 3), drawn(4, 3).sigmoid(), "write targets / targets.sum(1"),
    ("multiclass", {"ignore_index": 1}, drawn(4, 3), drawn(4, 3).softmax(1), "remove ignore_index"),
    ("multiclass", {"class_weights": [1, 2]}, drawn(4, 3), indices(3, 4), "2 entries for 3"),
    ("multiclass", {}, drawn(4, 3).softmax(1), indices(3, 4), "remove the softmax"),
    ("multiclass", {}, (drawn(4, 3), None), indices(3, 4), "the model returned a tuple"),
    ("multilabel", {}, drawn(4, 3), indices(3, 4), "F.one_hot(targets, 3).float()"),
    ("multilabel", {}, drawn(4, 3), indices(2, 4, 2), "they must have the same shape"),
    ("multilabel", {"classes": 4}, drawn(4, 3), indices(2, 4, 3), "give its last layer 4 outputs"),
    ("multilabel", {}, drawn(4, 3), torch.full((4, 3), 255), "write targets / 255"),
    ("regression", {}, drawn(4, 1), drawn(4), "write outputs.squeeze(1)"),
    ("regression", {}, drawn(4), torch.tensor([1, 2, float("inf"), 0]), "of sample 2 is inf"),
    ("robust", {}, drawn(4), drawn(4, 1), "robust loss: outputs (4,) against targets (4, 1)"),
    ("quantile", {}, drawn(4), drawn(4), "outputs (4,) are not (N, 3)"),
    ("quantile", {}, drawn(4, 2), drawn(4), "give the model's last layer 3 outputs"),
    ("quantile", {}, drawn(4, 3), drawn(4, 3), "give one target per sample, (N,) or (N, 1)"),
    ("quantile", {}, drawn(4, 3), drawn(3, 1), "against targets (3, 1)"),
    ("quantile", {}, drawn(2, 3), torch.tensor([1, float("nan")]), "of sample 1 is nan"),
    ("ranking", {}, drawn(4), torch.ones(4), "are not (N, 2)"),
    ("ranking", {}, drawn(4, 2), torch.tensor([0, 1, 1, 0]), "write 2 * targets - 1"),
    ("ranking", {}, drawn(4, 2), torch.tensor([0, 1, -1, 1]), "leave ties out"),
    ("ranking", {}, (drawn(4, 1), drawn(4, 1)), torch.ones(4), "write outputs.squeeze(1)"),
    ("ranking", {}, (drawn(4),) * 3, torch.ones(4), "returned 3 tensors"),
    ("distillation", {}, drawn(4, 3), indices(3, 4), "(inputs, (labels, teacher_logits))"),
    ("distillation", {}, drawn(4, 3), (indices(3, 4), drawn(4, 2)), "with the same classes"),
    ("distillation", {}, drawn(4, 3), (drawn(4, 3), drawn(4, 3)), "are not class indices"),
    ("distillation", {}, drawn(4, 3), (indices(3, 4), drawn(4, 3).softmax(1)), "softmax"),
    ("segmentation", {}, drawn(2, 1, 4, 4), torch.ones(2, 4, 4), "write targets.unsqueeze(1)"),
    ("segmentation", {}, drawn(2, 3), indices(3, 2), "have no pixels"),
    ("segmentation", {}, drawn(2, 3, 4, 4), drawn(2, 3, 4, 4), "write targets.argmax(1)"),
    ("segmentation", {}, drawn(2, 3, 4, 4), indices(3, 2, 1, 4, 4), "write targets.squeeze(1)"),
    ("segmentation", {}, drawn(2, 3, 4, 4), indices(5, 2, 4, 4) + 3, "is outside the classes"),
    ("segmentation", {}, drawn(2, 1, 4, 4), torch.full((2, 1, 4, 4), 255.0), "targets / 255"),
    ("segmentation", {"class_weights": [1.0, 2.0]}, drawn(2, 1, 4, 4), torch.ones(2, 1, 4, 4),
     "leave class_weights out"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "options", "outputs", "targets", "message"), MISFITS)
def test_a_misfit_is_refused_with_what_to_write(
    task: str, options: dict[str, Any], outputs: Tensor, targets: Tensor, message: str
) -> None:
    with pytest.raises((LossError, ConfigError), match=re.escape(message)) as caught:
        losses.for_task(task, **options)(outputs, targets)
    assert "\n" not in str(caught.value)


def test_probabilities_are_only_suspected_where_chance_is_out() -> None:
    targets = torch.tensor([0, 1])
    for outputs in (
        torch.tensor([[0.3, 0.7], [0.4, 0.6]]),  # too few numbers to tell
        torch.tensor([[0.2, 0.3, 0.1, 0.4], [1.2, 0.1, -0.2, -0.1]]),
        torch.tensor([[0.2, 0.3, 0.1, 0.4], [0.2, 0.3, 0.1, 0.3]]),
        torch.zeros(2, 4),
    ):
        assert losses.for_task("multiclass")(outputs, targets).isfinite()


def test_shapes_are_checked_again_when_they_change_but_values_are_not() -> None:
    criterion = losses.for_task("regression")
    criterion(drawn(4), drawn(4))
    with pytest.raises(LossError, match="against targets"):
        criterion(drawn(4, 1), drawn(4))
    with pytest.raises(LossError, match="against targets"):
        criterion(drawn(4), drawn(3))
    assert criterion(drawn(3), torch.tensor([1.0, 2.0, float("nan")])).isnan()


def test_a_refused_first_batch_does_not_spare_the_next_one_its_check() -> None:
    criterion = losses.for_task("multiclass")
    for _ in range(2):
        with pytest.raises(LossError, match="outside the classes"):
            criterion(drawn(2, 3), torch.tensor([0, 7]))


def test_a_compiled_loss_is_the_same() -> None:
    criterion = losses.for_task("multiclass", class_weights=[1.0, 2.0, 3.0])
    x, y = drawn(4, 3, dtype=F32), torch.tensor([0, 2, -100, 1])
    compiled = torch.compile(criterion, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, y), criterion(x, y))
    x.requires_grad_()
    loss = compiled(x, torch.full((4,), -100))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(x.grad, torch.zeros(4, 3))


@pytest.mark.parametrize(
    ("task", "options", "outputs", "targets"),
    [
        ("binary", {"pos_weight": 2.0}, drawn(4), indices(2, 4)),
        ("multiclass", {"class_weights": [1.0, 2.0, 3.0]}, drawn(4, 3), indices(3, 4)),
        ("multiclass", {}, drawn(4, 3), indices(3, 4)),
        ("multilabel", {}, drawn(4, 3), indices(2, 4, 3)),
        ("regression", {}, drawn(4), drawn(4)),
        ("quantile", {}, drawn(4, 3), drawn(4)),
        ("ranking", {}, drawn(4, 2), torch.ones(4)),
        ("distillation", {}, drawn(4, 3), (indices(3, 4), drawn(4, 3))),
        ("segmentation", {}, drawn(4, 1, 2, 2), indices(2, 4, 1, 2, 2)),
        ("segmentation", {"ignore_index": 1}, drawn(4, 3, 2, 2), indices(3, 4, 2, 2)),
    ],
)
def test_after_the_first_batch_nothing_is_read_from_the_device(
    task: str, options: dict[str, Any], outputs: Tensor, targets: Tensor
) -> None:
    criterion = losses.for_task(task, **options)
    loss_fn = losses.supervised(criterion)
    loss_fn(Identity(), (outputs, targets))
    # A tensor on "meta" has no values: whatever tries to read one raises.
    away = [t.to("meta") for t in targets] if isinstance(targets, tuple) else targets.to("meta")
    result = loss_fn(Identity(), (outputs.to("meta"), away))
    assert result.loss.shape == ()
    if result.count is not None:
        result.count()
