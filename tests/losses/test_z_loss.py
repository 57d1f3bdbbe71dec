"""The z-loss against its formula in float64, in half precision, and as a part of a step's loss."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import trueloop
from trueloop import losses
from trueloop.errors import ConfigError, LossError


def drawn(*shape: int, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def by_hand(logits: Tensor, kept: Tensor | None = None, weight: float = 1e-4) -> Tensor:
    """log² of the sum of exponentials, position by position."""
    rows = logits.reshape(-1, logits.shape[-1])
    flags = [True] * len(rows) if kept is None else kept.flatten().tolist()
    squares = [row.exp().sum().log() ** 2 for row, flag in zip(rows, flags, strict=True) if flag]
    return weight * sum(squares) / len(squares)


@pytest.mark.parametrize("shape", [(5,), (6, 7), (3, 4, 5)])
def test_it_is_the_mean_of_the_squared_log_of_the_normaliser(shape: tuple[int, ...]) -> None:
    logits = drawn(*shape, scale=3.0)
    torch.testing.assert_close(losses.z_loss(logits), by_hand(logits))
    assert losses.z_loss(logits, weight=0) == 0


def test_positions_that_the_cross_entropy_ignores_do_not_count() -> None:
    logits = drawn(4, 6, 9)
    targets = torch.arange(24).reshape(4, 6) % 9
    targets[1, 2:] = targets[3, 0] = -100
    kept = targets != -100
    expected = by_hand(logits, kept, weight=0.5)
    torch.testing.assert_close(losses.z_loss(logits, targets, weight=0.5), expected)
    torch.testing.assert_close(losses.z_loss(logits, kept, weight=0.5), expected)
    other = losses.z_loss(logits, targets.where(kept, 7), weight=0.5, ignore_index=7)
    torch.testing.assert_close(other, by_hand(logits, kept & (targets != 7), weight=0.5))


def test_its_gradient() -> None:
    logits = drawn(3, 4, 5).requires_grad_()
    targets = torch.tensor([[0, 1, -100, 2]] * 3)
    assert torch.autograd.gradcheck(lambda x: losses.z_loss(x, targets, weight=0.3), logits)
    (gradient,) = torch.autograd.grad(losses.z_loss(logits, targets, weight=0.3), logits)
    # d/dx of w · mean(L²) is w · 2 L softmax(x) / n.
    expected = 0.3 * 2 * logits.logsumexp(-1, keepdim=True) * logits.softmax(-1) / 9
    torch.testing.assert_close(gradient, expected * (targets != -100).unsqueeze(-1))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_half_precision_is_computed_with_in_float32(dtype: torch.dtype) -> None:
    logits = drawn(64, 1000, scale=4.0).to(dtype).requires_grad_()
    exact = logits.detach().double()
    for loss in (losses.z_loss(logits), autocast(logits)):
        assert loss.dtype == torch.float32
        torch.testing.assert_close(loss.double(), by_hand(exact), rtol=2e-6, atol=0)
    (gradient,) = torch.autograd.grad(losses.z_loss(logits, weight=64.0), logits)
    assert gradient.dtype == dtype
    expected = 2 * exact.logsumexp(-1, keepdim=True) * exact.softmax(-1)
    torch.testing.assert_close(gradient, expected.to(dtype), rtol=1e-2, atol=1e-6)


def autocast(logits: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return losses.z_loss(logits)


def test_logits_that_exponentials_of_would_overflow() -> None:
    logits = torch.tensor([[1e4, 0.0], [-1e4, -1e4]])
    expected = 0.5 * (1e4**2 + (1e4 - torch.log(torch.tensor(2.0)).item()) ** 2)
    assert losses.z_loss(logits, weight=1.0).item() == pytest.approx(expected)


def test_where_no_position_counts_it_is_0_and_so_is_its_gradient() -> None:
    logits = drawn(2, 3, 4).requires_grad_()
    loss = losses.z_loss(logits, torch.full((2, 3), -100))
    assert loss == 0
    assert not torch.autograd.grad(loss, logits)[0].any()


def test_as_a_named_part_accumulated_windows_are_the_large_batch() -> None:
    """Ragged micro-batches, one of which has nothing to predict."""
    tokens = torch.arange(8 * 5).reshape(8, 5) % 11
    targets = (tokens * 3 + 1) % 11
    targets[0, 1:] = targets[2:4] = targets[5, :2] = -100

    def loss_fn(model, batch):
        tokens, targets = batch
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
        z = losses.z_loss(logits, targets, weight=0.1)
        return loss + z, (targets != -100).sum(), {"z_loss": z}

    def updated(size: int, accumulate: int) -> tuple[list[Tensor], trueloop.StepRecord]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11)).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        step = trueloop.Step(model, optimizer, loss_fn, accumulate=accumulate)
        for batch in zip(tokens.split(size), targets.split(size), strict=True):
            record = step(batch)
        assert record.updated
        return list(model.parameters()), record

    whole, one = updated(8, 1)
    parts, four = updated(2, 4)
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(one.parts["z_loss"], four.parts["z_loss"])
    assert one.parts["z_loss"] > 0


@pytest.mark.parametrize(
    ("logits", "targets", "says"),
    [
        ([1.0], None, "takes logits of shape .* not a list"),
        (torch.zeros(3, 4, dtype=torch.int64), None, r"not \(3, 4\) int64: give what the model"),
        (torch.tensor(1.0), None, r"of shape \(\.\.\., classes\)"),
        (torch.zeros(0, 4), None, "the batch is empty"),
        (torch.zeros(3, 4), torch.zeros(4, dtype=torch.int64), r"the targets are of shape \(3,\)"),
        (torch.zeros(3, 4), [1, 2, 3], r"and the targets a list"),
        (torch.zeros(3, 4), torch.zeros(3), "give the class indices, or a bool mask"),
    ],
)
def test_what_does_not_fit_is_refused(logits: Tensor, targets: Tensor, says: str) -> None:
    with pytest.raises(LossError, match=says):
        losses.z_loss(logits, targets)


def test_a_weight_below_0_is_refused() -> None:
    with pytest.raises(ConfigError, match="weight=-1 must not be below 0"):
        losses.z_loss(torch.zeros(1, 2), weight=-1)
