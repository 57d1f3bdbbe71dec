"""Wrong command lines of every verb: one line with what to write, status 2, nothing written."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
LONG = "x" * 5000
# Values that no option below understands: empty, huge, of another kind, not text at all.
NONSENSE = ("", LONG, "[1,2]", "{a: b}", "\udcff", "a\0b", "1e999", "-", "--", "%s", "!!x", "nan")
SPIRAL = "train spiral"
TABLE = "train table --data t.csv --target b"
OPTIONS = {
    SPIRAL: (
        "epochs batch-size optimizer lr weight-decay schedule warmup clip-norm clip-value "
        "ema swa mixup cutmix unfreeze layer-decay accumulate precision nonfinite monitor "
        "patience min-delta resume seed workers device threads max-minutes save-every keep-last "
        "on-save-error compile deterministic doctor quiet config"
    ),
    TABLE: (
        "target kind nan val-share test-share log-target quantiles width layers dropout val-data "
        "data"
    ),
    "train images --data photos": "size broken augment mirror width val-share memory-gb data",
    "verify-resume spiral": "updates epochs config",
    "resume RUN": "max-minutes quiet",
    "evaluate RUN": "data device",
    "predict RUN --out new.csv": "data",
    "predict RUN --data t.csv": "out",
    "runs": "sort",
    "check x.py": "select format jobs",
    "lab": "only",
}
# A text may be anything, and becomes a mistake by what it is compared with.
ACCEPTED = {("memory-gb", "1e999")}
WRONG = [
    # no task, no such task, not a task
    ("train spirals", "unknown task 'spirals': did you mean 'spiral'?"),
    ("train ''", "unknown task ''"),
    (f"train {LONG}", "unknown task 'xxx"),
    ("train --epochs 3", "name the task first: trueloop train TASK --epochs"),
    ("train --config gone.yaml", "no configuration file gone.yaml"),
    ("train t.csv", "write trueloop train table --data t.csv --target COLUMN"),
    ("train photos", "write trueloop train images --data photos"),
    ("train x.py", "x.py names no class: write x.py:CLASS"),
    ("train x.py:Nope", "x.py has no class 'Nope'"),
    ("train gone.py:Mine", "gone.py"),
    ("train fifo", "write trueloop train table --data fifo"),
    ("train spiral --layer-decay 1.5", "--layer-decay"),
    ("train spiral --layer-decay 0.5 --optimizer muon", "muon takes no layer_decay"),
    # averages of the weights
    ("train spiral --ema 1", "--ema must be from 0 to below 1, not 1: write --ema 0.999"),
    ("train spiral --swa 5", "--swa: 5 of what? write '5 epochs'"),
    ("train spiral --swa 50% --ema 0.9", "are two averages of the weights: write one of them"),
    ("train spiral --ema-warmup", "--ema-warmup is for --ema: write --ema 0.999 with it"),
    # words that stand alone
    ("train table t.csv --target b", "unexpected argument 't.csv': write --data t.csv"),
    ("train images photos", "unexpected argument 'photos': write --data photos"),
    ("train spiral run.yaml", "unexpected argument 'run.yaml': write --config run.yaml"),
    ("train spiral 30", "unexpected argument '30': options start with --"),
    ("train spiral lr=3", "unexpected argument 'lr=3': write --lr 3"),
    ("evaluate RUN t.csv", "unexpected argument 't.csv': write --data t.csv"),
    ("predict RUN t.csv", "unexpected argument 't.csv': write --data t.csv"),
    ("predict RUN new.csv", "unexpected argument 'new.csv': write --out new.csv"),
    ("runs a b", "unexpected argument 'b'"),
    ("resume RUN again", "unexpected argument 'again'"),
    # options that are called otherwise, or are of a different verb
    ("train spiral --learning-rate 1", "did you mean '--lr'?"),
    ("train spiral -lr 1", "unknown option -lr: did you mean '--lr'"),
    ("train spiral -e 1", "unknown option -e"),
    ("train spiral --target b", "unknown option --target"),
    ("train spiral --lr 1 --learning-rate 1", "did you mean '--lr'?"),
    ("train table --label b", "did you mean '--target'?"),
    ("train images --img-size 32", "did you mean '--size'?"),
    (f"train spiral --{LONG} 1", "unknown option --xxx"),
    ("verify-resume spiral --run x", "unknown option --run"),
    ("verify-resume spiral --print-config", "unknown option --print-config"),
    ("evaluate RUN --dataset t.csv", "did you mean '--data'?"),
    ("predict RUN --output new.csv", "did you mean '--out'?"),
    ("predict RUN --overwrite", "did you mean '--force'?"),
    ("runs --order score", "unknown option --order"),
    ("report RUN --output x.html", "did you mean '--out'?"),
    ("check x.py --only TL1", "did you mean '--select'?"),
    ("check x.py --disable TL1", "did you mean '--ignore'?"),
    ("watch --fmt json x.py", "did you mean --format?"),
    # values out of bounds
    ("train spiral --epochs 0", "--epochs must be"),
    ("train spiral --epochs 99999999999999999999", "--epochs must be"),
    ("train spiral --lr -1", "--lr must be"),
    ("train spiral --lr .inf", "--lr must be"),
    ("train spiral --clip-norm 0", "--clip-norm must be"),
    ("train spiral --warmup 5 --schedule one_cycle", "--warmup: 5 of what? write '5 epochs'"),
    ("train spiral --save-every 50", "--save-every: 50 of what? write '50 updates'"),
    ("train spiral --warmup 5%", "has no warm-up"),
    ("train spiral --resume auto", "add --run DIR"),
    ("train spiral --batch-size 100000", "is more than the 2000 training samples"),
    ("train spiral --device cuda:99", "cuda"),
    ("train spiral --monitor val_acc", "or 'val_accuracy'"),
    ("train spiral --data t.csv", "leave out --data"),
    ("train table --target b", "write --data FILE.csv"),
    ("train table --data t.csv", "which column is to be predicted?"),
    ("train table --data t.csv --target c", "has no column 'c'"),
    ("train table --data t.csv --target b --drop z", "has no column 'z'"),
    ("train table --data t.csv --target b --drop a", "leaves no column"),
    ("train table --data empty.csv --target b", "is empty"),
    ("train table --data photos --target b", "has no .parquet file"),
    ("train table --data fifo --target b", "FIFO"),
    ("train table --data gone.csv --target b", "gone.csv"),
    ("train table --data x.py --target b", "x.py"),
    ("train images", "write --data FOLDER"),
    ("train images --data t.csv", "t.csv"),
    ("train images --data gone", "gone"),
    # places that cannot be written
    ("train spiral --run t.csv", "is a file, not a run directory"),
    ("train spiral --run t.csv/new", "t.csv"),
    ("train spiral --run photos", "exists and is not empty"),
    ("train spiral --run /proc/new", "/proc/new"),
    (f"train spiral --run {LONG}", "characters)…"),
    ("predict RUN --data t.csv --out new.xlsx", "no ending that can be written"),
    ("predict RUN --data t.csv --out t.csv", "t.csv exists"),
    ("predict RUN --data t.csv", "write --out FILE.csv"),
    ("predict RUN --out new.csv", "write --data PATH"),
    ("report RUN --out x.html", "leave out --out"),
    ("watch --output photos x.py", "--output photos cannot be written"),
    ("watch --output fifo x.py", "--output fifo cannot be written"),
    ("watch --output '' x.py", "'' is not a path"),
    ("watch --output=-- x.py", "--output needs a value"),
    # runs that there are not
    ("resume gone", "interrupted before its first update is not kept: start it again with"),
    ("resume photos", "photos is not a run directory"),
    ("resume t.csv", "t.csv is a file"),
    ("resume ''", "is not a path"),
    (f"resume {LONG}", "xxx"),
    ("resume", "RUN is missing, and runs/ has no run: write trueloop resume RUN"),
    ("resume --epochs 9", "RUN is missing, and runs/ has no run"),
    ("follow --once", "RUN is missing, and runs/ has no run: write trueloop follow RUN"),
    ("evaluate", "RUN is missing: write trueloop evaluate RUN"),
    ("evaluate gone", "no run at gone"),
    ("evaluate RUN --data gone.csv", "cannot read other data: leave out --data"),
    ("predict", "RUN is missing: write trueloop predict RUN"),
    ("predict gone --data t.csv --out new.csv", "no run at gone"),
    ("report --one-file", "RUN is missing, and runs/ has no run"),
    ("report RUN gone", "no run at gone"),
    ("runs gone", "no folder gone"),
    ("runs ''", "'' is not a path"),
    ("runs t.csv", "no folder t.csv"),
    ("runs --sort name", "unknown column 'name'"),
    ("resume RUN", "there is nothing to resume"),
    # the doctor's
    ("check", "PATHS is missing"),
    ("check gone.py", "gone.py"),
    ("check x.py --select TL999", "TL999"),
    ("check x.py --select=", "--select names no rule"),
    ("check x.py --format xml", "unknown format 'xml'"),
    ("check x.py --jobs 0", "--jobs must be a whole number from 1, not '0': write --jobs 4"),
    ("check x.py --diff --format json", "--diff prints a diff, not json"),
    ("watch", "SCRIPT is missing"),
    ("watch gone.py", "gone.py"),
    ("watch -m", "-m needs a module"),
    ("watch --first 0 x.py", "--first must be a whole number from 1, not '0': write --first 100"),
    ("watch --format xml x.py", "unknown format 'xml'"),
    ("watch --select TL999 x.py", "TL999"),
    ("watch --select", "--select needs a value"),
    ("explain TL999", "TL999"),
    ("explain TL101 TL102", "unexpected argument 'TL102'"),
    ("replay", "BUNDLE is missing"),
    ("replay photos", "photos"),
    ("replay gone", "gone"),
    ("lab --only gone", "gone"),
    ("trian spiral", "unknown verb 'trian': did you mean 'train'?"),
    (f"{LONG}", "unknown verb 'xxx"),
    ("--nope", "unknown option '--nope'"),
    ("verify-resume spiral --updates 0", "--updates must be"),
    ("verify-resume spirals", "did you mean 'spiral'?"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Something of each kind that a word may name."""
    rows = "\n".join(f"{k},{k % 3}" for k in range(60))
    Path("t.csv").write_text(f"a,b\n{rows}\n")
    Path("empty.csv").touch()
    Path("x.py").write_text("x = 1\n")
    Path("photos/inner").mkdir(parents=True)
    os.mkfifo("fifo")
    return tmp_path


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def refused(command: Command, place: Path, words: list[str]) -> str:
    """What the command says; fails the test unless that is one line, and nothing else is left."""
    before = listing(place)
    said = command(*words)
    assert said.status == 2, (words, said)
    line: str = said.complaint
    assert line.startswith("trueloop: error: "), line
    assert len(line) < 1500, line
    assert said.out == "", said.out
    assert listing(place) == before, words
    return line


def test_every_wrong_command_is_refused_in_one_line(
    command: Command, place: Path, spiral_run: Path
) -> None:
    for text, expected in WRONG:
        words = [str(spiral_run) if word == "RUN" else word for word in shlex.split(text)]
        line = refused(command, place, words)
        assert expected in line, (text[:80], line)


def test_no_option_takes_nonsense(command: Command, place: Path, spiral_run: Path) -> None:
    count = 0
    for base, names in OPTIONS.items():
        words = [str(spiral_run) if word == "RUN" else word for word in base.split()]
        for name in names.split():
            for value in NONSENSE[count % 4 :: 4]:  # in turn, for they are many
                if (name, value) not in ACCEPTED:
                    refused(command, place, [*words, f"--{name}={value}"])
                count += 1
    assert count + len(WRONG) > 250
