"""A program that looks at its own stack, or is warned, sees what it would see alone."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from packaging.version import Version
from watched_scripts import alone_and_watched

TEXT = """\
import inspect, logging, sys, threading, traceback, warnings
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("always")
warnings.simplefilter("ignore", ResourceWarning)
logging.basicConfig(format="%(pathname)s:%(lineno)d %(funcName)s %(message)s", stream=sys.stdout)
torch.manual_seed(0)

def shown():
    return [(each.filename.rpartition("/")[2], each.function) for each in inspect.stack()]

class Talks(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)
        self.mode = ""

    def forward(self, x):
        if self.mode == "frames":
            print(shown())
            print([name for name in map(str, traceback.walk_stack(inspect.currentframe()))
                   if "trueloop" in name])
            walk = traceback.walk_stack(None)
            print([each.name for each in traceback.StackSummary.extract(walk)])
            traceback.print_stack()
            for level in (1, 2, 3, 4, 5, 50):
                warnings.warn(f"level {level}", stacklevel=level)
                logging.warning("level %d", level, stacklevel=level)
            logging.warning("with the stack", stack_info=True)
        if self.mode == "raises":
            raise ValueError("inside")
        return self.inner(x)

class Data(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        if i == 3:
            warnings.warn("of a sample", stacklevel=2)
        return torch.full((4,), float(i)), torch.full((1,), float(i))

model = Talks()
optimizer = torch.optim.SGD(model.parameters(), 1e-6)

def train(workers=0):
    for x, y in DataLoader(Data(), 4, num_workers=workers):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss

def attempt(what):
    try:
        what()
    except Exception:
        traceback.print_exc()
        print([f.name for f in traceback.extract_tb(sys.exc_info()[2])],
              [f.function for f in inspect.trace()])
        logging.exception("it failed")
        try:
            raise KeyError("next")
        except KeyError as error:
            print("".join(traceback.TracebackException.from_exception(error).format()))

x = torch.ones(1, 4)
for _ in range(5):  # by now the updates are timed
    loss = train()
float(loss)  # torch's C++ warns of it, once a process
nn.functional.logsigmoid(loss)
train(1)
for model.mode in ("frames", "raises"):
    attempt(lambda: model(x))
    attempt(lambda: nn.Sequential(model)(x))
attempt(lambda: nn.functional.mse_loss(torch.ones(1), "x"))
attempt(lambda: torch.nn.utils.clip_grad_norm_(5, 1.0))
attempt(lambda: torch.nn.utils.clip_grad_norm_((p for p in ()), 1.0))
attempt(lambda: torch.nn.utils.clip_grad_norm_(model.parameters()))
attempt(lambda: optimizer.step(lambda: 1 / 0))
attempt(lambda: torch.ones(1).backward())
with torch.autograd.set_detect_anomaly(True):
    model.mode = ""
    attempt(lambda: model(x * 0).sum().log().mul(0).sqrt().backward())
model.mode = "raises"
thread = threading.Thread(target=lambda: model(x), name="T")
thread.start(); thread.join()
warnings.warn("the line itself", stacklevel=1)
warnings.warn("beyond the program", stacklevel=2)
"""


def test_no_frame_of_ours_is_seen(tmp_path: Path) -> None:
    alone, seen = alone_and_watched(tmp_path, TEXT, options=["--ignore", "TH101"])
    line = TEXT[: TEXT.index("float(loss)")].count("\n") + 1
    warns = Version(version("torch")) >= Version("2.9")
    assert (f"train.py:{line}: UserWarning: Converting a tensor" in alone.err) == warns
    assert "sys:1: UserWarning: beyond the program\n" in alone.err
    closing = "trueloop: watched 48 updates of 1 optimizer; nothing found\n"
    assert seen.out.decode() == alone.out.decode()
    assert seen.err == alone.err + closing
    assert seen.status == alone.status == 0
