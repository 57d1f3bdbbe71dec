"""A trained run in a program: `Run.model`, `Run.predict`, and what the page about them shows."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch
from PIL import Image

import trueloop
from trueloop.checkpoint import load_checkpoint
from trueloop.cli import main
from trueloop.errors import DataError, DeviceError, RunError

Command = Callable[..., Any]
PAGE = Path(__file__).parents[2] / "docs" / "using-a-model.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
COLOURS = {"cat": (200, 40, 40), "dog": (40, 40, 200), "owl": (40, 200, 40)}


def picture(name: str, seed: int, size: tuple[int, int] = (32, 32)) -> Image.Image:
    noise = np.random.default_rng(seed).integers(-40, 40, (size[1], size[0], 3))
    return Image.fromarray((np.array(COLOURS[name]) + noise).clip(0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs and the data of the page; tests leave them as they are."""
    place = tmp_path_factory.mktemp("place")
    lines = ["area,rooms,colour,price"]
    for k in range(80):
        rooms = "" if k % 9 == 4 else str(k % 5)
        lines.append(f"{40 + 3 * k}.5,{rooms},{('red', 'green', 'blue')[k % 3]},{900 * k + 1}.5")
    (place / "houses.csv").write_text("\n".join(lines) + "\n")
    new = [line.rpartition(",")[0] for line in [lines[0], *lines[5:20]]]
    (place / "new_houses.csv").write_text("\n".join(new) + "\n")
    for name in COLOURS:
        (place / "photos" / name).mkdir(parents=True)
        for k in range(12):
            picture(name, k).save(place / "photos" / name / f"{k}.png")
    (place / "new").mkdir()
    for name in ("cat", "dog"):
        picture(name, 100, (50, 40)).save(place / "new" / f"{name}.png")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    common = ["--quiet", "--no-doctor", "--epochs", "2"]
    houses = ["--data", place / "houses.csv", "--target", "price", "--run", place / "runs/houses"]
    photos = ["--data", place / "photos", "--width", "8", "--run", place / "runs/photos"]
    assert main(["train", "table", *map(str, houses), "--width", "16", *common]) == 0
    assert main(["train", "images", *map(str, photos), *common]) == 0
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    return place


@pytest.fixture
def houses(place: Path) -> trueloop.Run:
    return trueloop.Run(place / "runs/houses")


@pytest.fixture
def photos(place: Path) -> trueloop.Run:
    return trueloop.Run(place / "runs/photos")


def test_the_model_has_the_best_weights_and_stands_in_eval_mode(spiral_run: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    model = trueloop.Run(spiral_run).model(device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    best = load_checkpoint(spiral_run / "checkpoints", which="best")["model"]
    assert all(torch.equal(best[name], value) for name, value in model.state_dict().items())
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    with pytest.raises(DeviceError):
        trueloop.Run(spiral_run).model(device="tpu")


def test_a_run_that_the_command_line_did_not_make_has_no_task(tmp_path: Path) -> None:
    run = trueloop.Run.create(tmp_path / "mine", config={"lr": 1}, environment={})
    for ask in (run.model, lambda: run.predict([[1.0, 2.0]])):
        with pytest.raises(RunError, match="names no task"):
            ask()


def written(command: Command, run: trueloop.Run, data: Path, status: int = 0) -> polars.DataFrame:
    Path("out.parquet").unlink(missing_ok=True)
    done = command("predict", run.path, "--data", data, "--out", "out.parquet")
    assert done.status == status, done.err
    return polars.read_parquet("out.parquet")


def test_predictions_are_those_of_the_command(
    command: Command, place: Path, houses: trueloop.Run, photos: trueloop.Run
) -> None:
    for run, data in ((houses, place / "new_houses.csv"), (photos, place / "new")):
        frame = written(command, run, data)
        assert run.predict(data).equals(frame)
        assert run.predict(str(data)).equals(frame)


def test_a_table_in_memory_is_the_table_in_a_file(place: Path, houses: trueloop.Run) -> None:
    expected = houses.predict(place / "new_houses.csv")
    frame = polars.read_csv(place / "new_houses.csv")
    assert frame["rooms"].null_count()
    for data in (
        frame,
        frame.lazy(),
        frame.to_dict(as_series=False),
        frame.to_dicts(),
        frame.select(polars.all().cast(polars.String)),
        Pandas(frame),
    ):
        assert houses.predict(data).equals(expected)


class Pandas:
    """What is used of a pandas data frame, with its way of saying that a value is missing."""

    def __init__(self, frame: polars.DataFrame) -> None:
        self._frame = frame
        self.columns = frame.columns

    def isna(self) -> None:
        raise AssertionError("asked column by column")

    def __getitem__(self, name: str) -> Any:
        return _Column(self._frame[name])


class _Column:
    def __init__(self, column: polars.Series) -> None:
        self._column = column

    def tolist(self) -> list[Any]:
        return [float("nan") if value is None else value for value in self._column.to_list()]

    def isna(self) -> Any:
        return self._column.is_null().to_numpy()


def test_pandas_itself(place: Path, houses: trueloop.Run) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(place / "new_houses.csv")
    assert houses.predict(frame).equals(houses.predict(place / "new_houses.csv"))


def test_a_row_that_cannot_be_read_is_marked(houses: trueloop.Run) -> None:
    rows = [{"area": 50.0, "rooms": 1, "colour": "red"}]
    frame = houses.predict([*rows, {"area": float("inf"), "rooms": 1, "colour": "red"}])
    assert frame["prediction"].null_count() == 1
    assert frame["prediction"][0] == houses.predict(rows)["prediction"][0]
    assert "inf" in frame["error"][1]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([[1.0, 2.0, 3.0]], "the rows to predict are a list: give a data frame"),
        (np.zeros((2, 3)), "the rows to predict are a ndarray: give a data frame"),
        (7, "the rows to predict are a int: give a data frame"),
        ([], "the table of rows to predict is empty"),
        ({}, "the table of rows to predict is empty"),
        ({"area": [1.0, 2.0], "rooms": [1]}, "these rows are not a table"),
        ([{"area": 1.0, "rooms": 2}], "column 'colour' is missing, and the model needs it"),
        ("nowhere.csv", "no file "),
    ],
)
def test_rows_that_are_of_no_use(houses: trueloop.Run, data: Any, words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        houses.predict(data)


def test_images_in_memory_are_the_images_in_files(place: Path, photos: trueloop.Run) -> None:
    expected = photos.predict(place / "new").drop("file")
    files = [place / "new/cat.png", str(place / "new/dog.png")]
    images = [Image.open(file) for file in files]
    arrays = [np.asarray(image) for image in images]
    tensors = [torch.from_numpy(array.copy()).permute(2, 0, 1) for array in arrays]
    assert photos.predict(files).drop("file").equals(expected)
    for data in (images, tuple(images), arrays, tensors, np.stack(arrays), torch.stack(tensors)):
        frame = photos.predict(data)
        assert frame["row"].to_list() == [1, 2]
        assert frame.drop("row").equals(expected)
    for one in (images[0], arrays[0], tensors[0]):
        frame = photos.predict(one)
        assert frame["row"].to_list() == [1]
        assert frame["probability"].to_list() == pytest.approx(
            expected["probability"][:1].to_list()
        )
    grey = photos.predict([np.asarray(images[0].convert("L"))])
    assert grey.drop("row").equals(photos.predict([images[0].convert("L")]).drop("row"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([np.zeros((8, 8, 3))], "image 1 is float64: give uint8 from 0 to 255"),
        ([np.zeros((8, 8, 5), np.uint8)], "image 1 is a ndarray of shape (8, 8, 5): give"),
        ([np.zeros((0, 8), np.uint8)], "image 1 has no pixels"),
        (["a.png", 3], "image 1 is a str: give Pillow's images"),
        ([], "the list of images to predict is empty"),
        (3.5, "the images to predict are a float: give a list"),
        (["gone.png"], "none of the 1 images can be decoded"),
    ],
)
def test_images_that_are_of_no_use(photos: trueloop.Run, data: Any, words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        photos.predict(data)


def test_any_other_task_takes_its_models_inputs(spiral_run: Path, line_run: Path) -> None:
    run = trueloop.Run(spiral_run)
    points = [[0.1, 0.2], [0.5, -0.5], [0.0, 0.9]]
    expected = run.model(device="cpu")(torch.tensor(points)).softmax(1).max(1).values.tolist()
    for data in (points, np.array(points), torch.tensor(points), torch.tensor(points).double()):
        frame = run.predict(data)
        assert frame.columns[:3] == ["row", "prediction", "probability"]
        assert frame["probability"].to_list() == pytest.approx(expected)
    line = trueloop.Run(line_run)
    value = float(line.model(device="cpu")(torch.tensor([[0.5]])))
    assert line.predict([[0.5]])["prediction"].to_list() == [pytest.approx(value)]
    for data, words in (
        (points[0:0], "there is nothing to predict"),
        ([[1.0], [1.0, 2.0]], "these rows are not an array of numbers"),
        (5, "the data to predict is a int"),
    ):
        with pytest.raises(DataError, match=words):
            run.predict(data)


@pytest.fixture
def in_the_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(place)
    modules = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(modules):
        if name in ("predict", "network"):
            del sys.modules[name]


@pytest.mark.usefixtures("in_the_place")
def test_what_the_page_shows(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predicting, model, alone = SNIPPETS
    names: dict[str, Any] = {}
    exec(predicting, names)
    from_rows = names["from_rows"]["prediction"].to_list()
    assert names["from_file"].height == 15
    exec(model, names)
    assert names["logits"].shape == (2, 3)
    assert main(["export", "runs/houses", "--out", "app"]) == 0
    assert main(["export", "runs/photos", "--out", "photo-app"]) == 0
    monkeypatch.syspath_prepend(str(place / "app"))
    assert "trueloop" not in alone
    names = {}
    exec(alone.replace("model.predict", "found = model.predict"), names)
    assert [row["prediction"] for row in names["found"]] == pytest.approx(from_rows, rel=1e-5)
    monkeypatch.syspath_prepend(str(place / "photo-app"))
    del sys.modules["predict"], sys.modules["network"]
    program: Any = importlib.import_module("predict")
    pictures = [f"new/{name}.png" for name in ("cat", "dog")]
    ours = trueloop.Run("runs/photos").predict("new").to_dicts()
    for one, two in zip(ours, program.ImagePredictor().predict(pictures), strict=True):
        assert one["prediction"] == two["prediction"]
        assert one["probability"] == pytest.approx(two["probability"], abs=1e-5)
