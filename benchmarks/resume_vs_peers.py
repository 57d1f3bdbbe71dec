"""A run stopped at update 27 of 60 and resumed, with five trainers: how much of it is repeated.

    pip install -c constraints.txt -e '.[peers]'
    python benchmarks/resume_vs_peers.py [--jobs 2]

Each trainer trains the same small network (`resume_peers/toy.py`) in three processes: straight;
killed by SIGKILL in update 28, in the middle of the second epoch, after its checkpoint of update
27; resumed from that as its documentation says. Counted is how many of the 33 losses left are,
update by update and to the last bit, those of the same trainer's straight run. Where the
documentation offers more than the defaults, that is a row of its own; what each row does stands in
`resume_peers/with_*.py`.

Three runs each: plain; with dropout; with random augmentation in `__getitem__`. No workers.
`fsync` counts the calls for files under the run's folder before the kill, by strace where it is
installed, else those made from Python.

Prints a table, writes benchmarks/results/resume_vs_peers.json, and ends with 1 if Trueloop does not
repeat all losses, or if a trainer's first 27 are not those of its straight run.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common import save_results, table
from resume_peers.toy import DATA, STOP, UPDATES

SCRIPTS = Path(__file__).parent / "resume_peers"
LEFT = UPDATES - STOP
PACKAGES = {
    "Lightning": "lightning",
    "Accelerate": "accelerate",
    "Ignite": "pytorch-ignite",
    "transformers": "transformers",
    "Trueloop": "trueloop",
}
# Each trainer's ways to resume: the defaults, and what its documentation offers beyond.
WAYS = (
    ("Lightning", "default"),
    ("Lightning", "resumable loader"),
    ("Accelerate", "default"),
    ("Accelerate", "skip_first_batches"),
    ("Accelerate", "seedable sampler"),
    ("Ignite", "default"),
    ("Ignite", "DeterministicEngine"),
    ("Ignite", "DeterministicEngine, 1 worker"),
    ("transformers", "default"),
    ("transformers", "full_determinism"),
    ("Trueloop", "default"),
)
QUIET = {
    "PYTHONWARNINGS": "ignore",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "OMP_NUM_THREADS": "1",
}


def part(name: str, module: str, way: str, data: str, folder: Path) -> dict[str, Any]:
    """One process of a trial: its losses, the digest of its weights, its calls of fsync."""
    checkpoints = folder / ("checkpoints" if name != "straight" else "checkpoints_straight")
    checkpoints.mkdir(exist_ok=True)
    out, trace = folder / f"{name}.json", folder / "fsync.txt"
    script = str(SCRIPTS / f"with_{module}.py")
    command = [sys.executable, script, way, data, name, str(checkpoints), str(out)]
    traced = name == "stopped" and shutil.which("strace") is not None
    if traced:
        calls = "trace=fsync,fdatasync,sync_file_range,syncfs,sync"
        command = ["strace", "-f", "-y", "-e", calls, "-o", str(trace), *command]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **QUIET})
    expected = (-signal.SIGKILL, 128 + signal.SIGKILL) if name == "stopped" else (0,)
    if done.returncode not in expected:
        raise RuntimeError(
            f"{module}, {way}, {data}, {name}: ended {done.returncode}\n{done.stderr}"
        )
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if traced:
        found["fsyncs"] = fsyncs_in(trace.read_text(errors="replace"), checkpoints)
    return found


def fsyncs_in(trace: str, folder: Path) -> int:
    """Flushes of files under `folder` in strace's lines, and of everything (`sync`)."""
    inside = re.compile(
        r"\b(?:fsync|fdatasync|sync_file_range|syncfs)\(\d+<" + re.escape(str(folder))
    )
    return len(inside.findall(trace)) + len(re.findall(r"\bsync\(\)", trace))


def trial(module: str, way: str, data: str) -> dict[str, Any]:
    """What a resumed run has in common with the straight one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        straight, stopped, resumed = (
            part(which, module, way, data, folder) for which in ("straight", "stopped", "resumed")
        )
    counts = [len(found["losses"]) for found in (straight, stopped)]
    if counts != [UPDATES, STOP]:
        raise RuntimeError(f"{module}, {way}, {data}: {counts} losses, not {UPDATES} and {STOP}")
    rest = zip(straight["losses"][STOP:], resumed["losses"], strict=False)
    return {
        "repeated": sum(one == other for one, other in rest),
        "losses": len(resumed["losses"]),
        "weights_equal": straight["weights"] == resumed["weights"],
        "first_equal": straight["losses"][:STOP] == stopped["losses"],
        "fsyncs": stopped["fsyncs"],
    }


def row(trainer: str, way: str, trials: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "trainer": trainer,
        "way": way,
        **{data: trials[data]["repeated"] for data in DATA},
        "weights equal": ", ".join("yes" if trials[d]["weights_equal"] else "no" for d in DATA),
        "fsync": max(trials[data]["fsyncs"] for data in DATA),
    }


def check_installed() -> None:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name.lower()) is None]
    if missing:
        print(
            f"{', '.join(missing)} not installed: pip install -c constraints.txt -e '.[peers]'",
            file=sys.stderr,
        )
        sys.exit(2)


def is_sound(rows: list[dict[str, Any]]) -> bool:
    """Every trainer repeats itself up to the stop, and ours after it too."""
    trials = [(one["trainer"], found) for one in rows for found in one["trials"].values()]
    return all(
        found["first_equal"]
        and (name != "Trueloop" or (found["repeated"] == LEFT and found["weights_equal"]))
        for name, found in trials
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="trials at once")
    options = parser.parse_args()
    check_installed()
    began = time.perf_counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {
            (name, way, data): pool.submit(trial, name.lower(), way, data)
            for name, way in WAYS
            for data in DATA
        }
        rows = []
        for name, way in WAYS:
            trials = {data: running[name, way, data].result() for data in DATA}
            rows.append({"trainer": name, "way": way, "trials": trials})
            print(f"{name}, {way}: {[trials[data]['repeated'] for data in DATA]}", flush=True)
    print("\n" + table([row(**one) for one in rows]))
    print(f"(losses repeated of {LEFT}: plain, with dropout, with random augmentation)")
    facts = {
        "versions": {name: importlib.metadata.version(PACKAGES[name]) for name in PACKAGES},
        "updates": UPDATES,
        "stopped_at": STOP,
        "losses_left": LEFT,
        "fsync_counted_by": "strace" if shutil.which("strace") else "wrapped os.fsync",
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(save_results("resume_vs_peers", {**facts, "rows": rows}))
    return 0 if is_sound(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
