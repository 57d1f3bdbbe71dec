"""CPU threads by the work of an update: counted, never timed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from trueloop import threads
from trueloop.tasks.images import ResNet
from trueloop.tasks.table import TableNet


def test_the_work_of_an_update_is_counted() -> None:
    model = nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
    forward = 2 * 32 * (100 * 50 + 50 * 10)
    weights = 100 * 50 + 50 + 50 * 10 + 10
    assert threads.work_of_update(model, torch.zeros(32, 100)) == 3 * forward + 16 * weights
    twice = threads.work_of_update(model, torch.zeros(64, 100))
    assert twice == 2 * 3 * forward + 16 * weights


def test_counting_leaves_the_model_and_the_random_numbers_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(1)
    assert threads.work_of_update(model, torch.randn(8, 4)) is not None
    after = torch.rand(1)
    torch.manual_seed(1)
    torch.randn(8, 4)
    assert torch.equal(after, torch.rand(1))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.training


class Looks(nn.Module):
    """Its way goes by values, which there are none of on the meta device."""

    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.sum()) > 0 else -x


def test_a_model_that_looks_at_values_is_not_counted() -> None:
    assert threads.work_of_update(Looks(), torch.zeros(2, 2)) is None


def test_each_thread_has_its_share_of_the_work() -> None:
    share = threads.WORK_PER_THREAD
    found = [threads.threads_for(work, 8) for work in (0.0, share, 2 * share, 7.9 * share, 1e18)]
    assert found == [1, 1, 2, 7, 8]
    assert threads.threads_for(1e18, 1) == 1


def test_a_small_table_is_trained_on_one_thread_and_photographs_on_several() -> None:
    table = TableNet(8, [5, 9], 1)
    inputs = (torch.zeros(32, 8), torch.zeros(32, 2, dtype=torch.int64))
    work = threads.work_of_update(table, inputs)
    assert work is not None
    assert threads.threads_for(work, 16) == 1
    net = ResNet(3, (64, 64), 10, width=48, mean=[0.5] * 3, std=[0.2] * 3)
    work = threads.work_of_update(net, torch.zeros(128, 3, 64, 64, dtype=torch.uint8))
    assert work is not None
    assert threads.threads_for(work, 16) == 16


class Pairs(Dataset[Any]):
    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __getitem__(self, index: int) -> Any:
        torch.rand(1)
        if isinstance(self.sample, Exception):
            raise self.sample
        return self.sample


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        raise AssertionError("a stream is left alone")


@pytest.mark.parametrize(
    ("data", "shapes"),
    [
        ((torch.zeros(9, 3), torch.zeros(9)), (7, 3)),
        (((torch.zeros(9, 3), torch.zeros(9, 2, 5)), torch.zeros(9)), ((7, 3), (7, 2, 5))),
        (({"x": torch.zeros(9, 4)}, torch.zeros(9)), {"x": (7, 4)}),
        (TensorDataset(torch.zeros(9, 3), torch.zeros(9)), (7, 3)),
        (Pairs((torch.zeros(1, 8, 8), 3)), (7, 1, 8, 8)),
        (Pairs(("text", 3)), None),
        (Pairs({"x": torch.zeros(3)}), None),
        (Pairs(()), None),
        (Pairs(OSError("gone")), None),
        (Endless(), None),
        ("text", None),
    ],
)
def test_example_inputs_have_the_shapes_of_the_data(data: Any, shapes: Any) -> None:
    torch.manual_seed(0)
    made = threads.example_inputs(data, 7)
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(0))
    if shapes is None:
        assert made is None
    else:
        tree = torch.utils._pytree.tree_map_only(Tensor, lambda x: tuple(x.shape), made)
        assert tree == shapes
        leaves = torch.utils._pytree.tree_leaves(made)
        assert {leaf.device.type for leaf in leaves} == {"meta"}
