"""Start-up, each time a new process: the import, the first update, the first batch of huge data.

`import` and `--help` are the whole process, from its start to its end. The first update is from the
start of the process to the end of a training of one update (the spiral's network): it includes the
import of torch. The first batch is that of a shuffled map-style data set whose samples are computed
from their index, from making the loader (with us, from `import trueloop`) to the batch; memory is
what the process has at most above what it had before.

    python -m side_by_side.startup update NAME | batch NAME SAMPLES
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side.workload import OURS, Figure, Goal, LeftOutError, Settings, Turn, Workload

FIGURE = "seconds"
TORCH = "torch's DataLoader"
LARGEST_OF_TORCH = 10**8
"""Its sampler keeps a list of all indices: of 10⁹ it would take some 50 GB."""


def whole_process(*command: str) -> Callable[[Settings], Turn]:
    def contender(settings: Settings) -> Turn:
        def turn() -> dict[str, float]:
            started = time.perf_counter()
            process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - started
            if process.returncode:
                raise RuntimeError(f"{' '.join(command)} ended {process.returncode}")
            return {FIGURE: seconds, "MB": used.ru_maxrss * 1024 / 1e6}

        return turn

    return contender


def asked(*words: str) -> Callable[[Settings], Turn]:
    """A process of this module's own, which says what it has found."""

    def contender(settings: Settings) -> Turn:
        def turn() -> dict[str, float]:
            started = time.time()
            command = [sys.executable, "-m", "side_by_side.startup", *words]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise LeftOutError(done.stderr.strip().splitlines()[-1])
            found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            if "ended" in found:
                found[FIGURE] = found.pop("ended") - started
            return found

        return turn

    return contender


def first_update(name: str) -> dict[str, float]:
    import torch

    from side_by_side import loops
    from side_by_side.contender import megabytes
    from side_by_side.peers import PEERS

    torch.set_num_threads(1)
    makes = {OURS: loops.ours, "by hand": loops.by_hand, **PEERS}
    makes[name](loops.Job(sizes=(2, 128, 128, 3), samples=64, batch=64))(1)
    return {"ended": time.time(), "MB": megabytes("VmHWM")}


def first_batch(name: str, samples: int) -> dict[str, float]:
    import torch
    from torch.utils.data import DataLoader, Dataset

    from side_by_side.contender import megabytes

    class Points(Dataset[tuple[torch.Tensor, int]]):
        """Each sample is computed from its index."""

        def __len__(self) -> int:
            return samples

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return torch.tensor([index % 997, index % 991], dtype=torch.float32), index % 10

    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before, started = megabytes("VmRSS"), time.perf_counter()
    batches: Any
    if name == OURS:
        from trueloop import Feed

        batches = Feed(Points(), 64, shuffle=True)
    else:
        batches = DataLoader(Points(), 64, shuffle=True)
    inputs, _ = next(iter(batches))
    seconds = time.perf_counter() - started
    assert inputs.shape == (64, 2)
    return {FIGURE: seconds, "MB": megabytes("VmHWM") - before}


_IMPORTS = {
    "import torch": "import torch",
    "import torch, then trueloop": "import torch, trueloop",
    "the same, with Step, Feed and fit": (
        "import torch, trueloop; trueloop.Step, trueloop.Feed, trueloop.fit"
    ),
}
_LOOPS = (
    OURS, "by hand", "Fabric", "Lightning", "Accelerate", "Ignite", "skorch", "Keras on torch",
    "transformers' Trainer",
)  # fmt: skip


def _of_size(samples: int) -> str:
    return f"10{str(len(str(samples)) - 1).translate(str.maketrans('789', '⁷⁸⁹'))} samples"


def _contenders() -> dict[str, Callable[[Settings], Turn]]:
    found = {name: whole_process("-c", code) for name, code in _IMPORTS.items()}
    found["trueloop --help"] = whole_process("-m", "trueloop", "--help")
    found |= {f"first update: {name}": asked("update", name) for name in _LOOPS}
    for samples in (10**7, 10**8, 10**9):
        for name in (OURS, TORCH):
            if name == OURS or samples <= LARGEST_OF_TORCH:
                label = f"first batch of {_of_size(samples)}: {name}"
                found[label] = asked("batch", name, str(samples))
    return found


WORKLOAD = Workload(
    title="start-up",
    figures=(Figure(FIGURE, digits=2), Figure("MB", digits=0)),
    contenders=_contenders(),
    compared=False,
    in_parent=True,
    few=(f"first batch of 10⁸ samples: {TORCH}",),
    goals=(
        Goal(
            "s for `import trueloop` beyond torch's own import",
            FIGURE,
            "import torch, then trueloop",
            "import torch",
            at_most=0.1,
            is_difference=True,
        ),
        Goal("s for `trueloop --help`", FIGURE, "trueloop --help", at_most=0.3),
        Goal(
            "s to the first batch of 10⁹ samples",
            FIGURE,
            f"first batch of 10⁹ samples: {OURS}",
            at_most=0.5,
        ),
    ),
)


def main() -> None:
    what, name, *rest = sys.argv[1:]
    find = first_update if what == "update" else partial(first_batch, samples=int(rest[0]))
    print(json.dumps(find(name)))


if __name__ == "__main__":
    main()
