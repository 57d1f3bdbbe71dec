"""Blocks that are computed again in the backward pass: the same gradients with less memory."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from on_ranks import on_ranks
from trueloop import Step, supervised
from trueloop.errors import ConfigError
from trueloop.step.recompute import recompute_blocks

WIDTH = 16


class Block(nn.Module):
    """Dropout, and running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm, self.dropout = nn.BatchNorm1d(WIDTH), nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.down(torch.tanh(self.up(self.norm(x)))))


def make_model(blocks: int = 4) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, WIDTH), *(Block() for _ in range(blocks)), nn.Linear(WIDTH, 1), nn.Flatten(0)
    )


def make_step(recompute: Any, **options: Any) -> Step:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Step(model, optimizer, supervised(nn.MSELoss()), recompute=recompute, **options)


def trained(recompute: Any, **options: Any) -> tuple[dict[str, Tensor], list[float], Tensor]:
    """The state after four updates, the losses, and what the generator draws next."""
    step = make_step(recompute, **options)
    torch.manual_seed(1)
    losses = []
    for _ in range(4):
        x = torch.randn(8, 3)
        losses.append(float(step((x, x.sum(1))).loss))
    return step.model.state_dict(), losses, torch.rand(3)


def assert_equal(one: Any, two: Any) -> None:
    assert one[0].keys() == two[0].keys()
    assert all(torch.equal(one[0][name], two[0][name]) for name in one[0])
    assert one[1] == two[1]
    assert torch.equal(one[2], two[2])


@pytest.mark.parametrize("recompute", [Block, "Block", "Block/2", 1, "3", [Block, "Linear"]])
@pytest.mark.parametrize("options", [{}, {"precision": "bf16"}, {"accumulate": 2}], ids=str)
def test_the_training_is_the_same_to_the_bit(recompute: Any, options: dict[str, Any]) -> None:
    assert_equal(trained(recompute, **options), trained(None, **options))


def saved_bytes(recompute: Any) -> int:
    """What the forward pass keeps for the backward pass, each tensor once."""
    model, kept = make_model(12), {}
    recompute_blocks(model, recompute)
    own = {each.data_ptr() for each in (*model.parameters(), *model.buffers())}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor  # held, so that no place is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(torch.randn(64, 3)).sum()
    return sum(tensor.nbytes for tensor in kept.values())


def test_less_is_kept() -> None:
    whole, half, none = saved_bytes(1), saved_bytes(2), saved_bytes(None)
    assert whole < 0.2 * none
    assert whole < half < 0.65 * none


def test_the_model_stays_the_users_own() -> None:
    model = make_model()
    names, kinds = list(model.state_dict()), [type(each) for each in model.modules()]
    assert recompute_blocks(model, Block) == ["1", "2", "3", "4"]
    assert recompute_blocks(model, "Block/2") == ["1", "3"]  # again: as they are
    assert (list(model.state_dict()), [type(each) for each in model.modules()]) == (names, kinds)
    assert "forward" not in vars(model[1])
    x = torch.randn(4, 3)
    other = copy.deepcopy(model).eval()
    with torch.no_grad():
        assert torch.equal(other(x), model.eval()(x))


def test_what_is_inside_of_a_block_is_part_of_it() -> None:
    assert recompute_blocks(make_model(), ["Block", nn.Linear]) == ["0", "1", "2", "3", "4", "5"]


def test_an_error_in_a_block_leaves_the_next_update_as_it_is() -> None:
    step = make_step(Block)
    with pytest.raises(RuntimeError):
        step((torch.randn(8, 5), torch.randn(8)))
    torch.manual_seed(1)
    x = torch.randn(8, 3)
    assert float(step((x, x.sum(1))).loss) == trained(None)[1][0]


@pytest.mark.parametrize(
    ("recompute", "says"),
    [
        ("Blok", "no such block. It has Block (4): write e.g. recompute='Block'"),
        (nn.Conv2d, "recompute='Conv2d': the model has no such block"),
        ("Block/0", "write a whole number from 1 after the slash"),
        ("Block/", "write a whole number from 1 after the slash"),
        (0, "recompute=0"),
        (True, "recompute=True"),
        (1.5, "recompute=1.5 is not a class of modules"),
        ([], "recompute is empty"),
        (int, "recompute=the class int is not a class of modules"),
    ],
)
def test_blocks_that_there_are_not(recompute: Any, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make_step(recompute)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_model_without_blocks() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    for recompute in (1, "Linear/1", "Thing"):
        if recompute == "Linear/1":
            assert recompute_blocks(model, recompute) == ["0", "1"]
            continue
        with pytest.raises(ConfigError, match="remove recompute"):
            recompute_blocks(model, recompute)


@pytest.mark.parametrize("compile", [True, "step"])
def test_together_with_a_compiler(compile: Any) -> None:
    with pytest.raises(ConfigError, match="do not go together"):
        make_step(Block, compile=compile)


def _on_a_rank(parallel: str) -> Any:
    ended = []
    for recompute in (None, 1):
        model = make_model().to(torch.float64)
        for each in model.modules():
            if isinstance(each, nn.BatchNorm1d):
                each.eval()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_fn = supervised(nn.MSELoss())
        step = Step(model, optimizer, loss_fn, recompute=recompute, parallel=parallel)
        torch.manual_seed(1)
        for _ in range(3):
            x = torch.randn(8, 3, dtype=torch.float64)
            step((x, x.sum(1)))
        ended.append({k: getattr(v, "full_tensor", lambda v=v: v)() for k, v in
                      step.model.state_dict().items()})  # fmt: skip
    return [torch.equal(ended[0][name], ended[1][name]) for name in ended[0]]


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_on_two_ranks(parallel: str) -> None:
    assert all(all(each) for each in on_ranks(2, _on_a_rank, parallel))
