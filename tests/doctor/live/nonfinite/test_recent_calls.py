"""At rest the calls of an update are not held but put together again from the program's variables:
what is said of a loss that is not finite is the same, and where they cannot be, they are held."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop.doctor.live.watcher import Watcher

REST = 140
"""Updates after which nobody looks."""
Pairs = Iterable[tuple[Tensor, Tensor]]
Run = Callable[[nn.Module, Any, Pairs], None]


class Share(nn.Module):
    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return scale * x / x.sum(dim=1, keepdim=True)


def network(*more: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4, bias=False), Share(), *more, nn.Linear(4, 1))


def pairs(count: int) -> list[tuple[Tensor, Tensor]]:
    return [(torch.rand(8, 4) + 0.1, torch.rand(8, 1)) for _ in range(count)]


# ---------------------------------------------------------------------- loops that can be recalled


def by_name(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    for x, y in data:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def by_entry(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    criterion = nn.HuberLoss()
    for batch in data:
        optimizer.zero_grad()
        output = model(batch[0])
        loss = criterion(output, batch[1])
        loss.backward()
        optimizer.step()


def by_key(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    for x, y in data:
        batch = {"input": x, "target": y}
        optimizer.zero_grad()
        F.huber_loss(model(input=batch["input"]), batch["target"], delta=0.5).backward()
        optimizer.step()


def in_two_halves(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    first, second = cast(nn.Sequential, model)[:2], cast(nn.Sequential, model)[2:]
    for x, y in data:
        for half in (slice(4, 8), slice(4)):
            part, wanted = x[half], y[half]
            (F.mse_loss(second(first(part)), wanted) / 2).backward()
        optimizer.step()
        optimizer.zero_grad()


def by_closure(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    def update() -> None:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()

    for x, y in data:  # noqa: B007
        update()


# ---------------------------------------------------------------------- loops that cannot


def of_something_passing(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    for x, y in data:
        optimizer.zero_grad()
        F.mse_loss(model(x + 0), y).backward()
        optimizer.step()


def in_another_function(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    def predict(x: Tensor) -> Any:
        return model(x)

    for x, y in data:
        optimizer.zero_grad()
        F.mse_loss(predict(x), y).backward()
        optimizer.step()


def by_attribute(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    state = SimpleNamespace()
    for state.x, y in data:
        optimizer.zero_grad()
        F.mse_loss(model(state.x), y).backward()
        optimizer.step()


def let_go_before(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    x: Any
    for x, y in data:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        x = None
        loss.backward()
        optimizer.step()


def in_turns(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    for number, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if number % 2:
            loss.backward()
        else:
            (2 * loss).backward()
        optimizer.step()


def with_a_weight_that_changes(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    for number, (x, y) in enumerate(data):
        optimizer.zero_grad()
        F.huber_loss(model(x), y, delta=1 / (number + 1)).backward()
        optimizer.step()


def that_sees_itself(model: nn.Module, optimizer: Any, data: Pairs) -> None:
    for x, y in data:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    assert "model" in locals()


RECALLED: list[Run] = [by_name, by_entry, by_key, in_two_halves, by_closure]
HELD: list[Run] = [of_something_passing, in_another_function, by_attribute, let_go_before, in_turns]
HELD += [with_a_weight_that_changes, that_sees_itself]


def messages(watcher: Watcher) -> list[str]:
    watcher.stop()
    return [each.message for each in watcher.findings() if each.code == "TH101"]


@pytest.mark.parametrize("run", [*RECALLED, *HELD], ids=lambda run: run.__name__)
def test_what_is_said_is_the_same_as_while_it_is_looked_at(run: Run, watcher: Watcher) -> None:
    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for number, (x, y) in enumerate(pairs(REST + 1)):
            if number == REST:
                assert not watcher.hub.sampling
                assert watcher.nonfinite.calls.holds is (run in HELD)
                x[2] = 0
            yield x, y

    model = network()
    run(model, torch.optim.SGD(model.parameters(), lr=1e-3), batches())
    (message,) = messages(watcher)
    assert f"in update {REST + 1}: `aten.div.Tensor` in `1` (Share)" in message
    assert "row 2 of the batch" in message


def test_a_model_that_draws_is_held(watcher: Watcher) -> None:
    model = network(nn.Dropout(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = pairs(REST + 1)
    data[REST][0][2] = 0
    by_name(model, optimizer, data)
    assert watcher.nonfinite.calls.holds
    assert "row 2 of the batch" in messages(watcher)[0]


def test_the_target_of_a_loss_and_a_gradient_alone(watcher: Watcher) -> None:
    """What the model gave is in no variable: it is made again for the loss."""
    model = network()
    data = pairs(REST + 1)
    data[REST][1][3] = float("inf")
    by_name(model, torch.optim.SGD(model.parameters(), lr=1e-3), data)
    assert not watcher.nonfinite.calls.holds
    assert "the argument `target` of `mse_loss` contains inf" in messages(watcher)[0]


def test_the_gradient_of_a_loss_alone(watcher: Watcher) -> None:
    class Distance(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return (0 * (x - y)[:1] + (x - y)[1:]).square().sum(dim=1).sqrt().mean()

    model, distance = network(), Distance()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number, (x, y) in enumerate(pairs(REST + 1)):
        if number == REST:
            y[3] = model(x)[3].detach()
        optimizer.zero_grad()
        distance(model(x), y).backward()
        optimizer.step()
    (message,) = messages(watcher)
    assert "although the loss is finite: it begins in `SqrtBackward0`" in message


def test_a_model_that_cannot_be_called_again(watcher: Watcher) -> None:
    class Fickle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()
            self.calls = 0

        def forward(self, x: Tensor) -> Any:
            self.calls += 1
            if self.calls > REST + 1:
                raise RuntimeError("once is enough")
            return self.inner(x)

    model = Fickle()
    data = pairs(REST + 1)
    data[REST][0][2] = 0
    by_name(model, torch.optim.SGD(model.parameters(), lr=1e-3), data)
    (message,) = messages(watcher)
    assert f"in update {REST + 1}" in message


def test_another_loop_is_noticed(watcher: Watcher) -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    by_name(model, optimizer, pairs(REST))
    assert not watcher.nonfinite.calls.holds
    data = pairs(41)
    data[40][0][2] = 0
    by_entry(model, optimizer, data)
    assert watcher.nonfinite.calls.holds
    (message,) = messages(watcher)
    assert "row 2 of the batch" in message


def test_another_model_in_the_same_loop_is_noticed(watcher: Watcher) -> None:
    models = [network(), network()]
    optimizers = [torch.optim.SGD(each.parameters(), lr=1e-3) for each in models]
    by_name(models[0], optimizers[0], pairs(REST))
    assert not watcher.nonfinite.calls.holds
    with torch.no_grad():
        next(models[1].parameters()).fill_(float("nan"))
    by_name(models[1], optimizers[1], pairs(3))
    assert watcher.nonfinite.calls.holds
    assert "the parameter `0.weight` contains NaN" in messages(watcher)[0]


def test_nothing_of_the_program_is_kept_alive(watcher: Watcher) -> None:
    model = network()
    data = pairs(REST)
    seen = [weakref.ref(x) for x, _ in data]

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        while data:
            yield data.pop()

    by_name(model, torch.optim.SGD(model.parameters(), lr=1e-3), batches())
    gc.collect()
    assert [each() for each in seen] == [None] * REST
