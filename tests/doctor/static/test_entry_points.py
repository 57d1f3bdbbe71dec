"""Ways in which a program's own function is called by a library."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import torch
from torch import nn

def main({arguments}):
    network = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max={length})
    for epoch in range(epochs):
        for _ in range(50):
            x = torch.randn(32, 6)
            optimizer.zero_grad()
            (network(x) - x[:, :1]).pow(2).mean().backward()
            optimizer.step()
        {tick}

if __name__ == "__main__":
    {ending}
"""
ENDINGS = {
    "plain": "main()",
    "fire": "import fire; fire.Fire(main)",
    "absl": "from absl import app; app.run(main)",
    "tyro": "import tyro; tyro.cli(main)",
    "typer": "import typer; typer.run(main)",
    "jsonargparse": "import jsonargparse; jsonargparse.CLI(main)",
    "profiler": "import cProfile; cProfile.Profile().runcall(main)",
    "partial": "import functools; start = functools.partial(main); start()",
    "thread": "import threading; threading.Thread(target=main).start()",
    "detectron2": "from detectron2.engine import launch; launch(main, 8)",
}


def found(ending: str, *, arguments: str, length: str, tick: str) -> list[str]:
    text = PROGRAM.format(
        arguments=arguments, length=length, tick=tick, ending=ENDINGS.get(ending, ending)
    )
    return [each.code for each in check_text(text, "program.py", strict=True).findings]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_function_is_the_program(ending: str) -> None:
    """Only of a whole program is it known how long the run is."""
    arguments = "argv=None, epochs=200" if ending == "absl" else "epochs=200"
    told = found(ending, arguments=arguments, length="1000", tick="schedule.step()")
    # Where the library makes an option of it, 200 is not all that it may be.
    option = ending in ("fire", "absl", "tyro", "typer", "jsonargparse")
    assert told == ([] if option else ["TL605"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_option_is_the_same_everywhere(ending: str) -> None:
    arguments = "argv=None, epochs=200" if ending == "absl" else "epochs=200"
    assert found(ending, arguments=arguments, length="epochs", tick="schedule.step()") == []
    tick = "schedule.step(); schedule.step()"
    assert found(ending, arguments=arguments, length="epochs", tick=tick) == ["TL608"]


@pytest.mark.parametrize("ending", ["fire.Fire()", "import fire; fire.Fire({'run': main})"])
def test_a_function_that_is_not_named_is_read_by_itself(ending: str) -> None:
    assert found(ending, arguments="epochs", length="epochs", tick="pass") == ["TL606"]
