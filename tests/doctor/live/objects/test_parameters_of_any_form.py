"""A class may make something else of `parameters()`: the watcher reads what is registered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop.doctor.live.watcher import Watcher


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.vars = nn.ParameterList([torch.randn(2, 3), torch.zeros(2)])
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.drop(x), *self.vars)

    def trained(self) -> Iterable[Any]:
        return self.vars


class ReturnsParameterList(Base):
    """Not an iterator, as in code for meta-learning."""

    def parameters(self) -> Any:  # type: ignore[override]
        return self.vars


class ReturnsTuple(Base):
    def parameters(self, recurse: bool = True) -> Any:
        return tuple(self.vars)


class NeedsAnArgument(Base):
    def parameters(self, part: str) -> Any:  # type: ignore[override]
        return {"all": list(self.vars)}[part]


class KeepsAList(Base):
    """An attribute of that name."""

    def __init__(self) -> None:
        super().__init__()
        self.parameters = list(self.vars)  # type: ignore[assignment]


def train(model: Base, *, clears: bool) -> None:
    """Sixty updates, and a validation loss after every twentieth."""
    optimizer = torch.optim.SGD(model.trained(), lr=0.01)
    for update in range(60):
        x, y = torch.randn(8, 3), torch.randint(0, 2, (8,))
        if clears:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if update % 20 == 19:
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(x), y)
            model.train()


@pytest.mark.parametrize("kind", [ReturnsParameterList, ReturnsTuple, NeedsAnArgument, KeepsAList])
@pytest.mark.parametrize("clears", [True, False])
def test_parameters_of_any_form_are_read(kind: type[Base], clears: bool) -> None:
    torch.manual_seed(0)
    watcher = Watcher()
    watcher.start()
    try:
        train(kind(), clears=clears)
    finally:
        watcher.stop()
    found = [finding.code for finding in watcher.findings() if finding.code.startswith("TL")]
    assert found == ([] if clears else ["TL102"])
    assert watcher.hub.errors == []
