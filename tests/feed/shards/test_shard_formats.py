"""What `Shards` reads, against pyarrow's own whole read and `tarfile`'s."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from shard_files import rows, write_arrow, write_parquet, write_tar

from trueloop.errors import ConfigError, DataError
from trueloop.feed import Feed, Shards

COUNTS = [40, 3, 0, 61]
GRID = pa.list_(pa.list_(pa.int16(), 2), 2)


def assert_equal_to_table(shards: Shards, table: pa.Table) -> None:
    """One by one, and as batches."""
    expected = {name: np.array(table[name].to_pylist()) for name in table.column_names}
    assert len(shards) == table.num_rows
    for number in (0, 39, 40, 43, len(shards) - 1, -1):
        sample = shards[number]
        for name, values in expected.items():
            assert np.array_equal(sample[name].numpy(), values[number]), name
    for batch in (next(Feed(shards, len(shards)).epoch(0)), shards.get_batch(range(len(shards)))):
        for name, values in expected.items():
            assert np.array_equal(batch[name].numpy(), values), name
    assert batch["pair"].dtype == torch.float32
    assert batch["small"].dtype == torch.uint8
    assert batch["flag"].dtype == torch.bool


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_parquet_is_what_pyarrow_reads(tmp_path: Path, compression: str) -> None:
    first = 0
    for number, count in enumerate(COUNTS):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(rows(first, count), path, row_group_size=13, compression=compression)
        first += count
    assert_equal_to_table(Shards(tmp_path), pq.read_table(tmp_path))


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_arrow_is_what_pyarrow_reads(tmp_path: Path, compression: str | None) -> None:
    write_arrow(tmp_path, COUNTS, batch=13, compression=compression)
    tables = [pa.ipc.open_file(path).read_all() for path in sorted(tmp_path.glob("*.arrow"))]
    assert_equal_to_table(Shards(tmp_path), pa.concat_tables(tables))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_of_all_types(tmp_path: Path, form: str) -> None:
    table = pa.table(
        {
            "half": pa.array(np.arange(6, dtype=np.float16)),
            "grid": pa.array([[[k, k], [k, k + 1]] for k in range(6)], GRID),
            "ragged": pa.array([[1] * k for k in range(6)], pa.list_(pa.int32())),
            "text": pa.array([f"row {k}" for k in range(6)]),
            "blob": pa.array([bytes([k]) for k in range(6)]),
            "word": pa.array(list("ababab")).dictionary_encode(),
            "day": pa.array(range(6), pa.date32()),
            "holes": pa.array([1, None, 3, 4, 5, 6]),
        }
    )  # fmt: skip
    if form == "parquet":
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    else:
        with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=4)
    good = ("half", "grid", "ragged", "text", "blob", "word")
    half, grid, ragged, text, blob, word = Shards(tmp_path, fields=good)[4]
    assert half.dtype == torch.float16
    assert half == 4
    assert grid.tolist() == [[4, 4], [4, 5]]
    assert ragged.tolist() == [1, 1, 1, 1]
    assert (text, blob, word) == ("row 4", b"\4", "a")
    with pytest.raises(DataError, match=r"'day' .* is of type date32.*leave it out"):
        Shards(tmp_path, fields=("day",))[0]
    with pytest.raises(DataError, match=r"'holes' has 1 nulls .*the first in row 1 there: fill"):
        Shards(tmp_path, fields=("holes",))[0]
    decode = {"day": lambda day: day.toordinal(), "holes": lambda value: value or 0}
    shards = Shards(tmp_path, fields=("day", "holes"), decode=decode)
    assert next(Feed(shards, 3).epoch(0))[1].tolist() == [1, 0, 3]


def picture(kind: str, shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 3), (shade, 0, 255)).save(buffer, kind)
    return buffer.getvalue()


def test_fields_of_a_tar_file_are_decoded_by_their_names(tmp_path: Path) -> None:
    array = io.BytesIO()
    np.save(array, np.arange(6.0).reshape(2, 3))
    sample = {
        "png": picture("PNG", 7),
        "cls": b"3\n",
        "txt": "ä".encode(),
        "json": json.dumps({"a": [1]}).encode(),
        "npy": array.getvalue(),
        "seg.PNG": picture("PNG", 9),
        "bin": b"\0\1",
    }
    write_tar(tmp_path / "a.tar", [sample, sample])
    found = Shards(tmp_path)[1]
    assert found["png"].dtype == torch.uint8
    assert found["png"].shape == (3, 3, 4)
    assert found["png"][:, 1, 2].tolist() == [7, 0, 255]
    assert found["seg.png"][0, 0, 0] == 9
    assert (found["cls"], found["txt"], found["json"]) == (3, "ä", {"a": [1]})
    assert found["npy"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["bin"] == b"\0\1"
    choice = Shards(
        tmp_path, fields={"image": "jpg;png", "name": "__key__"}, decode={"png": "gray"}
    )
    assert choice[1]["image"].shape == (1, 3, 4)
    assert choice[1]["name"] == "part/000001"
    images, labels = next(Feed(Shards(tmp_path, fields=("png", "cls")), 2).epoch(0))
    assert images.shape == (2, 3, 3, 4)
    assert labels.tolist() == [3, 3]


def test_pickles_are_not_read(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "ran",)

    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    write_tar(tmp_path / "a.tar", [{"pkl": pickle.dumps(Trap()), "npy": objects.getvalue()}])
    with pytest.raises(DataError, match="is a pickle, whose reading runs code"):
        Shards(tmp_path, fields=("pkl",))[0]
    with pytest.raises(DataError, match=r"'npy' of the sample .* cannot be decoded"):
        Shards(tmp_path, fields=("npy",))[0]
    assert not (tmp_path / "ran").exists()


LONG = "a-folder-with-a-long-name/" * 6 + "x" * 120


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_is_what_tarfile_reads(tmp_path: Path, form: int) -> None:
    """Long names, names that are not ASCII, folders, links, empty members, and one without an
    extension, in each format that `tarfile` writes."""
    names = ["a/1.txt", "a/1.bin", "a/ü.txt", "b/2.txt", "README", "b/3.txt"]
    if form != tarfile.USTAR_FORMAT:
        names += [f"{LONG}/4.txt", f"{LONG}/4.bin", "c/5.txt"]
    else:
        names.append("d" * 90 + "/" + "e" * 90 + ".txt")
    with tarfile.open(tmp_path / "a.tar", "w", format=form) as archive:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = number * 300
            archive.addfile(member, io.BytesIO(bytes([number]) * member.size))
            link, folder = tarfile.TarInfo(f"{number}.lnk"), tarfile.TarInfo(f"{number}.dir")
            link.type, link.linkname, folder.type = tarfile.SYMTYPE, "x", tarfile.DIRTYPE
            archive.addfile(link)
            archive.addfile(folder)
    expected: dict[str, dict[str, bytes]] = {}
    with tarfile.open(tmp_path / "a.tar") as archive:
        for member in archive:
            field = member.name.rpartition("/")[2].partition(".")[2]
            if member.isreg() and field:
                key = member.name[: len(member.name) - len(field) - 1]
                file = archive.extractfile(member)
                assert file is not None
                expected.setdefault(key, {})[field] = file.read()
    decode = {"txt": "bytes"}
    shards = Shards(tmp_path, fields={"key": "__key__", "content": "txt"}, decode=decode)
    found = [shards[number] for number in range(len(shards))]
    assert {each["key"]: each["content"] for each in found} == {
        key: fields["txt"] for key, fields in expected.items()
    }


def test_one_key_twice_in_a_row_is_refused_and_apart_it_is_two_samples(tmp_path: Path) -> None:
    def write(path: Path, names: list[str]) -> None:
        with tarfile.open(path, "w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name))

    write(tmp_path / "a.tar", ["1.txt", "2.txt", "1.txt"])
    assert len(Shards(tmp_path)) == 3
    write(tmp_path / "a.tar", ["1.txt", "1.txt"])
    with pytest.raises(DataError, match=r"a\.tar is damaged at byte 512 \('1.txt' is there twice"):
        Shards(tmp_path, index=tmp_path / "new.npz")


def test_missing_and_unknown_fields_are_said_before_the_training(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", [{"png": b"", "cls": b"1"}, {"cls": b"2"}])
    with pytest.raises(DataError, match=r"1 samples of the shard .*a\.tar have no field 'png'"):
        Shards(tmp_path, fields=("png", "cls"))
    with pytest.raises(ConfigError, match=r"no field 'clss': did you mean 'cls'\?"):
        Shards(tmp_path, fields=("clss",))
    write_tar(tmp_path / "b.tar", [{"jpg": b""}, {"cls": b"2"}])
    with pytest.raises(DataError, match=r"'part/000001' at byte \d+ of .* has no field jpg or"):
        Shards([tmp_path / "a.tar", tmp_path / "b.tar"], fields=("jpg;png",))[1]


def test_samples_of_unlike_shape_are_said_as_for_any_data_set(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", [{"txt": b"a", "cls": b"1"}, {"cls": b"2"}])
    with pytest.raises(DataError, match=r"sample 0 has the keys 'cls', 'txt' and sample 1"):
        next(Feed(Shards(tmp_path), 2).epoch(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": "x"}, "fields='x' is not a list of names"),
        ({"fields": ("x", "x")}, "a name is twice"),
        ({"fields": ("y",)}, "no field 'y'"),
        ({"decode": {"y": "int"}}, "decode has an unknown field 'y'"),
        ({"decode": {"x": "imagee"}}, "unknown decoder 'imagee': did you mean 'image'"),
        ({"decode": {"x": lambda: 1}}, r"decode\['x'\] is called with \(content\)"),
        ({"window": 0}, "window=0 is not an integer of at least 1"),
        ({"retries": -1}, "retries=-1"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    write_parquet(tmp_path, [3])
    with pytest.raises(ConfigError, match=message):
        Shards(tmp_path, **arguments)  # type: ignore[arg-type]


def test_shards_of_one_schema_are_asked_for(tmp_path: Path) -> None:
    write_parquet(tmp_path, [3])
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "zzz.parquet")
    with pytest.raises(DataError, match=r"'flag' is bool in .*000\.parquet and missing in .*zzz"):
        Shards(tmp_path)
