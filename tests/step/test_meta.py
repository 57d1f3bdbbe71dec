"""Models on the device meta, which get their values block by block."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_sharded import CRITERION, OPTIMIZERS, Net, batches, mine, refusals, weights
from torch import Tensor, nn

from on_ranks import on_ranks
from trueloop import FSDPOptions, Step, ranks
from trueloop.step import sharding

SIZES: list[int] = []
"""At each initialisation, how many numbers of the model this rank holds whole."""


class Counting(Net):
    """A net that counts, at each initialisation, what this rank holds whole."""

    def __init__(self) -> None:
        super().__init__(width=16, blocks=4)
        self.positions = nn.Parameter(torch.zeros(16))
        self.register_buffer("scale", torch.ones(()), persistent=False)
        self.tied = nn.Linear(16, 3)
        self.tied.weight = self.leave.weight
        counted = nn.Linear.reset_parameters

        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters = lambda m=module: (self.count(), counted(m))  # type: ignore[method-assign]

    def count(self) -> None:
        here = (p for p in self.parameters() if not p.is_meta and not sharding.is_sharded(p))
        SIZES.append(sum(p.numel() for p in here))

    def reset_parameters(self) -> None:
        nn.init.normal_(self.positions)
        nn.init.ones_(self.scale)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.enter(x) * self.scale + self.positions
        for block in self.blocks:
            hidden = block(hidden)
        return self.leave(hidden) + self.tied(hidden)


def _made(blocks: str, seeds: tuple[int, int]) -> dict[str, Any]:
    torch.manual_seed(seeds[min(ranks.rank(), 1)])
    SIZES.clear()
    with torch.device("meta"):
        model = Counting()
    options = FSDPOptions(blocks=["LayerNorm"]) if blocks == "norms" else FSDPOptions()
    step = Step(model, OPTIMIZERS["adamw"](model), CRITERION, parallel=options)
    block = sum(p.numel() for p in model.blocks[0].parameters())
    rest = sum(p.numel() for n, p in model.named_parameters() if not n.startswith("blocks"))
    start = {name: t.tolist() for name, t in weights(step).items()}
    drawn = float(torch.rand(()))
    step(mine(batches(1, 8, torch.float32)[0]))
    return {
        "weights": start,
        "most": max(SIZES),
        "allowed": max(block, rest),
        "all": sum(p.numel() for p in model.parameters()),
        "tied": model.tied.weight is model.leave.weight,
        "drawn": drawn,
        "moved": start != {name: t.tolist() for name, t in weights(step).items()},
        "held": len(step._gradients.parameters) == len(list(model.parameters())),
    }


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    found: dict[str, Any] = on_ranks(1, _made, "repeated", (5, 5))[0]
    return found


@pytest.mark.parametrize("count", [2, 4])
def test_the_values_do_not_depend_on_the_number_of_ranks(count: int, alone: dict[str, Any]) -> None:
    for rank, found in enumerate(on_ranks(count, _made, "repeated", (5, 5))):
        assert found["weights"] == alone["weights"], f"rank {rank} of {count}"
        assert found["most"] <= found["allowed"] < found["all"] / 2, "one block whole at a time"
        assert {found[fact] for fact in ("tied", "moved", "held")} == {True}
        assert found["drawn"] == alone["drawn"], "the generator goes on as in one process"


def test_nor_do_they_with_blocks_of_ones_own() -> None:
    one, two = (on_ranks(count, _made, "norms", (5, 5))[0]["weights"] for count in (1, 2))
    assert one == two


def test_ranks_with_generators_of_their_own_draw_the_values_of_rank_0(
    alone: dict[str, Any],
) -> None:
    first, second = on_ranks(2, _made, "repeated", (5, 6))
    assert first["weights"] == second["weights"] == alone["weights"]
    torch.manual_seed(6)
    assert second["drawn"] == float(torch.rand(())), "the second rank has its own back"


def test_in_one_process_the_values_are_there_too(alone: dict[str, Any]) -> None:
    assert {alone[fact] for fact in ("tied", "moved", "held")} == {True}


class Bare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.gain = Net(), nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) * self.gain  # type: ignore[no-any-return]


class Meddling(Net):
    def reset_parameters(self) -> None:
        for parameter in self.blocks.parameters():
            nn.init.zeros_(parameter)


def _refused() -> dict[str, str]:
    def of(kind: type[nn.Module], parallel: str = "fsdp") -> Any:
        def make() -> None:
            with torch.device("meta"):
                model = kind()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            Step(model, optimizer, CRITERION, parallel=parallel)

        return make

    return refusals({"bare": of(Bare), "meddling": of(Meddling)})


def test_modules_that_cannot_be_given_values_are_named() -> None:
    found = on_ranks(2, _refused)[0]
    assert "'the model' (Bare) has parameters and no reset_parameters()" in found["bare"]
    assert "Meddling.reset_parameters() changes parameters of blocks" in found["meddling"]


def test_torchs_own_layers_get_values() -> None:
    """Attention has its initialisation under another name."""
    torch.manual_seed(0)
    with torch.device("meta"):
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = Step(model, optimizer, lambda m, b: m(b).square().mean(), parallel="fsdp")
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert step(torch.randn(3, 2, 8)).updated
