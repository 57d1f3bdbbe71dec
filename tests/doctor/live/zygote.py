"""A process that watches, and forks once for each program: the hooks are in by then.

    python -m zygote

reads one JSON object a line, `{"path", "folder"}`, and answers with one, `{"findings", "errors",
"raised", "noticed"}`; a finding is `[code, severity, line]`, `noticed` the updates that there had
been when the first of a rule about the order of the step was found.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import runpy
import signal
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from watcher_imports import import_and_freeze  # isort: skip  (before torch: it stops collections)
import torch
import torch.distributed as dist

from trueloop.doctor.live.track import Track
from trueloop.doctor.live.watcher import Watcher

sys.path.append(str(Path(__file__).parents[2] / "warm"))
from huge_pages import collapse

del sys.path[-1]
torch.set_num_threads(1)

LONGEST = 120
"""Seconds after which a program is ended."""
IMPORTED = re.compile(r"^from (sklearn[.\w]*)", re.MULTILINE)
"""What is imported before the fork: it takes longer than the ten programs that need it."""


def keep_groups() -> None:
    """Hold each process group until this process ends.

    Else the last to hold a destroyed gloo group is the reducer of a DDP model, and its destructor
    joins the group's threads without releasing the GIL. Such a thread waits for the GIL if it is
    the last to hold the `contextvars.Context` of the last backward (torch 2.13 stores it in the
    thread-local state that every all-reduce copies): a deadlock, in one of ten such programs on a
    busy machine, with or without a watcher.
    """
    destroy, kept = dist.destroy_process_group, []

    def destroyed(group: dist.ProcessGroup | None = None) -> None:
        kept.extend(dist.distributed_c10d._world.pg_map)
        destroy(group)

    dist.destroy_process_group = destroyed


FIRST = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.ones(8, 3), torch.ones(8, dtype=torch.long))
for inputs, targets in DataLoader(data, batch_size=2, shuffle=True):
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
"""


def watch_first() -> None:
    """What torch and the watcher do at their first training only, each fork would do again."""
    state = torch.get_rng_state()
    watcher = Watcher()
    watcher.start()
    with TemporaryDirectory() as folder:
        path = Path(folder, "train.py")
        path.write_text(FIRST)
        runpy.run_path(str(path), run_name="__main__")
    watcher.stop()
    assert (watcher.findings(), watcher.hub.errors) == ([], [])
    torch.set_rng_state(state)


def watched(path: str, folder: str, watcher: Watcher) -> dict[str, Any]:
    """Run a program under the watcher, which was started before the fork, and say what was
    found."""
    watcher.hub._process, watcher.nonfinite.bundles = os.getpid(), folder
    keep_groups()
    os.chdir(folder)
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    if os.path.basename(os.path.dirname(path)).startswith("TS"):
        watcher.timer.least = 0  # about such short runs nothing would be said unasked
    noticed: list[int] = []
    if os.path.basename(os.path.dirname(path)).startswith("TL1"):

        def judged(track: Track) -> None:
            if not noticed and track.runner.findings():
                noticed.append(watcher.hub.updates)

        watcher.recorder.judged = judged
    raised = ""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        raised = "" if not end.code else f"SystemExit({end.code})"
    except BaseException:
        raised = traceback.format_exc()
    watcher.stop()
    found = watcher.findings()
    return {
        "findings": [[f.code, f.severity, f.place.line] for f in found],
        "messages": [f.message for f in found],
        "errors": watcher.hub.errors,
        "cuda": torch.cuda.is_available(),
        "raised": raised,
        "noticed": noticed,
    }


def main() -> None:
    import_and_freeze()
    watch_first()
    watcher = Watcher()
    watcher.start()
    gc.collect()
    gc.freeze()
    collapse()
    # A program must not run within a loop of ours: it would seem to be one of its own.
    order, writer = serve()
    if not order:
        return
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        answer = watched(order["path"], order["folder"], watcher)
    except BaseException:
        answer = {"findings": [], "errors": [traceback.format_exc()], "raised": ""}
    with os.fdopen(writer, "w") as pipe:
        json.dump(answer, pipe)
    os._exit(0)


def serve() -> tuple[dict[str, str], int]:
    """Fork for each order; returns in the children, with their order and where they answer, and
    with none once there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        for name in IMPORTED.findall(Path(order["path"]).read_text("utf-8")):
            importlib.import_module(name)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            signal.alarm(LONGEST)
            return order, writer
        os.close(writer)
        with os.fdopen(reader) as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        died = {"findings": [], "errors": [], "raised": f"ended with wait status {status}"}
        print(text or json.dumps(died), flush=True)
    return {}, -1


if __name__ == "__main__":
    main()
