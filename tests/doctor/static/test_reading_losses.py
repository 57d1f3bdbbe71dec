"""What calling a loss function leaves behind."""

from __future__ import annotations

import textwrap

import pytest

from trueloop.doctor.model.events import Loss, Made
from trueloop.doctor.model.things import Criterion
from trueloop.doctor.static import check_text

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
model = nn.Linear(4, 3)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
"""


def losses(body: str) -> list[Loss]:
    found: list[Loss] = []

    def listen(event: object) -> None:
        if isinstance(event, Loss):
            found.append(event)

    text = HEAD + textwrap.dedent(body)
    check_text(text, "<text>", rules=[], listen=listen, strict=True)
    return found


@pytest.mark.parametrize(
    ("call", "kind", "reduction", "reduced"),
    [
        ("F.cross_entropy(model(x), y)", "CrossEntropyLoss", "mean", "mean"),
        ("nn.CrossEntropyLoss()(model(x), y)", "CrossEntropyLoss", "mean", "mean"),
        ("nn.modules.loss.NLLLoss(reduction='sum')(model(x), y)", "NLLLoss", "sum", "sum"),
        ("nn.MSELoss(size_average=False).cuda()(model(x), y)", "MSELoss", "sum", "sum"),
        ("nn.L1Loss(reduce=False)(model(x), y)", "L1Loss", "none", None),
        ("F.kl_div(model(x), y, reduction='batchmean')", "KLDivLoss", "batchmean", "mean"),
        ("F.mse_loss(model(x), y, reduction=how)", "MSELoss", None, None),
        ("nn.HuberLoss(**options)(model(x), y)", "HuberLoss", None, None),
    ],
)
def test_kinds_and_reductions(
    call: str, kind: str, reduction: str | None, reduced: str | None
) -> None:
    (loss,) = losses(call)
    assert (loss.criterion.kind, loss.criterion.reduction) == (kind, reduction)
    assert loss.output.is_loss
    assert loss.output.reduced == reduced
    assert loss.output.graph is True
    assert loss.output.criteria == {loss.criterion}
    assert [model.kind for model in loss.output.models] == ["torch.nn.Linear"]


def test_arguments_by_name() -> None:
    (loss,) = losses("F.cross_entropy(target=y, input=model(x))")
    assert loss.input.activation.kind == "linear"
    assert loss.target.activation is None


def test_nothing_is_recorded_without_grad() -> None:
    (loss,) = losses(
        """
        with torch.no_grad():
            value = F.mse_loss(model(x), y)
        """
    )
    assert loss.output.graph is False
    assert loss.output.is_loss


def test_unknown_input_may_have_a_graph() -> None:
    (loss,) = losses("F.mse_loss(something(), y)")
    assert loss.output.graph is None


def test_the_users_own_class_is_not_torchs() -> None:
    (loss,) = losses(
        """
        class CrossEntropyLoss(nn.Module):
            def forward(self, p, y):
                return -p.gather(1, y).log().mean()
        CrossEntropyLoss()(model(x).softmax(1), y)
        """
    )
    assert not loss.criterion.known


def test_reduction_that_is_set_later() -> None:
    (loss,) = losses(
        """
        criterion = nn.MSELoss()
        criterion.reduction = "sum"
        criterion(model(x), y)
        """
    )
    assert loss.output.reduced == "sum"


def test_a_criterion_is_made_once_and_named() -> None:
    found: list[Criterion] = []

    def listen(event: object) -> None:
        if isinstance(event, Made) and isinstance(event.thing, Criterion):
            found.append(event.thing)

    text = HEAD + "loss_fn = nn.BCEWithLogitsLoss(pos_weight=w, reduction='mean')\n"
    check_text(text, "<text>", rules=[], listen=listen, strict=True)
    (criterion,) = found
    assert criterion.name == "loss_fn"
    assert criterion.known
    assert criterion.reduction_written is True
