import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from trueloop.errors import RunError
from trueloop.run.json_files import plain, read_json, unspell, write_json


def test_plain_data_survives_the_way_through_a_file(tmp_path: Path) -> None:
    value = {
        "path": Path("a/b"),
        "device": torch.device("cpu"),
        "dtype": torch.bfloat16,
        "pair": (1, 2.5),
        "none": None,
        "array": np.arange(3),
        "number": np.float32(0.5),
        "name": "naïve \U0001f300 </script>",
        1: True,
    }
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == {
        "path": "a/b",
        "device": "cpu",
        "dtype": "torch.bfloat16",
        "pair": [1, 2.5],
        "none": None,
        "array": [0, 1, 2],
        "number": 0.5,
        "name": "naïve \U0001f300 </script>",
        "1": True,
    }


def test_floats_that_json_lacks(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": [math.nan, math.inf, -math.inf, 1.0]})
    text = (tmp_path / "x.json").read_text()
    assert '"NaN"' in text
    back = unspell(read_json(tmp_path / "x.json"))["a"]
    assert math.isnan(back[0])
    assert back[1:] == [math.inf, -math.inf, 1.0]


def test_a_name_in_no_encoding_is_stored(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.png")
    write_json(tmp_path / "x.json", {"file": name})
    assert read_json(tmp_path / "x.json")["file"] == name


def test_what_json_cannot_hold_is_named() -> None:
    with pytest.raises(RunError, match=r"config\.model\[1\] is a Linear"):
        plain({"model": [1, torch.nn.Linear(1, 1)]}, "config")


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[1]", b""])
def test_a_corrupt_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.json").write_bytes(content)
    with pytest.raises(RunError, match=r"data\.json is corrupt"):
        read_json(tmp_path / "data.json")
