"""`trueloop export`: what it refuses, and what its forms compute without Trueloop."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from torch import nn

import warm_python
from trueloop.cli import main
from trueloop.errors import ConfigError, RunError
from trueloop.run import Run
from trueloop.tasks import exported
from trueloop.tasks.spiral import Spiral
from trueloop.tasks.standalone import table_rows
from trueloop.tasks.table.table_files import read_frame


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUN"], "no place for the model: write --out FOLDER"),
        (["RUN", "--out", "."], "exists: name a folder that is not there yet"),
        (["RUN", "--out", "new", "--dtype", "int8"], "--dtype int8 is unknown: write --dtype fp32"),
        (["RUN", "--out", "new"], "no run at RUN"),
        (["RUN", "--out", "new", "--format", "onx"], "did you mean 'onnx'?"),
        (["RUN", "--out", "new", "--format", "torch,transformers"], "write only transformers"),
    ],
)
def test_a_wrong_command_is_one_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_task_without_a_published_form_says_which_forms_it_has(tmp_path: Path) -> None:
    task = Spiral()
    with pytest.raises(ConfigError, match=r"task Spiral has no form .*--format python, torch"):
        task.export(task.model(), tmp_path / "out", dtype="fp32")
    assert not list(tmp_path.iterdir())


ALONE = """
import json, runpy, sys
assert "trueloop" not in sys.modules
sys.modules["trueloop"] = None  # cannot be imported
found = {}
for folder, inputs in json.loads(sys.argv[1]).items():
    sys.path.insert(0, folder)
    sys.modules.pop("network", None)
    program = runpy.run_path(f"{folder}/predict.py")
    (name,) = [name for name in program if name.endswith("Predictor")]
    model = program[name]()
    if isinstance(inputs, str):
        import torch
        found[folder] = model(torch.load(inputs)).tolist()
    else:
        found[folder] = model.predict(inputs)
    sys.path.remove(folder)
print(json.dumps(found))
"""
ROWS = [
    {"area": "82.5", "day": "2024-05-17T08:30", "colour": "red", "code": "3"},
    {"area": "", "day": "2021-12-31", "colour": "never seen", "code": "4.0"},
    {"area": "NA", "day": "", "colour": "", "code": "1"},
    {"area": "-1e30", "day": "2030-01-01 23:59:30", "colour": "blue", "code": "2"},
]


def table_run(folder: Path) -> Path:
    """A table with gaps, dates and categories, trained for an epoch."""
    lines = ["area,day,colour,code,y"]
    for k in range(60):
        area = "" if k % 7 == 0 else str(k * 1.5)
        colour = ("red", "blue", "")[k % 3]
        lines.append(f"{area},2024-0{k % 9 + 1}-1{k % 10},{colour},{k % 4 + 1},{'ab'[k % 2]}")
    (folder / "rows.csv").write_text("\n".join(lines))
    words = "--target y --epochs 1 --width 8 --layers 1 --quiet --no-doctor --categorical code"
    path = folder / "table"
    given = ["train", "table", "--data", str(folder / "rows.csv"), *words.split()]
    assert main([*given, "--run", str(path)]) == 0
    return path


def images_run(folder: Path) -> Path:
    """Twelve noisy images of each of two classes, trained for an epoch."""
    draws = np.random.default_rng(0)
    for name in ("dark", "light"):
        (folder / "photos" / name).mkdir(parents=True)
        for k in range(12):
            pixels = draws.integers(0, 128, (16, 20, 3)) + (100 if name == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / name / f"{k}.png")
    clear = Image.new("RGBA", (40, 30), (200, 10, 10, 90))
    clear.save(folder / "clear.png")
    words = "--epochs 1 --width 2 --size 16 --batch-size 8 --quiet --no-doctor --no-cache"
    path = folder / "images"
    given = ["train", "images", "--data", str(folder / "photos"), *words.split()]
    assert main([*given, "--run", str(path)]) == 0
    return path


def test_what_is_exported_predicts_the_same_without_trueloop(
    tmp_path: Path, spiral_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program, the torch.export program and the ONNX graph, each compared with the run."""
    runs = {"t": table_run(tmp_path), "i": images_run(tmp_path), "s": spiral_run}
    forms = {"t": "python,torch,onnx", "i": "python", "s": "python"}
    folders = {}
    for name, run in runs.items():
        folders[name] = str(tmp_path / f"out-{name}")
        assert main(["export", str(run), "--out", folders[name], "--format", forms[name]]) == 0
    assert "model.onnx computes what the model does" in capsys.readouterr().out
    files = {"model.onnx", "model.pt2", "model.safetensors", "network.py", "predict.py"}
    assert {path.name for path in Path(folders["t"]).iterdir()} == files | {"task.json"}

    points = torch.randn(5, 2, generator=torch.Generator().manual_seed(1))
    torch.save(points, tmp_path / "points.pt")
    photos = [str(tmp_path / "photos/dark/0.png"), str(tmp_path / "clear.png")]
    inputs = {"t": ROWS, "i": photos, "s": str(tmp_path / "points.pt")}
    given = json.dumps({folders[name]: value for name, value in inputs.items()})
    words = [sys.executable, "-c", ALONE, given]
    done = warm_python.run(words, start=warm_python.Bare, text=True)
    assert done.returncode == 0, done.stderr
    found = {name: json.loads(done.stdout)[folders[name]] for name in runs}

    cells = [",".join(ROWS[0]), *(",".join(row.values()) for row in ROWS)]
    (tmp_path / "new.csv").write_text("\n".join(cells))
    for name, value in (("t", str(tmp_path / "new.csv")), ("i", photos)):
        ours = Run(runs[name]).predict(value, device="cpu").to_dicts()
        assert len(ours) == len(found[name])
        for one, two in zip(ours, found[name], strict=True):
            assert one["prediction"] == two["prediction"], one
            assert one["probability"] == pytest.approx(two["probability"], abs=1e-5)
    logits = Run(spiral_run).model(device="cpu")(points)
    assert torch.allclose(logits, torch.tensor(found["s"]), atol=1e-5)

    session = onnxruntime.InferenceSession(Path(folders["t"]) / "model.onnx")
    encoded = [torch.randn(7, 5), torch.ones(7, 2, dtype=torch.int64)]
    names = [each.name for each in session.get_inputs()]
    graph = session.run(None, dict(zip(names, (e.numpy() for e in encoded), strict=True)))[0]
    program = torch.export.load(Path(folders["t"]) / "model.pt2").module()
    model = Run(runs["t"]).model(device="cpu")(*encoded)
    assert np.allclose(graph, model.numpy(), atol=1e-5)
    assert torch.allclose(program(*encoded), model, atol=1e-5)


def test_a_form_that_computes_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linear = nn.Linear(2, 1).eval()
    program = exported.exported_program(nn.Linear(2, 1).eval(), torch.randn(2, 2))
    monkeypatch.setattr(exported, "exported_program", lambda model, inputs: program)
    with pytest.raises(RunError, match=r"model\.pt2 does not compute what the model does"):
        exported.write_exported(tmp_path / "out", linear, torch.randn(2, 2), {}, {}, ["torch"])
    assert not list(tmp_path.iterdir())


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


def test_a_model_that_cannot_be_recorded_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"torch\.export cannot record the model") as caught:
        exported.write_exported(tmp_path / "out", Branches(), torch.ones(2, 2), {}, {}, ["torch"])
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_language_model_as_a_torch_program_and_an_onnx_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both give the run's own logits, for any number of contexts; a program is refused."""
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(0)
    Path("t.txt").write_text(" ".join(draws.choice(["some", "words", "of", "text"], 2000)))
    words = "--updates 2 --layers 1 --width 16 --heads 2 --context 32 --batch-size 4 --quiet"
    given = ["train", "text", "--data", "t.txt", *words.split(), "--no-doctor", "--run", "r"]
    assert main(given) == 0
    assert main(["export", "r", "--out", "app", "--format", "torch,onnx"]) == 0
    assert {path.name for path in Path("app").iterdir()} == {"model.onnx", "model.pt2", "task.json"}
    model = Run("r").model(device="cpu")
    session = onnxruntime.InferenceSession("app/model.onnx")
    program = torch.export.load("app/model.pt2").module()
    for count in (1, 5):
        ids = torch.randint(0, 8, (count, 32), generator=torch.Generator().manual_seed(count))
        logits = model(ids)
        assert float(logits.std()) > 0.01
        assert torch.allclose(program(ids), logits, atol=1e-5)
        (graph,) = session.run(None, {session.get_inputs()[0].name: ids.numpy()})
        assert np.allclose(graph, logits.numpy(), atol=1e-4)
    capsys.readouterr()
    assert main(["export", "r", "--out", "p", "--format", "python"]) == 2
    assert "a language model is not exported as a program" in capsys.readouterr().err


def test_the_exported_program_reads_files_as_training_does(
    tmp_path: Path,
) -> None:
    """With a byte order mark, spaces in the header and around cells, semicolons, blank lines."""
    path = tmp_path / "new.csv"
    text = '\ufeffarea ; day; colour;code\n 82.5;2024-05-17; red ;3\n\n;;"a;b"; 1\n'
    path.write_text(text, encoding="utf-8")
    read = [{name: cell or "" for name, cell in row.items()} for row in read_frame(path).to_dicts()]
    assert table_rows.read_rows(path) == read
    assert read[0] == {"area": "82.5", "day": "2024-05-17", "colour": "red", "code": "3"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("there is none.csv", None, r"there is none\.csv cannot be read: "),
        ("short.csv", "area,code\n1,2\n3\n", "line 3 has 1 cells, the header has 2"),
    ],
)
def test_what_the_exported_program_cannot_read_is_one_line(
    name: str, text: str | None, message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit, match=message):
        table_rows.read_rows(tmp_path / name)
    with pytest.raises(SystemExit, match="column 'area' contains numbers, and one is 'much'"):
        table_rows.number("area", "much")
