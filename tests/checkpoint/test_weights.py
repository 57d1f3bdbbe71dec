"""Weights alone: tied ones stored once, damage found, and nothing that does not fit is silent."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import Tensor, nn

from bits import same
from trueloop import load_weights, save_weights
from trueloop.checkpoint.weights import Mismatch
from trueloop.errors import ConfigError, DeviceError, RunError


class Tied(nn.Module):
    """Embedding and head share one matrix; a third name for it stands deeper inside."""

    def __init__(self, *, tied: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 11, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.embed(tokens)))


def net(*sizes: int) -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(sizes)))


def test_round_trip_of_a_model_and_of_a_state_dict(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(
        memory_format=torch.channels_last
    )
    model(torch.randn(2, 3, 5, 5))  # moves the running statistics off their start
    for number, weights in enumerate([model, model.state_dict()]):
        path = save_weights(weights, tmp_path / "new" / f"{number}.safetensors")
        other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        report = load_weights(other, path)
        assert same(model, other)
        assert report.is_complete
        assert set(report.loaded) == set(model.state_dict())
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [
        "0.safetensors",
        "1.safetensors",
    ]


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int8,
     torch.uint8, torch.bool, torch.complex64],
)  # fmt: skip
def test_every_dtype_and_odd_shape_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    holder = nn.Module()
    values = torch.randint(0, 2, (4, 6)).to(dtype)
    parts = {"scalar": values[0, 0], "empty": values[:0], "row": values[1], "turned": values.T}
    for name, part in parts.items():
        holder.register_buffer(name, part)
    path = save_weights(holder, tmp_path / "w.safetensors")
    target = nn.Module()
    for name, part in parts.items():
        target.register_buffer(name, torch.zeros(part.shape, dtype=dtype))
    assert load_weights(target, path).is_complete
    assert same(holder, target)
    found = load_file(path)
    assert {name: (t.shape, t.dtype) for name, t in found.items()} == {
        name: (t.shape, t.dtype) for name, t in parts.items()
    }


def test_nan_and_infinities_are_kept_bit_for_bit(tmp_path: Path) -> None:
    model, other = Tied(), Tied()
    with torch.no_grad():
        model.embed.weight[0] = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0])
    load_weights(other, save_weights(model, tmp_path / "w.safetensors"))
    bits = [m.embed.weight.detach().view(torch.int32) for m in (model, other)]
    assert torch.equal(*bits)


def test_tied_weights_are_stored_once_and_tied_again(tmp_path: Path) -> None:
    model, other = Tied(), Tied()
    path = save_weights(model, tmp_path / "w.safetensors")
    assert "head.weight" not in load_file(path)
    report = load_weights(other, path)
    assert report.is_complete
    assert {"embed.weight", "head.weight"} <= set(report.loaded)
    assert same(model, other)
    assert other.head.weight is other.embed.weight

    untied = Tied(tied=False)
    assert load_weights(untied, path).is_complete, "the file says what the head was tied to"
    assert same(model, untied)
    assert untied.head.weight is not untied.embed.weight


def test_files_of_safetensors_itself_and_ours_in_its_hands(tmp_path: Path) -> None:
    model, theirs, ours = Tied(), Tied(), Tied()
    save_model(model, str(tmp_path / "theirs.safetensors"))
    assert load_weights(ours, tmp_path / "theirs.safetensors").is_complete
    assert same(model, ours)
    load_model(theirs, save_weights(model, tmp_path / "ours.safetensors"))
    assert same(model, theirs)


def test_a_name_left_out_without_a_word_is_restored_by_the_models_own_tie(tmp_path: Path) -> None:
    model, other = Tied(), Tied()
    parts = {n: t for n, t in model.state_dict().items() if n != "embed.weight"}
    save_file(parts, tmp_path / "w.safetensors")
    assert load_weights(other, tmp_path / "w.safetensors").is_complete
    assert same(model, other)
    with pytest.raises(RunError, match=r"1 missing"):
        load_weights(Tied(tied=False), tmp_path / "w.safetensors")


def test_two_values_for_one_tied_place_are_refused(tmp_path: Path) -> None:
    untied, tied = Tied(tied=False), Tied()
    path = save_weights(untied, tmp_path / "w.safetensors")
    with pytest.raises(
        RunError, match=r"head\.weight \(other values in the file, tied to embed\.weight"
    ):
        load_weights(tied, path)
    report = load_weights(tied, path, strict=False)
    assert [wrong.name for wrong in report.mismatched] == ["head.weight"]
    assert torch.equal(tied.embed.weight, untied.embed.weight), "the first name decides"


def test_views_of_one_memory_are_stored_whole(tmp_path: Path) -> None:
    whole = torch.arange(12.0)
    parts = {"all": whole, "front": whole[:5], "back": whole[5:], "every other": whole[::2]}
    found = load_file(save_weights(parts, tmp_path / "w.safetensors"))
    assert set(found) == set(parts)
    assert all(torch.equal(found[name], parts[name]) for name in parts)
    assert (tmp_path / "w.safetensors").stat().st_size < 4 * (12 + 5 + 7 + 6) + 700


def test_strict_names_what_does_not_fit_and_changes_nothing(tmp_path: Path) -> None:
    path = save_weights(net(3, 4, 5), tmp_path / "w.safetensors")
    model = net(3, 4, 6, *[2] * 8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(RunError) as e:
        load_weights(model, path)
    assert str(e.value) == (
        f"{path} does not fit the model, 16 missing such as 2.weight and 2.bias, 0 unexpected, "
        "2 mismatched such as 1.weight ((5, 4) in the file, (6, 4) in the model) and 1.bias ((5,) "
        "in the file, (6,) in the model): load it into a model like the one it was saved from, or "
        "write strict=False to load what fits, and print the report for all names"
    )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_partial_loading_reports_every_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, model = net(3, 4, 5), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 6), nn.LayerNorm(6))
    path = save_weights({**source.state_dict(), "old.scale": torch.ones(2)}, tmp_path / "w.st")
    kept = model[1].weight.detach().clone()
    report = load_weights(model, path, strict=False)
    assert report.loaded == ["0.weight", "0.bias"]
    assert report.missing == ["2.weight", "2.bias"]
    assert report.unexpected == ["old.scale"]
    assert report.mismatched == [
        Mismatch("1.weight", (5, 4), (6, 4)),
        Mismatch("1.bias", (5,), (6,)),
    ]
    assert not report.is_complete
    assert torch.equal(model[0].weight, source[0].weight)
    assert torch.equal(model[1].weight, kept)
    lines = str(report).splitlines()
    assert lines[0] == f"{path}: 2 loaded, 2 missing, 1 unexpected, 2 mismatched"
    assert lines[1].split("  ")[-1] == "in the model"
    assert len(lines) == 2 + 5
    assert capsys.readouterr() == ("", "")


def test_a_file_of_which_nothing_fits_is_refused_even_in_part(tmp_path: Path) -> None:
    path = save_weights({"x": torch.ones(2)}, tmp_path / "w.st")
    with pytest.raises(RunError, match=r"nothing in .* fits"):
        load_weights(net(2, 2), path, strict=False)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.inner."])
def test_a_wrapper_in_the_names_is_recognised(tmp_path: Path, prefix: str) -> None:
    plain = net(2, 3)
    wrapped = {prefix + name: value for name, value in plain.state_dict().items()}
    path = save_weights(wrapped, tmp_path / "w.st")
    assert set(load_file(path)) == set(wrapped), "nothing is stripped"
    with pytest.raises(RunError, match=f"its names begin with '{prefix}'"):
        load_weights(plain, path)
    holder = nn.Module()
    holder.inside = plain
    with pytest.raises(RunError, match=r"the model's names begin with 'inside\.'"):
        load_weights(holder, save_weights(plain, tmp_path / "w.st"))


def test_dtypes_widen_unasked_and_narrow_when_asked(tmp_path: Path) -> None:
    source = net(3, 4)
    path = save_weights(source, tmp_path / "w.st")
    wide = net(3, 4).double()
    assert load_weights(wide, path).is_complete
    assert torch.equal(wide[0].weight, source[0].weight.double())

    narrow = net(3, 4).bfloat16()
    with pytest.raises(RunError, match=r"torch\.float32 in the file.*with dtype="):
        load_weights(narrow, path)
    assert load_weights(narrow, path, dtype=torch.bfloat16).is_complete
    assert torch.equal(narrow[0].weight, source[0].weight.bfloat16())
    assert narrow[0].weight.dtype == torch.bfloat16

    rounded = net(3, 4)
    load_weights(rounded, path, dtype=torch.bfloat16)
    assert rounded[0].weight.dtype == torch.float32
    assert torch.equal(rounded[0].weight, source[0].weight.bfloat16().float())
    with pytest.raises(ConfigError, match="not a floating-point dtype"):
        load_weights(rounded, path, dtype=torch.int64)
    with pytest.raises(ConfigError):
        load_weights(rounded, path, dtype="bf16")  # type: ignore[arg-type]


def test_integers_never_pass_for_floats(tmp_path: Path) -> None:
    path = save_weights({"0.weight": torch.ones(1, 1, dtype=torch.int32)}, tmp_path / "w.st")
    with pytest.raises(RunError, match=r"torch\.int32 in the file, torch\.float32"):
        load_weights(nn.Sequential(nn.Linear(1, 1, bias=False)), path)


def test_a_lazy_model_takes_its_shapes_from_the_file(tmp_path: Path) -> None:
    source, lazy = net(3, 4), nn.Sequential(nn.LazyLinear(4))
    with pytest.raises(RunError, match="no values yet"):
        save_weights(lazy, tmp_path / "w.st")
    assert load_weights(lazy, save_weights(source, tmp_path / "w.st")).is_complete
    assert torch.equal(lazy[0].weight, source[0].weight)


def test_what_is_no_tensor_with_values_is_refused_by_name(tmp_path: Path) -> None:
    for value, why in [
        ({"steps": 3}, "is a dict"),
        (torch.empty(2, device="meta"), "no values"),
        (torch.eye(2).to_sparse(), "sparse"),
    ]:
        with pytest.raises(RunError, match=f"'part'.*{why}") as e:
            save_weights({"ok": torch.ones(1), "part": value}, tmp_path / "w.st")
        assert "\n" not in str(e.value)
    with pytest.raises(RunError, match="is a folder"):
        save_weights(net(1, 1), tmp_path)
    assert list(tmp_path.iterdir()) == []


class Payload:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5, "torch", "old torch"])
def test_a_pickle_is_never_opened(tmp_path: Path, protocol: Any) -> None:
    path, ran = tmp_path / "model.pt", tmp_path / "ran"
    if isinstance(protocol, int):
        path.write_bytes(pickle.dumps(Payload(ran), protocol))
    else:
        zipped = protocol == "torch"
        torch.save({"w": Payload(ran)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(
        RunError, match=r"model\.pt (looks like a pickle|is damaged or not a safe)"
    ) as e:
        load_weights(net(1, 1), path)
    assert "\n" not in str(e.value)
    assert not ran.exists()


def test_missing_folder_and_device_are_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no weights at .*none\.st"):
        load_weights(net(1, 1), tmp_path / "none.st")
    with pytest.raises(RunError, match="is a folder"):
        load_weights(net(1, 1), tmp_path)
    with pytest.raises(DeviceError):
        load_weights(net(1, 1), tmp_path, map_location="gpu")


def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    model = Tied()
    path = save_weights(model, tmp_path / "w.st")
    whole = path.read_bytes()
    rng, refused = random.Random(0), []
    damages = [b"", whole[:7], whole[:100], whole[:-1], whole + b"\0", whole[::-1]]
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        damages.append(bytes(damaged))
    for content in damages:
        path.write_bytes(content)
        other = Tied()
        before = {name: value.clone() for name, value in other.state_dict().items()}
        try:
            load_weights(other, path)
        except RunError as error:
            unchanged = all(torch.equal(before[n], v) for n, v in other.state_dict().items())
            refused.append(unchanged and str(path) in str(error).splitlines()[0])
        else:
            assert same(model, other), "what loads is what was saved"
    assert len(refused) > 250
    assert all(refused)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, other = net(2, 2), net(2, 2)
    path = save_weights(old, tmp_path / "w.st")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left"):
        save_weights(net(2, 2), path)
    load_weights(other, path)
    assert same(old, other)
    assert [p.name for p in tmp_path.iterdir()] == ["w.st"]
