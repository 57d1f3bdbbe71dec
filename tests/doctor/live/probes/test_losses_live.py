"""What the watcher makes of losses whose graph says nothing, or that were written by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.objects.registry import ObjectRegistry
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.events import Loss
from trueloop.doctor.model.measurements import Measured


def codes(watcher: Watcher) -> list[str]:
    watcher.stop()
    return [found.code for found in watcher.findings()]


def losses(watcher: Watcher) -> list[Loss]:
    seen: list[Loss] = []
    watcher.recorder.listeners.append(
        lambda event: seen.append(event) if isinstance(event, Loss) else None
    )
    return seen


@pytest.mark.parametrize(
    ("arguments", "keywords", "reduction"),
    [
        ((), {}, "mean"),
        ((), {"reduction": "sum"}, "sum"),
        ((None, None, "none"), {}, "none"),
        ((False,), {}, "sum"),
        ((), {"size_average": True}, "mean"),
        ((), {"reduce": False}, "none"),
    ],
)
@pytest.mark.filterwarnings("ignore:size_average")
def test_reduction_is_read_however_it_is_given(
    watcher: Watcher, arguments: tuple[object, ...], keywords: dict[str, object], reduction: str
) -> None:
    seen = losses(watcher)
    F.mse_loss(torch.zeros(3), torch.ones(3), *arguments, **keywords)  # type: ignore[arg-type]
    assert [event.criterion.reduction for event in seen] == [reduction]


def test_subclass_of_a_criterion_is_that_loss(watcher: Watcher) -> None:
    class Mine(nn.CrossEntropyLoss):
        pass

    seen = losses(watcher)
    Mine()(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))
    assert [event.criterion.kind for event in seen] == ["CrossEntropyLoss"]


def test_linear_layers_are_told_from_other_products() -> None:
    x = torch.randn(2, 5, 4)
    layer = nn.Linear(4, 3)
    for logits in (layer(x), layer(x).reshape(-1, 3), nn.Linear(4, 3, bias=False)(x[0])):
        found = autograd_graph.activation(logits)
        assert found is not None
        assert found.kind == "linear"
    assert autograd_graph.activation(layer(x[0]) @ layer(x[1]).t()) is None
    assert (
        autograd_graph.activation(layer(x[0]).exp() / layer(x[0]).exp().sum(1, keepdim=True))
        is None
    )


def test_dimension_is_unknown_once_dimensions_have_moved() -> None:
    probabilities = nn.Linear(4, 3)(torch.randn(5, 4)).softmax(0)
    kept, moved = (
        autograd_graph.activation(probabilities),
        autograd_graph.activation(probabilities.t()),
    )
    assert kept is not None
    assert moved is not None
    assert (kept.dim, moved.dim) == (0, None)


def test_place_of_a_softmax_is_noted(watcher: Watcher) -> None:
    probabilities = F.softmax(nn.Linear(4, 3)(torch.randn(5, 4)), dim=1)
    found = autograd_graph.tensor_of(probabilities, ObjectRegistry()).activation
    assert found is not None
    assert found.place.path == __file__


def test_warning_of_softmax_points_to_the_same_line(watcher: Watcher) -> None:
    with pytest.warns(UserWarning, match="Implicit dimension") as caught:
        F.softmax(torch.randn(2, 3))
    assert caught[0].filename == __file__


def values(watcher: Watcher, loss: str, make: object, batches: int = 6) -> list[str]:
    assert callable(make)
    with torch.no_grad():
        for _ in range(batches):
            x = make(torch.randn(64, 4))
            if loss == "cross_entropy":
                F.cross_entropy(x, torch.zeros(64, dtype=torch.long))
            else:
                F.binary_cross_entropy_with_logits(x, torch.zeros(64, 4))
    return codes(watcher)


def test_probabilities_without_a_graph(watcher: Watcher) -> None:
    assert values(watcher, "cross_entropy", lambda x: x.softmax(1)) == ["TL401"]


def test_logits_without_a_graph(watcher: Watcher) -> None:
    assert values(watcher, "cross_entropy", lambda x: x.abs().clamp(0, 1)) == []


def test_sigmoid_without_a_graph(watcher: Watcher) -> None:
    assert values(watcher, "bce", lambda x: torch.sigmoid(3 * x)) == ["TL402"]


def test_small_logits_that_lie_between_0_and_1_by_chance(watcher: Watcher) -> None:
    assert values(watcher, "bce", lambda x: 0.3 + 0.02 * x) == []


def test_logits_that_leave_the_unit_once(watcher: Watcher) -> None:
    turns = iter(range(6))
    assert values(watcher, "bce", lambda x: x.sigmoid() * (1.2 if next(turns) == 3 else 1)) == []


@pytest.mark.parametrize(
    ("prediction", "target", "expected"),
    [
        ((8, 1), (8,), ["TL404"]),
        ((8,), (8, 1), ["TL404"]),
        ((3, 3, 1), (3, 3), ["TL404"]),
        ((8, 1), (8, 1), []),
        ((8, 1), (1, 8), []),
        ((1, 1), (1,), []),
        ((8, 3), (), []),
        ((8, 3), (3,), []),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_shapes_that_broadcast(
    watcher: Watcher, prediction: tuple[int, ...], target: tuple[int, ...], expected: list[str]
) -> None:
    F.mse_loss(torch.randn(prediction), torch.randn(target))
    assert codes(watcher) == expected


def test_nothing_is_read_while_nobody_looks(watcher: Watcher) -> None:
    measured: list[Measured] = []
    watcher.recorder.listeners.append(
        lambda event: measured.append(event) if isinstance(event, Measured) else None
    )
    watcher.hub.sampling = False
    F.cross_entropy(torch.rand(8, 3), torch.zeros(8, dtype=torch.long))
    assert measured == []
