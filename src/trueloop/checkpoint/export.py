"""Writing only a model's weights, as safetensors, one tensor at a time.

The file is laid out before the first value is there, so that only one tensor is in memory in
addition to the model: of a sharded model all ranks gather one parameter after another, of a
checkpoint that several ranks have written each tensor is read when its turn comes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from trueloop import _options, ranks
from trueloop.atomic import write_atomic
from trueloop.checkpoint.load import opened_checkpoint
from trueloop.checkpoint.sharded import ShardedState
from trueloop.checkpoint.tensor_shards import Shard, is_sharded
from trueloop.errors import ConfigError, RunError

# The file's metadata, text to text: the digest of all it holds, since the format has no checksum,
# and, as safetensors' own `save_model` writes it, a line "name left out": "name of its twin" for
# each tied weight.
DIGEST = "trueloop.sha256"
FORMAT = "format"

_GATHERED = "the gathering of sharded weights"


def save_weights(model: nn.Module | Mapping[str, Any] | str | Path, path: str | Path) -> Path:
    """Write a model's weights and buffers, or a state dict, as safetensors.

    The file is whole or absent, and has a digest of its content. Names, shapes and dtypes are kept
    as they are. Weights that are tied (the same memory under several names) are stored once, and
    the file says which they are; `load_weights` gives them back, and so does
    `safetensors.torch.load_model`. Views that overlap otherwise are stored as copies.

    Of a model whose parameters are sharded over ranks (FSDP), every rank calls it; they gather one
    parameter after another, and rank 0 writes the file. Of any other model, the rank that calls it
    writes it.

    Args:
        model: a module, a state dict, a checkpoint's folder, or a folder of checkpoints (its newest
            good one is taken). Of checkpoints, only one tensor is in memory at a time.
        path: the file, such as "model.safetensors".

    Returns:
        The path.

    Raises:
        RunError: something is not a tensor with values, or the file cannot be written.
    """
    path = _options.path("path", path)
    if path.is_dir():
        raise RunError(f"{path} is a folder: name a file, e.g. {path / 'model.safetensors'}")
    source = _source(model)
    if not source.is_shared:
        write_tensors(path, source.contents, source.tensors())
    else:
        _write_with_all(path, source)
    return path


@dataclass
class WeightsHeader:
    """The header of a file of weights, before any value is there."""

    kinds: dict[str, tuple[torch.dtype, tuple[int, ...]]] = field(default_factory=dict)
    """Dtype and shape of each tensor that is stored."""
    ties: dict[str, str] = field(default_factory=dict)
    """For each name that is not written, the one it is tied to."""

    @classmethod
    def of(cls, named: Mapping[str, Any], groups: Iterable[list[str]]) -> WeightsHeader:
        """Those of a state dict, of which the names in one group are the very same tensor."""
        found = cls()
        for first, *others in groups:
            found.kinds[first] = named[first].dtype, tuple(named[first].shape)
            found.ties |= dict.fromkeys(others, first)
        return found

    def laid_out(self, digest: str) -> tuple[bytes, dict[str, int]]:
        """The file's header, and where in the file each tensor begins.

        In the order of safetensors' own writer: the widest first, so that each is aligned.
        """
        names = sorted(self.kinds, key=lambda name: (-self.kinds[name][0].itemsize, name))
        header: dict[str, Any] = {"__metadata__": {**self.ties, FORMAT: "pt", DIGEST: digest}}
        codes = _codes({dtype for dtype, _ in self.kinds.values()})
        begins, end = {}, 0
        for name in names:
            dtype, shape = self.kinds[name]
            begins[name], end = end, end + prod(shape) * dtype.itemsize
            header[name] = {
                "dtype": codes[dtype],
                "shape": list(shape),
                "data_offsets": [begins[name], end],
            }
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        ahead = len(text).to_bytes(8, "little") + text
        return ahead, {name: len(ahead) + begin for name, begin in begins.items()}


def _codes(dtypes: Iterable[torch.dtype]) -> dict[torch.dtype, str]:
    """The names of the dtypes in safetensors. Raises `RunError` for one that it has no name for."""
    from safetensors.torch import save

    codes = {}
    for dtype in dtypes:
        try:
            content = save({"": torch.empty(0, dtype=dtype)})
        except Exception as error:
            raise RunError(
                f"cannot store these weights as safetensors ({first_line(error)}): "
                "convert them to a dtype that it knows"
            ) from None
        size = int.from_bytes(content[:8], "little")
        codes[dtype] = str(json.loads(content[8 : 8 + size])[""]["dtype"])
    return codes


class Digest:
    """SHA-256 over names, dtypes, shapes, values and ties, in the order of the names."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, name: str, tensor: Tensor) -> None:
        """Take in the next tensor, which is on the CPU."""
        self._hash.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        self._hash.update(raw(tensor).numpy().data)

    def end(self, ties: Mapping[str, str]) -> str:
        """The digest of what was added, and of the ties."""
        self._hash.update(repr(sorted(ties.items())).encode())
        return self._hash.hexdigest()


def raw(tensor: Tensor) -> Tensor:
    """Its bytes, shape (N,), uint8."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def tied(named: Mapping[str, Any]) -> list[list[str]]:
    """The names in groups, in order: those of one group are the very same tensor."""
    groups: dict[Any, list[str]] = {}
    for name, value in named.items():
        key: Any = name
        if isinstance(value, Tensor) and not is_lazy(value) and value.numel() and not value.is_meta:
            here: Any = value.to_local() if is_sharded(value) else value  # type: ignore[attr-defined]
            if here.numel():
                key = (here.device, here.data_ptr(), value.dtype, value.shape, here.stride())
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def first_line(error: BaseException) -> str:
    """An error in short."""
    text = str(error).strip()
    return text.splitlines()[0][:160] if text else type(error).__name__


class _Source:
    """Where the weights come from: a live model's state dict."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        for name, value in named.items():
            _options.text("a weight's name", name, "layer.weight")
            _check_storable(name, value)
        self._named: Mapping[str, Any] = named
        self.is_shared = ranks.is_distributed() and any(map(is_sharded, named.values()))
        """Whether all ranks are needed for the values."""
        self.contents = WeightsHeader.of(named, self._groups())
        if self.is_shared:
            # Which are tied is seen in the shards, of which a rank may have none.
            self.contents = ranks.from_main(self.contents, _GATHERED)

    def _groups(self) -> list[list[str]]:
        return tied(self._named)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Each tensor that is stored, whole and on the CPU, in the order of the names."""
        for name in sorted(self.contents.kinds):
            yield name, self._tensor(name).detach().cpu().contiguous()

    def _tensor(self, name: str) -> Tensor:
        value: Any = self._named[name]
        if not is_sharded(value):
            return value  # type: ignore[no-any-return]
        with ranks.waiting(_GATHERED):
            return value.full_tensor()  # type: ignore[no-any-return]


class _SavedSource(_Source):
    """The weights in a checkpoint that several ranks have written."""

    def __init__(self, state: ShardedState) -> None:
        self._state = state
        super().__init__(state.imagined()["model"])

    def _key(self, name: str) -> str | None:
        return self._state.missing.get(("model", name))

    def _groups(self) -> list[list[str]]:
        groups: dict[Any, list[str]] = {}
        for name in self._named:
            groups.setdefault(self._key(name) or ("here", name), []).append(name)
        return list(groups.values())

    def _tensor(self, name: str) -> Tensor:
        there, key = self._named[name], self._key(name)
        if key is None:
            return super()._tensor(name)
        tensor = torch.empty(there.shape, dtype=there.dtype)
        self._state.fill({key: Shard(tensor, tensor.shape, torch.Size([0] * tensor.ndim))})
        return tensor


def _source(model: Any) -> _Source:
    if isinstance(model, nn.Module):
        return _Source(model.state_dict())
    if isinstance(model, ShardedState):
        return _SavedSource(model)
    if isinstance(model, Mapping):
        return _Source(model)
    if isinstance(model, (str, Path)):
        state = opened_checkpoint(Path(model))
        return _SavedSource(state) if isinstance(state, ShardedState) else _Source(state["model"])
    raise ConfigError(
        f"save_weights was given {_options.shown(model)}: give the model, its state_dict() or the "
        "folder of its checkpoints"
    )


def _check_storable(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise RunError(
            f"{name!r} is a {type(value).__name__}, and a safetensors file only contains tensors: "
            "remove it from the state dict, or save the whole state with Checkpoints"
        )
    if is_lazy(value) or value.is_meta:
        raise RunError(f"{name!r} has no values yet: run the model once, or load it, before saving")
    if value.layout != torch.strided or value.is_quantized:
        raise RunError(f"{name!r} is sparse or quantized: convert it to a dense tensor first")


def write_tensors(
    path: Path, contents: WeightsHeader, tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Write the file, whole or not at all; the digest is filled in when all values are there.

    `tensors` come in the order of their names, contiguous and on the CPU."""
    begun, places = contents.laid_out("0" * 64)

    def content(file: BinaryIO) -> None:
        digest = Digest()
        file.write(begun)
        for name, tensor in tensors:
            digest.add(name, tensor)
            file.seek(places[name])
            file.write(raw(tensor).numpy().data)
        file.seek(0)
        file.write(contents.laid_out(digest.end(contents.ties))[0])

    write_atomic(path, content)


def _write_with_all(path: Path, source: _Source) -> None:
    """Every rank gathers, in the same order; rank 0 writes. Its failure is raised on all."""
    tensors = source.tensors()
    failure: Exception | None = None
    if ranks.is_main():
        try:
            write_tensors(path, source.contents, tensors)
        except RunError as error:
            failure = error
    for _ in tensors:  # also after a failure: the others wait for this rank
        pass

    def outcome() -> None:
        if failure is not None:
            raise failure

    ranks.on_main(outcome, _GATHERED)
