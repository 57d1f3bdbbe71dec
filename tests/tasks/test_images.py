"""The images task as a whole: folders of every layout, and the ones it refuses."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from trueloop import Feed
from trueloop.errors import DataError
from trueloop.run import Figures
from trueloop.tasks.images import Images
from trueloop.tasks.images.image_folder import images_below, natural_order
from trueloop.tasks.images.resnet import ResNet


def task(path, **options) -> Images:
    return Images(Images.Options(**options), data=path, seed=0)


def test_class_folders_are_divided_by_the_seed(image_folder, as_arrays):
    root = image_folder(count=20)
    splits = task(root).splits()
    assert splits.facts["images"] == {"train": 32, "val": 4, "test": 4}
    assert splits.facts["size"] == "16×16, grey"
    inputs, labels = as_arrays(splits.train)
    assert inputs.shape == (32, 1, 16, 16)
    assert inputs.dtype == np.uint8
    assert np.bincount(labels).tolist() == [16, 16]
    # "bright" is class 0, by the order of the names; the pixels say which image is which.
    assert ((inputs.mean(axis=(1, 2, 3)) > 125) == (labels == 0)).all()
    again = as_arrays(task(root).splits().train)
    assert (again[0] == inputs).all()


def test_classes_are_in_natural_order(image_folder):
    root = image_folder(classes=("10", "9", "B", "a"))
    one = task(root)
    one.splits()
    assert one.classes == ["9", "10", "a", "B"]


def reference_key(name):
    """Text and numbers by turns, split by hand; then the name itself."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name.lower())
    if parts[0].isdecimal():
        parts = ["", *parts]
    return [int(part) if k % 2 else part for k, part in enumerate(parts)], name


@pytest.mark.parametrize(
    "names",
    [
        [f"{k}.png" for k in (10, 9, 100, 1, 0)],
        ["10.png", "010.png", "9.png"],
        ["7.png"],
        ["img2_10.png", "img2_9.png", "img2_100.png"],
        ["img2_10.png", "img10_9.png", "img2_9.png"],
        ["1.png", "2.PNG", "10.jpg"],
        ["a.png", "B.png", "a1.png", "b.png", "A.png"],
        ["1.1.png", "1.10.png", "1.9.png", "1..png"],
        ["1.png", "1²3.png", "2.png"],
        [],
    ],
)
def test_names_are_sorted_by_their_numbers(names):
    for seed in range(3):
        mixed = list(np.random.default_rng(seed).permutation(names)) if names else []
        order = natural_order([str(name) for name in mixed])
        assert [mixed[k] for k in order] == sorted(names, key=reference_key)


def test_the_files_below_a_folder(tmp_path):
    for place in ("2.png", "10.png", "b/1.JPG", "a10/1.png", "a9/1.png", "a9/.x.png", ".h/1.png"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(bytes(len(place)))
    (tmp_path / "note.txt").touch()
    (tmp_path / "gone.png").symlink_to("nowhere")
    (tmp_path / "again").symlink_to(tmp_path / "b")
    found = images_below(tmp_path)
    expected = ["2.png", "10.png", "gone.png", "a9/1.png", "a10/1.png", "b/1.JPG"]
    assert found.paths == [str(tmp_path / place) for place in expected]
    assert found.others == 1
    for path, facts in zip(found.paths, found.status.tolist(), strict=True):
        if path.endswith("gone.png"):
            assert facts == [-1, 0, 0]
        else:
            status = os.stat(path)
            assert facts == [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


@pytest.mark.parametrize("is_relative", [False, True])
def test_the_digest_is_of_names_sizes_and_parts(image_folder, monkeypatch, is_relative):
    root = image_folder(count=12, classes=("9", "10", "x"))
    monkeypatch.chdir(root)
    one = task(Path() if is_relative else root)
    splits = one.splits()
    paths = [path for k in ("9", "10", "x") for path in sorted((root / k).iterdir(), key=number)]
    expected = hashlib.sha256()
    for name in ("train", "test", "val"):
        for row in getattr(splits, name).indices:
            path = paths[row]
            facts = f"{name} {path.parent.name}/{path.name} {path.stat().st_size}\0"
            expected.update(facts.encode())
    assert one.digest == expected.hexdigest()


def number(path):
    return int(path.stem)


def test_train_and_test_folders(image_folder, tmp_path):
    image_folder("data/train", count=20)
    image_folder("data/test", count=3)
    splits = task(tmp_path / "data").splits()
    assert splits.facts["images"] == {"train": 36, "val": 4, "test": 6}
    image_folder("data/valid", count=2)
    splits = task(tmp_path / "data").splits()
    assert splits.facts["images"] == {"train": 40, "val": 4, "test": 6}
    shutil.rmtree(tmp_path / "data" / "test")
    splits = task(tmp_path / "data").splits()
    assert splits.test is None


def test_what_is_held_out_does_not_normalise(image_folder, tmp_path, as_arrays):
    image_folder("data/train", count=20)
    image_folder("data/val", count=4)
    first, second = task(tmp_path / "data"), task(tmp_path / "data")
    first.splits()
    for path in (tmp_path / "data" / "val").rglob("*.png"):
        Image.new("L", (16, 16), 255).save(path)
    second.splits()
    fitted = [{**each.state(), "digest": None} for each in (first, second)]
    assert fitted[0] == fitted[1]
    pixels = as_arrays(first.splits().train)[0] / 255
    assert first.mean == [pytest.approx(pixels.mean())]
    assert first.std == [pytest.approx(pixels.std())]


def test_it_learns_dark_from_bright(image_folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    one = task(image_folder(count=20), width=8)
    splits = one.splits()
    feed = Feed(splits.train, one.recipe.batch_size, shuffle=True, transform=splits.augment)
    model, loss_fn = one.model(), one.loss_fn()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(10):
        for batch in feed.epoch(epoch):
            loss_fn(model, batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    images, labels = next(Feed(splits.val, 4).epoch(0))
    assert (model.eval()(images).argmax(1) == labels).all()


def test_state_is_json_and_enough_to_predict(image_folder, tmp_path, as_arrays):
    root = image_folder(count=12)
    one = task(root, width=8)
    one.splits()
    torch.manual_seed(0)
    model = one.model().eval()
    other = Images(seed=0)
    other.restore(json.loads(json.dumps(one.state())))
    twin = other.model().eval()
    twin.load_state_dict(model.state_dict())
    unseen = other.unseen(root)
    assert unseen.names["file"][0] == "bright/0.png"
    assert len(unseen.names["file"]) == 24
    images = next(Feed(unseen.inputs, 24).epoch(0))
    assert torch.equal(model(images), twin(images))
    columns = other.predictions(twin(images))
    assert set(columns) == {"prediction", "probability", "p_bright", "p_dark"}
    single = other.unseen(root / "dark" / "3.png")
    assert single.names == {"file": ["3.png"]}
    data = other.read(root)
    assert (as_arrays(data)[1] == [0] * 12 + [1] * 12).all()


def test_reading_takes_the_test_folder(image_folder, tmp_path, one_line):
    image_folder("data/train")
    image_folder("data/test", count=3)
    one = task(tmp_path / "data")
    one.splits()
    assert len(one.read(tmp_path / "data")) == 6
    assert len(one.read(tmp_path / "data" / "train")) == 24
    shutil.rmtree(tmp_path / "data" / "test")
    with pytest.raises(DataError, match="contains only training images") as error:
        one.read(tmp_path / "data")
    one_line(error)
    other = image_folder("other", classes=("dark", "brigth"))
    with pytest.raises(DataError, match="'bright'") as error:
        one.read(other)
    one_line(error)


def test_images_beyond_the_memory_are_decoded_on_demand(image_folder, as_arrays):
    root = image_folder(count=20)
    kept, fetched = task(root).splits(), task(root, memory_gb=1e-6).splits()
    assert kept.facts["kept in memory"]
    assert not fetched.facts["kept in memory"]
    for one, other in zip(as_arrays(kept.train), as_arrays(fetched.train), strict=True):
        assert (one == other).all()
    first = next(Feed(kept.train, 8, shuffle=True, seed=1, transform=kept.augment).epoch(0))
    second = next(Feed(fetched.train, 8, shuffle=True, seed=1, transform=kept.augment).epoch(0))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


@pytest.mark.parametrize("memory", [2.0, 1e-6])
def test_broken_images_are_skipped_and_named(image_folder, memory):
    root = image_folder(count=20)
    (root / "dark" / "3.png").write_bytes(b"")
    (root / "bright" / "notes.txt").write_text("not an image")
    (root / "README.md").write_text("nor this")
    skipping = task(root, broken="skip", memory_gb=memory)
    facts = skipping.splits().facts
    assert sum(facts["images"].values()) == 39
    assert facts["broken images, skipped"] == 1
    assert skipping.skipped == {str(root / "dark" / "3.png"): "an empty file"}
    assert facts["files that are not images, ignored"] == 2


def test_a_broken_image_stops_the_run(image_folder, refusal):
    root = image_folder()
    whole = (root / "dark" / "3.png").read_bytes()
    (root / "dark" / "3.png").write_bytes(whole[: len(whole) // 2])
    (root / "dark" / "4.png").write_bytes(b"")
    message = refusal(task(root), "3.png .and 1 more. cannot be decoded: .*truncated")
    assert message.endswith("train with --broken skip")


def test_broken_images_are_marked_in_what_is_predicted_and_left_out_of_scores(image_folder):
    root = image_folder()
    trained = task(root, size=16)
    trained.splits()
    (root / "dark" / "3.png").write_bytes(b"")
    for memory_gb in (2.0, 0.0):  # kept in memory, and decoded when asked for
        trained.options.memory_gb = memory_gb
        unseen = trained.unseen(root)
        assert len(unseen.names["file"]) == 24
        assert len(unseen.inputs) == 23
        row = unseen.names["file"].index("dark/3.png")
        assert unseen.errors == {row: "an empty file"}
        columns = unseen.table({"prediction": list(range(23))})
        assert columns["prediction"][row - 1 : row + 2] == [row - 1, None, row]
        assert columns["error"][row - 1 : row + 2] == [None, "an empty file", None]
        assert len(trained.read(root)) == 23
        assert trained.skipped == {str(root / "dark" / "3.png"): "an empty file"}


def test_only_broken_images_cannot_be_predicted(image_folder, one_line):
    root = image_folder()
    trained = task(root)
    trained.splits()
    for path in root.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match="none of the 24 images can be decoded") as error:
        trained.unseen(root)
    one_line(error)


def test_folders_that_cannot_be_learnt_from(image_folder, tmp_path, refusal):
    refusal(Images(), "write --data FOLDER")
    refusal(task(tmp_path / "none"), "no folder .*none: check --data")
    (tmp_path / "empty").mkdir()
    refusal(task(tmp_path / "empty"), "is empty: give a folder")
    (tmp_path / "data.tar.gz").write_bytes(b"\x1f\x8b")
    refusal(task(tmp_path / "data.tar.gz"), "an archive: unpack it")
    (tmp_path / "data.csv").write_text("a,b\n")
    refusal(task(tmp_path / "data.csv"), "is a file: give a folder")
    refusal(task(image_folder("one", classes=("dark",))), r"only one class \('dark'\)")
    refusal(task(image_folder("flat") / "dark"), "contains images but no class folders")
    root = image_folder("hollow")
    (root / "grey").mkdir()
    refusal(task(root), "'grey' contains no image .*one folder of images per class")
    refusal(task(image_folder("few", count=1)), "too few images .*10 or more of each class")
    root = image_folder("all_broken")
    for path in (root / "dark").iterdir():
        path.write_bytes(b"")
    refusal(task(root, broken="skip"), "'dark' has no image left")


def test_a_test_class_must_be_known(image_folder, tmp_path, refusal):
    image_folder("data/train")
    image_folder("data/test", classes=("dark", "brihgt"))
    refusal(task(tmp_path / "data"), "brihgt is not a class of the training images.*'bright'")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"broken": "skp"}, "did you mean 'skip'"),
        ({"size": 4}, "--size must be 8 to 1,024 pixels, not 4: write --size 64"),
        ({"width": 0}, "--width must be 2 to 1,024 channels"),
        ({"val_share": 0.9}, "--val-share must be between"),
        ({"test_share": 0.0}, "--test-share must be between"),
        ({"memory_gb": -1.0}, "--memory-gb must be 0 to 1,000,000 GB"),
    ],
)
def test_options_that_cannot_work(image_folder, options, match, refusal):
    refusal(task(image_folder(), **options), match)


def test_augmentation_suits_the_images(image_folder):
    grey = image_folder("grey")
    colour = image_folder("colour", mode="RGB")
    assert task(grey).splits().augment.warp
    assert not task(grey).splits().augment.mirror
    assert task(grey, mirror=True).splits().augment.mirror
    assert task(colour).splits().augment.mirror
    assert not task(colour, mirror=False).splits().augment.mirror
    assert task(colour, augment=False).splits().augment is None


def test_the_worst_mistakes_are_the_images_themselves(image_folder, tmp_path, as_arrays):
    one = task(image_folder(count=20))
    splits = one.splits()
    labels = torch.tensor(as_arrays(splits.val)[1])
    outputs = torch.nn.functional.one_hot(1 - labels, 2).float() * 5
    album = Figures(tmp_path)
    one.pictures(one.model(), splits, outputs, labels, album)
    assert "The 4 of 4" in album.entries[0]["caption"]


@pytest.mark.parametrize(
    ("size", "stages"),
    [((8, 8), 1), ((16, 16), 2), ((28, 28), 3), ((32, 32), 3), ((64, 64), 4), ((128, 128), 4)],
)
def test_the_network_is_sized_by_the_input(size, stages):
    net = ResNet(1, size, 5, width=4, mean=[0.5], std=[0.2])
    assert len(net.features) == 3 + stages
    images = torch.randint(0, 256, (2, 1, *size), dtype=torch.uint8)
    assert net(images).shape == (2, 5)
    features = net.features(torch.zeros(2, 1, *size))
    assert 2 <= min(features.shape[2:]) <= 4


def test_the_network_divides_and_normalises():
    net = ResNet(1, (16, 16), 3, width=4, mean=[0.25], std=[0.5]).eval()
    plain = ResNet(1, (16, 16), 3, width=4, mean=[0.0], std=[1 / 255]).eval()
    plain.load_state_dict({**net.state_dict(), "mean": plain.mean, "std": plain.std})
    images = torch.randint(0, 256, (3, 1, 16, 16), dtype=torch.uint8)
    expected = plain((images / 255 - 0.25) / 0.5)
    assert torch.allclose(net(images), expected, atol=1e-5)
