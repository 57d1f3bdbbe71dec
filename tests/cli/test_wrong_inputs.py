"""Wrong data, run directories, configurations and arguments: one line with what to write, status 2,
and nothing that is left half written."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from trueloop.cli import main

Command = Callable[..., Any]
TABLE, TEXT = "train table --data", "train text --data"
CONFIGS = {
    "empty": "",
    "list": "[1, 2]",
    "unknown": "learning_rate{} 1\n",
    "wrong_kind": "epochs{} 'many'\n",
    "out_of_bounds": "epochs{} 0\n",
    "twice": "lr{0} 1\nlr{0} 2\n",
    "other_task": "task{} 'table'\n",
    "broken": "lr{} [1\n",
}
SAID = {
    "empty": "is empty: write `key",
    "list": {"yaml": "contains no options", "toml": "is not TOML at line 1", "json": "contains no"},
    "unknown": "unknown key 'learning_rate': did you mean 'lr'?",
    "wrong_kind": "--epochs must be a whole number, not 'many'",
    "out_of_bounds": "--epochs must be 1 to 1,000,000",
    "twice": {
        "yaml": "'lr' is given twice",
        "toml": "given twice at line 2",
        "json": "given twice",
    },
    "other_task": "is for the task 'table': write trueloop train table",
    "broken": {"yaml": "neither YAML nor JSON at line", "toml": "is not TOML", "json": "neither"},
    "not_utf8": "is not UTF-8 text: --config takes a YAML, TOML or JSON file",
}
# RUN is a run of spiral, OTHER one of table; what is in the folder is made below.
WRONG = [
    # tables: empty, huge, corrupt, mistyped, missing
    (f"{TABLE} header.csv --target b", "has a header but no rows: give a file with data"),
    (f"{TABLE} one.csv --target b", "has 1 row with a target, too few to learn from"),
    (f"{TABLE} bytes.csv --target b", "is a binary file, not CSV: export the table as CSV"),
    (f"{TABLE} latin.csv --target b", "is not UTF-8: byte 0xe9 in line 2; convert it"),
    (f"{TABLE} ragged.csv --target b", "line 3 has 3 cells, the header has 2: fix the line"),
    (f"{TABLE} twice.csv --target a", "more than one column called 'a' (columns 1, 2)"),
    (f"{TABLE} same.csv --target b", "has one class only ('1')"),
    (f"{TABLE} nothing.csv --target b", "the target 'b' is empty in every row"),
    (f"{TABLE} infinite.csv --target b", "row 4 of column 'b' is inf: leave the cell empty"),
    (f"{TABLE} t.xlsx --target b", "a zip archive or a spreadsheet: unpack it, or export"),
    (f"{TABLE} cut.parquet --target b", "is broken Parquet"),
    (f"{TABLE} text.parquet --target b", "is not Parquet, it does not begin with PAR1: write it"),
    (f"{TABLE} dangling.csv --target b", "dangling.csv: check --data"),
    (f"{TABLE} loop.csv --target b", "symbolic links): check the path"),
    (f"{TABLE} t.csv --target b --split time:z", "--split: "),
    (f"{TABLE} t.csv --target b --val-share 0.7 --test-share 0.7", "leave no rows to train on"),
    (f"{TABLE} t.csv --target b --val-data other.csv", "other.csv has no column 'a', which"),
    (f"{TABLE} t.csv --target b --quantiles 0.1,0.9", "--quantiles is for a regression, and 'b'"),
    (f"{TABLE} t.csv --target b --quantiles 0.9,0.1", "--quantiles 0.9,0.1 must be two or more"),
    (f"{TABLE} t.csv --target b --quantiles 0,0.5", "numbers between 0 and 1 that ascend: write"),
    (f"{TABLE} t.csv --target b --quantiles 0.5", "--quantiles 0.5 must be two or more numbers"),
    (f"{TABLE} t.csv --target b --quantiles low,0.5", "'low' is not a number: write numbers"),
    (f"{TABLE} t.csv --target b --log-target", "--log-target is for a regression, and 'b' is a"),
    (f"{TABLE} t.csv --target B", "has no column 'B' to be the target: did you mean 'b'?"),
    (f"{TABLE} t.csv --target b --folds 2 --fold 3", "--fold must be 1 to 2, not 3"),
    (f"{TABLE} t.csv --target b --drop a,c", "--drop leaves no column to predict the target from"),
    (f"{TEXT} long.txt --context 0", "--context must be 1 to 1,048,576 tokens, not 0"),
    ("train text", "the text task needs a text: write --data FILE or --data FOLDER"),
    ("train digits --data t.csv", "come with scikit-learn, not from a file: leave out --data"),
    ("train spiral --log-every 0", "--log-every '0' is not understood"),
    # images
    ("train images --data void", "is empty: give a folder with one folder of images per class"),
    ("train images --data .", "is taken for a class, and 'bad_config' contains runs: give"),
    ("train images --data no_images", "is taken for a class, and 'cat' contains no image (.bmp"),
    ("train images --data album", "contains only one class ('photos'): did you mean '"),
    (
        "train images --data papers",
        "contains no folders (only files such as 'a.txt'): give",
    ),
    (
        "train images --data work",
        "and 'runs' contains runs: give a folder with",
    ),
    ("train images --data one_class", "contains only one class ('cat')"),
    ("train images --data bad_image", "cannot be decoded: not an image in a format that Pillow"),
    ("train images --data photos --size 0", "--size must be 8 to 1,024 pixels, not 0"),
    # texts
    (f"{TEXT} empty.txt", "empty.txt is empty: give a file with text"),
    (f"{TEXT} short.txt", "a context of 256 needs 257: give more text"),
    (f"{TEXT} latin.csv", "is not UTF-8: byte 0xe9 at offset"),
    (f"{TEXT} bad.jsonl", "bad.jsonl line 1: it is not JSON"),
    (f"{TEXT} long.txt --tokenizer words", "unknown tokenizer 'words': write --tokenizer char"),
    (f"{TEXT} long.txt --tokenizer bpe:1", "is not a size from 257"),
    (f"{TEXT} long.txt --preset huge", "no preset is called 'huge'"),
    (f"{TEXT} long.txt --init gone", "name the folder that has the model's config.json"),
    (f"{TEXT} long.txt --lora query", "name its folder with --init, or leave --lora out"),
    (f"{TEXT} long.txt --heads 3", "--width 128 cannot be divided by --heads 3"),
    # tasks of the user's
    ("train broken.py:Mine", "line 1: SyntaxError"),
    ("train raises.py:Mine", "line 1: ZeroDivisionError: division by zero: fix the file"),
    ("train plain.py:Mine", "is not a task: derive it from trueloop.Task"),
    # options that came with other features
    ("train spiral --track nobody", "--track: unknown track 'nobody'"),
    ("train spiral --track csv,excel", "--track: unknown track 'excel'"),
    ("train spiral --ema 2", "--ema must be from 0 to below 1, not 2: write --ema 0.999"),
    ("train spiral --swa 200%", "--swa '200%' is not understood"),
    ("train spiral --folds 1", "--folds must be 2 to"),
    ("train spiral --balance maybe", "--balance must be yes or no"),
    ("train spiral --fsdp-replicate 2", "is for fsdp: write --parallel fsdp with it"),
    # run directories: missing, half, corrupt, of a different task
    ("evaluate half", "no checkpoint in half/checkpoints"),
    ("predict half --data t.csv --out new.csv", "no checkpoint in half/checkpoints"),
    ("evaluate bad_config", "bad_config/config.json is corrupt"),
    ("resume bad_config", "bad_config/config.json is corrupt"),
    ("report bad_config", "bad_config/config.json is corrupt"),
    ("evaluate list_config", "list_config/config.json is corrupt (no JSON object)"),
    ("evaluate gone_task", "no file /gone/task.py: check the path before the colon"),
    ("evaluate cut_weights", "cut_weights"),
    ("resume RUN --epochs 1", "--epochs 1 is not more than the 2 of the run"),
    ("resume RUN --updates 5", "--updates 5: the run is as long as its epochs, 2"),
    ("resume RUN --lr 3", "unknown option --lr: a resume uses the options of the run"),
    ("predict RUN --data t.csv --out new.csv", "task Spiral cannot predict from a file"),
    ("generate RUN --prompt a", "is a run of the task 'spiral', which writes no text"),
    ("predict OTHER --data other.csv --out new.csv", "column 'a' is missing, and the model needs"),
    ("predict OTHER --data void --out new.csv", "has no .parquet file: give a file"),
    ("predict OTHER --data bytes.csv --out new.csv", "is a binary file, not CSV"),
    ("predict OTHER --data t.csv --out void", "no ending that can be written"),
    ("predict OTHER --data t.csv --out t.csv/new.csv", "t.csv"),
    ("evaluate OTHER --data other.csv", "has no column 'b', the target"),
    ("evaluate OTHER --data header.csv", "has a header but no rows"),
    ("report RUN OTHER --out void", "is a folder: name the page"),
    ("report RUN --out", "--out needs a value: write --out=VALUE"),
    ("predict OTHER --data t.csv --out new.csv --keep z", "--keep: no column 'z': known: 'a', 'b'"),
    ("predict OTHER --data t.csv --out new.csv --columns a", "did you mean '--keep'?"),
    ("predict OTHER --data t.csv --out new.csv --keep", "--keep needs a value"),
    (
        "predict OTHER --data t.csv --out new.csv --threshold 0.4",
        "is for two classes, and this run",
    ),
    ("predict t.csv --data OTHER --out new.csv", "t.csv is a file, not a run directory"),
    ("evaluate work/runs", "is not a run but contains some: name one of them"),
    ("resume work/runs", "is not a run but contains some: name one of them"),
    ("resume --run RUN", "unknown option --run: a resume uses the options of the run"),
    ("resume RUN --epochs many", "not 'many': write e.g. --epochs 8"),
    ("resume RUN --epochs 30.5", "--epochs must be a whole number, not '30.5'"),
    ("follow RUN --seconds 0", "--seconds must be from 0.1 to 3600, not 0.0: write 1"),
    ("follow t.csv", "t.csv is a file, not a run directory"),
    ("export RUN", "no place for the model: write --out FOLDER"),
    ("export OTHER --out t.csv", "t.csv exists: name a folder that is not there yet"),
    ("runs --sort", "--sort needs a value"),
    # generate
    ("generate RUN", "a prompt is missing: write --prompt TEXT, or --prompts FILE"),
    ("generate RUN --prompt a --prompts b.txt", "do not go together: leave out one"),
    ("generate RUN --prompt a --top-p 2", "--top-p 2.0 must be above 0 and at most 1"),
    ("generate RUN --prompt a --beams 0", "--beams 0 is not an integer of at least 1"),
    ("generate RUN --prompt a --temperature -1", "--temperature -1.0 must not be below 0"),
    ("generate RUN --prompt a --preset loud", "unknown preset 'loud'"),
    ("generate void --prompt a", "is not a run directory"),
    ("generate RUN --choices a", "write --prompt TEXT"),
    # tune
    ("tune spiral --minutes 0", "--minutes 0 is too little to measure anything"),
    ("tune spiral --goal fast", "--goal must be a number, not 'fast'"),
    ("tune spiral --trials 3", "--trials is for a search: write --search FILE with it"),
    ("tune spiral --search gone.yaml", "no configuration file"),
    ("tune spiral --search space.yaml", "unknown option 'lrr': did you mean 'lr'?"),
    ("tune spiral --search range.yaml", "low 2 is not below high 1: swap them"),
    ("tune spiral --search empty.txt", "is empty: write `key: value` lines"),
    ("tune spiral --search range.yaml --pruner best", "--pruner: unknown pruner 'best'"),
    ("tune spiral --format xml", "--format: unknown format 'xml'"),
    ("tune spiral --out t.csv", "t.csv exists: choose a different --out"),
    ("tune spirals", "unknown task 'spirals': did you mean 'spiral'?"),
    # the other verbs
    ("runs --sort speed", "unknown column 'speed'"),
    ("env --format xml", "unknown format 'xml'"),
    ("env now", "unexpected argument 'now'"),
    ("completion", "SHELL is missing: write trueloop completion SHELL"),
    ("completion tcsh", "unknown shell 'tcsh'"),
    ("lsp --port 3", "unknown option --port"),
    ("watch void", "is a folder without a __main__.py: write a script's name"),
    ("watch -m gone_module", "No module named gone_module: check the name after -m"),
    ("check t.csv --format html", "unknown format 'html'"),
    ("check void --select", "--select needs a value"),
    ("explain TL9999", "unknown rule 'TL9999'"),
    ("replay half", "half is not a bundle"),
    ("explain softmax", "did you mean TL401 (softmax-before-cross-entropy)"),
    ("watch --json x.py", "unknown option --json: known: exit-code"),
    ("lab --only 999", "--only: no claim is called '999'"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, spiral_run: Path) -> dict[str, Path]:
    """The folder of what is wrong, and a run of a table; tests leave them as they are."""
    folder = tmp_path_factory.mktemp("wrong")
    _tables(folder)
    _images(folder)
    _texts(folder)
    _runs(folder, spiral_run)
    _configs(folder)
    other = tmp_path_factory.mktemp("runs") / "table"
    words = [*f"{TABLE} {folder / 't.csv'} --target b --epochs 1 --quiet --run".split(), str(other)]
    assert main(words) == 0
    return {"folder": folder, "RUN": spiral_run, "OTHER": other}


def _tables(folder: Path) -> None:
    columns = {"a": range(60), "b": [k % 3 for k in range(60)], "c": [k * k % 7 for k in range(60)]}
    frame = pl.DataFrame(columns)
    frame.write_csv(folder / "t.csv")
    frame.write_parquet(folder / "cut.parquet")
    with open(folder / "cut.parquet", "r+b") as file:
        file.truncate(os.path.getsize(folder / "cut.parquet") - 40)
    rows = {
        "header": "", "one": "1,2\n", "ragged": "1,2\n1,2,3\n" + "4,5\n" * 40,
        "same": "".join(f"{k},1\n" for k in range(40)),
        "nothing": "".join(f"{k},\n" for k in range(40)),
        "infinite": "".join(f"{k}.5,{'inf' if k == 3 else k * 1.5}\n" for k in range(40)),
    }  # fmt: skip
    for name, text in rows.items():
        (folder / f"{name}.csv").write_text(f"a,b\n{text}")
    (folder / "twice.csv").write_text("a,a\n" + "1,2\n" * 40)
    (folder / "other.csv").write_text("x,y\n1,2\n3,4\n")
    (folder / "bytes.csv").write_bytes(bytes(range(256)) * 8)
    (folder / "latin.csv").write_bytes("a,b\nné,1\n".encode("latin-1") * 40)
    (folder / "t.xlsx").write_bytes(b"PK\3\4")
    (folder / "text.parquet").write_text("a,b\n" + "1,2\n" * 40)
    (folder / "dangling.csv").symlink_to("gone.csv")
    (folder / "loop.csv").symlink_to("loop.csv")


def _images(folder: Path) -> None:
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    for name in (
        "photos/cat", "photos/dog", "one_class/cat", "bad_image/cat", "bad_image/dog",
        "work/cat", "work/runs/spiral/pictures", "album/photos/cat", "album/photos/dog",
    ):  # fmt: skip
        (folder / name).mkdir(parents=True)
        for k in range(12):
            Image.fromarray(pixels * k).save(folder / name / f"{k}.png")
    (folder / "bad_image/cat/3.png").write_text("no image")
    for name in ("config.json", "environment.json"):
        (folder / "work/runs/spiral" / name).write_text("{}")
    (folder / "papers").mkdir()
    (folder / "papers/a.txt").touch()
    for name in ("no_images/cat", "no_images/dog", "void"):
        (folder / name).mkdir(parents=True)


def _texts(folder: Path) -> None:
    texts = {
        "empty.txt": "", "short.txt": "hi", "long.txt": "To be, or not to be. " * 400,
        "bad.jsonl": '{"messages": [\n' * 40, "broken.py": "def (:\n", "raises.py": "1/0\n",
        "plain.py": "class Mine: pass\n", "space.yaml": "lrr: {low: 1, high: 2}\n",
        "range.yaml": "lr: {low: 2, high: 1}\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)


def _runs(folder: Path, run: Path) -> None:
    for name in ("half", "bad_config", "list_config", "gone_task", "cut_weights"):
        shutil.copytree(run, folder / name)
    shutil.rmtree(folder / "half" / "checkpoints")
    (folder / "bad_config" / "config.json").write_text('{"task": "spi')
    (folder / "list_config" / "config.json").write_text("[1]")
    config = json.loads((run / "config.json").read_text())
    config["task"] = "/gone/task.py:Mine"
    (folder / "gone_task" / "config.json").write_text(json.dumps(config))
    for path in (folder / "cut_weights" / "checkpoints").rglob("*.pt"):
        path.write_bytes(path.read_bytes()[:100])


def _configs(folder: Path) -> None:
    for name, text in CONFIGS.items():
        (folder / f"{name}.yaml").write_text(text.format(":"))
        (folder / f"{name}.toml").write_text(text.format(" ="))
        lines = [line.format(":").replace("'", '"').split(": ") for line in text.splitlines()]
        pairs = [f'"{line[0]}": {line[1]}' for line in lines if len(line) == 2]
        as_json = "{" + ", ".join(pairs) + "}" if pairs else text
        (folder / f"{name}.json").write_text(as_json)
    for kind in ("yaml", "toml", "json"):
        (folder / f"not_utf8.{kind}").write_bytes(b"\xff\xfe\x81")


def listing(folder: Path) -> dict[str, int]:
    """The files below, each with the time of its last change."""
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture
def refused(
    command: Command, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """What a command says; fails the test unless that is one line, and nothing else is left."""
    monkeypatch.chdir(places["folder"])

    def run(text: str) -> str:
        words = [str(places.get(word, word)) for word in shlex.split(text)]
        before = {path: listing(path) for path in places.values()}
        said = command(*words)
        assert said.status == 2, (text, said)
        line: str = said.complaint
        assert line.startswith("trueloop: error: "), line
        assert len(line) < 1000, line
        assert ": " in line.removeprefix("trueloop: error: "), line
        assert said.out == "", (text, said.out)
        assert {path: listing(path) for path in places.values()} == before, text
        return line

    return run


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) + 3 * len(SAID) >= 60


@pytest.mark.parametrize("verb", sorted({text.split()[0] for text, _ in WRONG}))
def test_wrong_inputs_are_refused_in_one_line(refused: Callable[[str], str], verb: str) -> None:
    for text, expected in WRONG:
        if text.split()[0] == verb:
            line = refused(text)
            assert expected in line, (text, line)


@pytest.mark.parametrize("kind", ["yaml", "toml", "json"])
def test_wrong_configurations_are_refused_alike(refused: Callable[[str], str], kind: str) -> None:
    for name, words in SAID.items():
        line = refused(f"train spiral --config {name}.{kind}")
        assert (words if isinstance(words, str) else words[kind]) in line, (name, line)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_takes_nothing(
    command: Command, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Full, read-only, or somebody else's: before the first update, no run is left."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), "runs/new")

    monkeypatch.setattr(Path, "mkdir", refuse)
    said = command("train", "spiral", "--epochs", "1", "--quiet", "--run", "runs/new")
    assert said.status == 2
    assert os.strerror(number).lower() in said.complaint.lower()
    assert list(tmp_path.iterdir()) == []
