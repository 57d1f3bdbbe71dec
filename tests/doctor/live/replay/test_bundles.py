"""Bundles that nobody has recorded: refused in one line, with nothing run that could do harm."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from crafted import Parts, crafted, nested, record, recorded, written
from hypothesis import HealthCheck, given, settings, strategies as st
from torch import Tensor, nn

from trials import trials
from trueloop.cli import main
from trueloop.doctor.live.replay import bundle, bundle_format, op_runner
from trueloop.doctor.live.replay.bundle_format import GENERATORS, TAPE, TENSORS
from trueloop.errors import ConfigError


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Parts]:
    return recorded(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def linear(bundles: dict[str, Parts]) -> Parts:
    return bundles["linear"].copy()


def replays(folder: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and what stands on stderr."""
    status = main(["replay", str(folder)])
    return status, capfd.readouterr().err


def refused(parts: Parts, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    status, said = replays(parts.write(folder / "bundle"), capfd)
    assert status == 2
    assert said.startswith("trueloop: error: "), said
    assert said.count("\n") == 1, said
    assert len(said) < 1000, said
    return said


def outcome(folder: Path) -> tuple[int, str]:
    """The exit status, and the line that is printed with 2."""
    try:
        return (0 if bundle.replay(str(folder)).same else 1), ""
    except ConfigError as error:
        return 2, str(error)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# ---------------------------------------------------------------------- as it should be


KINDS = ("linear", "conv", "norms", "embedding", "bags", "lstm", "gru", "attention", "indices",
         "algebra", "pictures", "losses")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_recorded_is_replayed(
    kind: str, bundles: dict[str, Parts], tmp_path: Path
) -> None:
    parts = bundles[kind].copy()
    last = parts.tape["operations"][-1]
    last["bad"] = "" if last["bad"] == "NaN" else last["bad"]  # made up, to have a bundle at all
    replayed = bundle.replay(str(parts.write(tmp_path / "bundle")))
    assert replayed.same
    assert replayed.count > 0
    assert set(bundles) == set(KINDS)


def test_values_are_as_they_were(tmp_path: Path) -> None:
    """Strides, complex numbers, numbers of bool, and what is NaN from the beginning."""
    x = torch.randn(3, 4).t()
    wave = torch.randn(3, dtype=torch.complex64)
    mask = torch.tensor([True, False, True])
    broken = torch.tensor([1.0, float("nan"), 2.0])

    def compute() -> Any:
        return (x + 1).sum() + (wave * wave.conj()).real[mask].sum() + (broken * mask).sum()

    held = bundle_format.read(str(written(record(compute), tmp_path))).tensors
    assert any(each.equal(x) and each.stride() == x.stride() for each in held.values())
    assert any(each.dtype == torch.complex64 and each.equal(wave) for each in held.values())
    assert any(each.dtype == torch.bool and each.equal(mask) for each in held.values())


def test_an_operation_that_a_bundle_may_not_hold_is_not_written(tmp_path: Path) -> None:
    tape = record(lambda: torch.ones(3).resize_(5))
    tape.operations[-1].bad = "NaN"
    with pytest.raises(AssertionError, match="resize_"):
        written(tape, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_autograds_zeros_without_memory_can_be_recorded() -> None:
    """Asked whether they are finite, they crash the interpreter."""
    zeros = torch._efficientzerotensor(3)
    assert zeros._is_zerotensor()
    tape = record(lambda: torch._efficientzerotensor(3))
    assert {each.bad for each in tape.operations} == {""}


def test_a_bundle_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = record(nn.Linear(2, 1), torch.ones(1, 2))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "_generators", full)
    with pytest.raises(OSError, match="No space"):
        written(tape, tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- what is refused


def test_each_status_and_its_line(
    linear: Parts, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    operations = linear.tape["operations"]
    operations[-1]["bad"] = ""
    folder = linear.write(tmp_path / "bundle")
    assert replays(folder, capfd) == (0, "")
    operations[0]["bad"] = "inf"
    linear.write(folder)
    assert replays(folder, capfd) == (1, "")
    operations[0]["name"] = "aten.from_file.default"
    assert "is not among the operations that a bundle may contain" in refused(
        linear, tmp_path, capfd
    )


@pytest.mark.parametrize("name", [TAPE, TENSORS, GENERATORS])
@pytest.mark.parametrize("kind", ["missing", "a folder", "a FIFO", "a character device", "a loop"])
def test_only_regular_files_are_read(
    name: str, kind: str, linear: Parts, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = linear.write(tmp_path / "bundle") / name
    path.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a character device":
        path.symlink_to("/dev/zero")
    elif kind == "a loop":
        path.symlink_to(path)
    status, said = replays(path.parent, capfd)
    assert status == 2
    assert said.count("\n") == 1
    told = {"missing": "no such file", "a loop": "too many levels of symbolic links"}
    assert told.get(kind, f"it is {kind}, not a regular file") in said


@pytest.mark.parametrize("given", ["", "\0", "x" * 5000, "/dev/null", "no/such/folder", "\x1b[2J"])
def test_what_is_not_a_folder(given: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", given]) == 2
    said = capfd.readouterr().err
    assert "is not a bundle" in said
    assert said.count("\n") == 1
    assert len(said) < 500
    assert said.strip().isprintable()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"1" * 5000, "is not JSON"),
        (b"null", "is not an object"),
        (b'{"version": true}', "different version"),
        (b'{"version": 2}', "different version"),
    ],
    ids=["empty", "not UTF-8", "deep lists", "deep objects", "digits", "null", "true", "newer"],
)
def test_a_tape_that_is_not_one(
    content: bytes, reason: str, linear: Parts, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = linear.write(tmp_path / "bundle")
    (folder / TAPE).write_bytes(content)
    status, said = replays(folder, capfd)
    assert (status, said.count("\n")) == (2, 1)
    assert reason in said


def test_a_file_that_is_too_large_is_not_read(
    linear: Parts, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As a sparse file a terabyte costs nothing, and would not fit into memory."""
    for name in (TAPE, TENSORS, GENERATORS):
        folder = linear.write(tmp_path / name)
        os.truncate(folder / name, 2**40)
        status, said = replays(folder, capfd)
        assert (status, said.count("\n")) == (2, 1)
        assert "it is larger than" in said


def call(name: str, *args: Any, outputs: int = 1, **kwargs: Any) -> dict[str, Any]:
    return {
        "name": f"aten.{name}", "args": list(args), "kwargs": kwargs, "bad": "", "module": "",
        "kind": "", "line": None, "node": "", "outputs": outputs,
    }  # fmt: skip


def parts(linear: Parts, tensors: list[Tensor], *calls: dict[str, Any]) -> Parts:
    """A bundle with these tensors, and these operations on them."""
    made = linear.copy()
    made.tensors = {str(index): each.clone() for index, each in enumerate(tensors)}
    values = [{"source": None, "bad": "", "stride": list(each.stride())} for each in tensors]
    for each in calls:
        first = len(values)
        values += [{"source": None, "bad": "", "stride": None}] * each["outputs"]
        each["outputs"] = list(range(first, len(values)))
    made.tape.update(values=values, operations=list(calls))
    return made


T = [{"tensor": index} for index in range(8)]
X = torch.ones(2, 3)
PICTURE = torch.ones(1, 2, 4, 4)
FLOAT = {"dtype": "float32"}


@pytest.mark.parametrize(
    ("tensors", "operation", "reason"),
    [
        # names
        ([], call("from_file.default", "/etc/passwd", None, 9), "may contain"),
        ([X], call("set_.source_Tensor", T[0], T[0]), "may contain"),
        ([X], call("resize_.default", T[0], [9]), "may contain"),
        ([X], call("as_strided_.default", T[0], [9], [1]), "may contain"),
        ([X], call("_to_sparse.default", T[0]), "may contain"),
        ([X], call("sparse_coo_tensor.indices_size", T[0], T[0], [2, 2]), "may contain"),
        ([X], call("_sparse_coo_tensor_unsafe.default", T[0], T[0], [2, 2]), "may contain"),
        ([X], call("quantize_per_tensor.default", T[0], 0.1, 0, FLOAT), "may contain"),
        ([X], call("_cudnn_rnn.default", T[0]), "may contain"),
        ([X], call("add.out", T[0], T[0], out=T[0]), "may contain"),
        ([X], call("../add", T[0]), "may contain"),
        ([X], call("add.t", [1], [2]), "this torch has no"),
        ([X], call("add.no_such", T[0], T[0]), "this torch has no"),
        # arguments
        ([X], call("add.Tensor", T[0]), "its argument other is missing"),
        ([X], call("add.Tensor", T[0], T[0], T[0], T[0]), "it takes 2 arguments"),
        ([X], call("add.Tensor", T[0], T[0], self=T[0]), "it does not take self by name"),
        ([X], call("add.Tensor", T[0], {"tensor": 7}), "is not there before it is used"),
        ([X], call("add.Tensor", T[0], {"tensor": True}), "is not a"),
        ([X], call("sum.dim_IntList", T[0], [0.5]), "is not a whole number"),
        ([X], call("sum.dim_IntList", T[0], [2**63]), "is not a whole number"),
        ([X], call("sum.dim_IntList", T[0], nested(50)), "is not a whole number"),
        ([X], call("sum.default", T[0], dtype={"dtype": "qint8"}), "is not a dtype"),
        ([X], call("sum.default", T[0], dtype={"dtype": "nn"}), "is not a dtype"),
        ([X], call("_to_copy.default", T[0], layout={"layout": "sparse_coo"}), "is not a layout"),
        ([X], call("_to_copy.default", T[0], device={"device": "meta"}), "is not a device"),
        ([X], call("bernoulli.default", T[0], generator={"unknown": "Generator"}), "generators"),
        ([X], call("gelu.default", T[0], approximate="/etc/passwd"), "is not a text"),
        ([X], call("avg_pool2d.default", T[0], [1, 2, 3]), "does not have 2 numbers"),
        ([X], call("split.Tensor", T[0], 1, outputs=1), "it makes 2 tensors, not 1"),
        # memory
        ([], call("full.default", [2**40], 1.0), "it needs more than"),
        ([], call("empty.memory_format", [2**31, 2**31]), "cannot be run here"),
        ([], call("zeros.default", [2**62, 4]), "cannot be run here"),
        ([], call("empty_strided.default", [2, 2], [2**40, 1]), "it needs more than"),
        ([], call("arange.default", 1e15), "it needs more than"),
        ([X], call("expand.default", T[0], [2**40, 2, 3]), "it needs more than"),
        ([X], call("repeat.default", T[0], [2**20, 2**20]), "it needs more than"),
        ([X], call("constant_pad_nd.default", T[0], [0, 2**30]), "it needs more than"),
        ([X], call("mvlgamma.default", T[0], 2**40), "its p is too large"),
        ([torch.tensor([2**40])], call("repeat_interleave.Tensor", T[0]), "too large"),
        ([torch.tensor([2**40])], call("bincount.default", T[0]), "too many bins"),
        (
            [torch.ones(1, 1, 9, 9).double(), torch.ones(1, 1, 9, 9).double()],
            call("convolution.default", T[0], T[1], None, [1, 1], [9000, 9000], [1, 1], False,
                 [0, 0], 1),
            "it needs more than",
        ),
        # memory that is not the tensor's
        (
            [torch.tensor([-(2**63)]), torch.tensor([7])],
            call("lcm.default", T[0], T[1]),
            "least number of a dtype",
        ),
        ([torch.ones(5, 1, 0)], call("_pdist_forward.default", T[0]), "not rows of numbers"),
        ([X], call("as_strided.default", T[0], [9], [1]), "beyond its tensor's memory"),
        ([X], call("as_strided.default", T[0], [1], [1], 6), "beyond its tensor's memory"),
        ([X], call("_reshape_alias.default", T[0], [9], [1]), "beyond its tensor's memory"),
        ([X], call("gather.default", T[0], 1, T[1]), "is not there before"),
        ([X, torch.tensor([[9]])], call("gather.default", T[0], 1, T[1]), "not between 0 and 2"),
        ([X, torch.tensor([-9])], call("index.Tensor", T[0], [T[1]]), "not between -2 and 1"),
        ([X, torch.tensor([2])], call("embedding.default", T[0], T[1]), "not between 0 and 1"),
        (
            [X, torch.tensor([2**40, 0])],
            call("embedding_dense_backward.default", T[0], T[1], 5, -1, True),
            "not between 0 and 4",
        ),
        (
            [torch.ones(()), X, torch.tensor([0, 7]), torch.ones(())],
            call("nll_loss_backward.default", T[0], T[1], T[2], None, 1, -100, T[3]),
            "not between 0 and 2",
        ),
        (
            [torch.ones(1, 2, 2, 2), PICTURE, torch.full((1, 2, 2, 2), 2**40)],
            call("max_pool2d_with_indices_backward.default", T[0], T[1], [2, 2], [2, 2], [0, 0],
                 [1, 1], False, T[2]),
            "not between 0 and 15",
        ),
        (
            [PICTURE],
            call("upsample_nearest2d.default", T[0], [8, 8], 1e-300, None),
            "its scale is not a ratio of sizes",
        ),
        (
            [PICTURE, PICTURE, torch.ones(2), torch.ones(9)],
            call("native_batch_norm_backward.default", T[0], T[1], T[2], None, None, T[3], T[3],
                 True, 1e-5, [True, True, True], outputs=3),
            "do not have one number per channel",
        ),
        (
            [torch.ones(5, 2, 2), torch.ones(5)],
            call("_fft_c2r.default", T[0], [2], 0, 2**20),
            "half the frequencies",
        ),
        (
            [torch.ones(1, 1, 2, 2)] * 2 + [torch.ones(1, 3, 2, 2)],
            call("_scaled_dot_product_flash_attention_for_cpu.default", T[0], T[1], T[2],
                 outputs=2),
            "differ in shape",
        ),
        ([torch.ones(3).byte()], call("view.dtype", T[0], {"dtype": "bool"}), "truth values"),
        ([torch.eye(2) / 0], call("_linalg_eigh.default", T[0], outputs=2), "is not finite"),
        ([X], call("add.Tensor", T[0], T[0], alpha={"float": "1"}), "is not a number"),
        ([X, torch.ones(5)], call("add.Tensor", T[0], T[1]), "broadcast"),
    ],
)  # fmt: skip
def test_an_operation_that_would_do_harm(
    tensors: list[Tensor], operation: dict[str, Any], reason: str, linear: Parts,
    tmp_path: Path, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    said = refused(parts(linear, tensors, operation), tmp_path, capfd)
    assert reason in said, said


# ---------------------------------------------------------------------- many of them


def test_many_crafted_bundles(
    bundles: dict[str, Parts], tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Replayed, not reproduced or refused in one line, in this process, which goes on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(op_runner, "memory", lambda: 2**30)
    count = {0: 0, 1: 0, 2: 0}
    examples = trials(400, 2000)

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        folder = crafted(random.Random(seed), bundles, tmp_path / "bundle")
        before = contents(folder)
        status, line = outcome(folder)
        assert line.isprintable()
        assert len(line) < 1000
        count[status] += 1
        assert contents(folder) == before
        _remove(folder)

    check()
    assert sum(count.values()) == examples
    assert min(count.values()) > examples // 100, count
    assert list(tmp_path.iterdir()) == []


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()
