"""What Python and torch say of a program names the program's own lines, watched or not: warnings
(their line, and how often they are shown) and tracebacks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from watched_scripts import FIRST, HEAD, run, run_warm

CONSOLE = [str(Path(sys.executable).with_name("trueloop")), "watch"]
MODULE = [sys.executable, "-m", "trueloop", "watch"]

LOOP = (
    HEAD
    + """\
import warnings
warnings.filterwarnings(FILTER)

class Fussy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model

    def forward(self, given, fails=False):
        for level in range(1, 5):
            warnings.warn(f"level {level}", UserWarning, stacklevel=level)
        if fails:
            return self.inner(given[:, :3])
        return self.inner(given)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given):
        return given * 2

    @staticmethod
    def backward(ctx, gradient):
        if update == FAILS and WHERE == "backward":
            raise ArithmeticError("no gradient")
        return gradient * 2

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * UPDATES

    def __getitem__(self, index):
        if index == 8 * FAILS + 1 and WHERE == "data":
            raise KeyError(index)
        return torch.randn(4), torch.randn(1)

fussy = Fussy()
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
schedule.step()
for update, (inputs, targets) in enumerate(DataLoader(Data(), 8)):
    optimizer.zero_grad()
    fails = update == FAILS
    if update % 2:
        found = fussy(inputs, fails and WHERE == "forward")
    else:
        found = fussy(inputs)
    warnings.warn("mine")
    try:
        if fails and WHERE == "loss":
            found = found[:3, 0, 0]
        loss = Double.apply(nn.functional.mse_loss(found, targets))
    except IndexError as error:
        raise RuntimeError("no loss") from error
    nn.functional.softmax(found.detach())
    loss.backward()
    if fails and WHERE == "step":
        optimizer.param_groups[0]["lr"] = "fast"
    optimizer.step()
    if fails and WHERE == "schedule":
        schedule.gamma = None
        schedule.step_size = 1
    schedule.step()
    if update == UPDATES // 2:
        schedule.step(3)
"""
)


def said(tmp_path: Path, text: str, command: list[str], *, warm: bool = True) -> tuple[str, str]:
    """What the program alone and what the watched one print as errors, to where we speak."""
    start = run_warm if warm else run
    (tmp_path / "train.py").write_text(text.replace(FIRST, "") if warm else text)
    alone = start([sys.executable, "train.py"], tmp_path)
    watched = start([*command, "train.py"], tmp_path)
    assert watched.status == alone.status
    return alone.err, watched.err[: len(alone.err)]


@pytest.mark.parametrize("how", ["always", "default"])
def test_warnings_name_the_lines_that_they_name_alone(how: str, tmp_path: Path) -> None:
    """Through the updates that are looked at, those whose time is taken, and those at rest."""
    values = f'FILTER, FAILS, WHERE, UPDATES = "{how}", -1, "", 130\n'
    alone, watched = said(tmp_path, values + LOOP, MODULE)
    assert watched == alone
    assert alone.count("UserWarning: level 4") == {"always": 130, "default": 2}[how]


@pytest.mark.parametrize(
    ("where", "update"),
    [
        ("forward", 3),  # looked at
        *((where, 121) for where in ("forward", "loss", "backward", "step", "schedule", "data")),
    ],
)
def test_tracebacks_are_those_of_the_program_alone(where: str, update: int, tmp_path: Path) -> None:
    values = f'FILTER, FAILS, WHERE, UPDATES = "ignore", {update}, "{where}", 130\n'
    cold = (where, update) == ("forward", 121)
    alone, watched = said(tmp_path, values + LOOP, CONSOLE, warm=not cold)
    assert alone.startswith("Traceback")
    assert watched == alone
