"""`trueloop watch` on other people's trainers: Lightning, Accelerate, Ignite, skorch, transformers'
`Trainer`, and keras on torch.

The programs of `trainer_programs` are correct: nothing may be found in them that is an error or a
warning, and their weights must be the same to the bit with and without the watcher. Then one bug at
a time is planted in the part that the user writes, as far as the trainer lets him make it there:
each must be found, with a line of the user's own file.

    python benchmarks/watch_trainers.py [--only NAME ...]

needs what `pip install trueloop[peers]` installs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from common import save_results, table

PROGRAMS = Path(__file__).parent / "trainer_programs"
PACKAGES = "lightning accelerate pytorch-ignite skorch transformers keras".split()


class Bug(NamedTuple):
    code: str
    changes: tuple[tuple[str, str], ...]
    """What is written in the program, and what is written in its place."""


_SOFTMAX = Bug("TL401", (("return self.kind(hidden), ", "return self.kind(hidden).softmax(1), "),))
_BROADCAST = Bug("TL404", (("self.size(hidden).squeeze(1)", "self.size(hidden)"),))
_KEPT = ("seen.append(loss.detach())", "seen.append(loss)")
_HEAD_LEFT_OUT = ("AdamW(model.parameters(), lr=0.01)", "AdamW(model.trunk.parameters(), lr=0.01)")

_KERAS_LOSS = "F.cross_entropy(logits, kinds)"

BUGS: dict[str, list[Bug]] = {
    # Its optimizers are none of torch's, so no step of them is seen: what needs one is not found.
    "keras": [
        Bug("TL401", ((_KERAS_LOSS, "F.cross_entropy(logits.softmax(1), kinds)"),)),
        Bug("TL404", ((_KERAS_LOSS, f"{_KERAS_LOSS} + F.mse_loss(logits[:, :1], kinds.float())"),)),
    ],
    "lightning": [
        Bug(
            "TL201",
            (
                (
                    "    def on_train_epoch_end(self) -> None:\n",
                    "    def on_train_epoch_end(self) -> None:\n        self.eval()\n"
                    "        with torch.no_grad():\n"
                    "            self(torch.zeros(4, FEATURES))\n",
                ),
            ),
        ),
        Bug("TL204", (_KEPT, ("self.seen.clear()", "pass"))),
        Bug("TL302", (("AdamW(self.parameters(),", "AdamW(self.trunk.parameters(),"),)),
        _SOFTMAX,
        _BROADCAST,
    ],
    "accelerate": [
        Bug(
            "TL201",
            (
                ("        model.train()\n", ""),
                (
                    "    for _ in range(EPOCHS):\n",
                    "    model.train()\n    for _ in range(EPOCHS):\n",
                ),
            ),
        ),
        Bug("TL204", (_KEPT, ("        seen = []\n", ""), ("    for _ in range(EPOCHS):\n",
            "    seen = []\n    for _ in range(EPOCHS):\n"))),
        Bug("TL302", (_HEAD_LEFT_OUT,)),
        _SOFTMAX,
        _BROADCAST,
        Bug(
            "TL101",
            (
                ("                accelerator.backward(loss)\n",
                 "                accelerator.backward(loss)\n"
                 "                optimizer.zero_grad()\n"),
                ("                schedule.step()\n                optimizer.zero_grad()\n",
                 "                schedule.step()\n"),
            ),
        ),
    ],
    "ignite": [
        Bug("TL201", (("        model.train()\n", ""),)),
        Bug("TL204", (_KEPT,)),
        Bug("TL302", (_HEAD_LEFT_OUT,)),
        _SOFTMAX,
        _BROADCAST,
        Bug(
            "TL101",
            (
                ("        optimizer.zero_grad()\n", ""),
                ("        loss.backward()\n",
                 "        loss.backward()\n        optimizer.zero_grad()\n"),
            ),
        ),
    ],
    "skorch": [
        Bug("TL201", (("        self._set_training(True)\n", ""),)),
        Bug("TL204", (_KEPT,)),
        Bug(
            "TL302",
            (
                (
                    "    def train_step_single",
                    "    def get_all_learnable_params(self) -> Any:\n"
                    "        yield from self.module_.trunk.named_parameters()\n\n"
                    "    def train_step_single",
                ),
            ),
        ),
        _SOFTMAX,
        _BROADCAST,
    ],
    "transformers": [
        Bug(
            "TL201",
            (
                (
                    "class Careful(Trainer):\n",
                    "class Careful(Trainer):\n"
                    "    def training_step(self, model: Any, inputs: Any, *args: Any) -> Any:\n"
                    "        loss = self.compute_loss(model, self._prepare_inputs(inputs))\n"
                    "        self.accelerator.backward(loss)\n"
                    "        return loss.detach()\n\n",
                ),
            ),
        ),
        Bug("TL204", (_KEPT,)),
        Bug(
            "TL302",
            (
                (
                    "train_dataset=Texts(512, 1),",
                    "optimizers=(torch.optim.AdamW(model.encoder.parameters()), None),"
                    " train_dataset=Texts(512, 1),",
                ),
            ),
        ),
        Bug(
            "TL401", (("logits, guesses = self.kind(hidden),",
                       "logits, guesses = self.kind(hidden).softmax(1),"),)
        ),
        _BROADCAST,
    ],
}  # fmt: skip
"""By the program that they are planted in. keras's own optimizers are none of torch's, so that an
update is not seen there; its programs are only shown to be left alone."""


def run(program: Path, weights: Path, found: Path | None) -> dict[str, Any]:
    """Run a program, watched if there is a file for what is found."""
    watch = ["-m", "trueloop", "watch", "--format", "json", "--output", str(found)]
    command = [sys.executable, *(watch if found else []), str(program), str(weights)]
    # One thread: with several, sums may come in another order each time.
    env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=program.parent, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{program.name} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(found.read_text()) if found else {}


def digest(weights: Path) -> str:
    """Of the values, to the bit: the file has its own name in it."""
    import torch

    hashed = hashlib.sha256()
    for name, value in torch.load(weights).items():
        hashed.update(name.encode())
        hashed.update(value.contiguous().reshape(-1).view(torch.uint8).numpy())
    return hashed.hexdigest()


def correct(program: Path, folder: Path) -> dict[str, Any]:
    """What is found in a correct program, and whether its weights are the same."""
    bare, watched = folder / "bare.pt", folder / "watched.pt"
    run(program, bare, None)
    told = run(program, watched, folder / "found.json")
    alarms = [f"{each['code']}:{each['line']}" for each in told["findings"]
              if each["severity"] != "advice"]  # fmt: skip
    return {
        "program": program.stem.removeprefix("with_"),
        "bug": "none",
        "found": ", ".join(alarms) or "nothing",
        "text": "",
        "updates": told["updates"],
        "same_weights": digest(bare) == digest(watched),
        "right": not alarms and not told["problems"] and digest(bare) == digest(watched),
    }


def planted(program: Path, bug: Bug, folder: Path) -> dict[str, Any]:
    """What is found of a bug."""
    text = program.read_text()
    for old, new in bug.changes:
        if text.count(old) != 1:
            raise SystemExit(f"{program.name} has {text.count(old)} of {old!r}")
        text = text.replace(old, new)
    name = f"{program.stem}_{bug.code}.py"
    (folder / name).write_text(text)
    (folder / "toy.py").write_text((program.parent / "toy.py").read_text())
    told = run(folder / name, folder / "weights.pt", folder / "found.json")
    found = [each for each in told["findings"] if each["severity"] != "advice"]
    mine = [each for each in found if each["code"] == bug.code and each["path"] == name]
    lines = text.splitlines()
    return {
        "program": program.stem.removeprefix("with_"),
        "bug": bug.code,
        "found": ", ".join(f"{each['code']}:{each['line']}" for each in found) or "nothing",
        "text": lines[mine[0]["line"] - 1].strip() if mine else "",
        "updates": told["updates"],
        "same_weights": "",
        "right": len(mine) == len(found) == 1 and not told["problems"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="programs by name: lightning ignite")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for program in sorted(PROGRAMS.glob("with_*.py")):
        name = program.stem.removeprefix("with_")
        if given.only and name not in given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(correct(program, Path(folder)))
            print(rows[-1], flush=True)
            for bug in BUGS.get(name, []):
                rows.append(planted(program, bug, Path(folder)))
                print(rows[-1], flush=True)
    print(table(rows))
    if not given.only:
        versions = {name: metadata.version(name) for name in PACKAGES}
        save_results("watch_trainers", {"versions": versions, "programs": rows})
    if not all(row["right"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
