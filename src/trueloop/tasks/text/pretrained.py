"""Reading a model as its authors publish it: a folder of config.json, safetensors, tokenizer.json.

    found = pretrained.open_folder("gpt2")
    model = Transformer(found.config)
    found.fill(model)

Every name, shape and dtype is checked before the first value is read, and then one tensor at a time
is in memory beside the model. Nothing in the folder is executed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trueloop import _options
from trueloop.checkpoint.export import first_line
from trueloop.errors import ConfigError, RunError
from trueloop.files import cannot_read, read_text
from trueloop.tasks.text.architectures import (
    BUFFERS,
    PREFIX,
    Json,
    WeightLocation,
    config_of,
    family_of,
    place,
)
from trueloop.tasks.text.transformer import RotaryPositions, Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
INDEX = f"{WEIGHTS}.index.json"
_MOST_JSON = 64_000_000
"""Bytes of a config.json or of an index, at most."""
_PICKLES = ("pytorch_model*.bin", "*.pth", "*.pt", "*.ckpt")
_FLOATS = ("F64", "F32", "F16", "BF16")
_LISTED = 3


@dataclass(frozen=True)
class Pretrained:
    """A published model, its shapes checked, its values still on disk."""

    folder: Path
    config: TransformerConfig
    family: str
    files: dict[str, Path]
    """The file of each tensor, by its name there."""
    names: dict[str, str]
    """Names without their prefix, and those in the files."""

    def weights(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, Tensor]]:
        """Each weight of a `Transformer` by its name, or those of `names`, in turn, on the CPU, in
        the dtype that it has on disk. Tied ones come once. Raises `RunError` where a file cannot be
        read."""
        with ExitStack() as stack:
            opened: dict[Path, Any] = {}
            for name in shapes_of(self.config) if names is None else names:
                where = place(self.family, name)
                there = self.names[where.name]
                path = self.files[there]
                if path not in opened:
                    opened[path] = stack.enter_context(_opened(path))
                yield name, _part(opened[path].get_slice(there), where)

    @torch.no_grad()
    def fill(self, model: Transformer) -> None:
        """Put the values into `model`, made of `config`, in its own dtype and on its device."""
        live = dict(model.named_parameters())
        for name, value in self.weights():
            live[name].copy_(value)

    def fill_when_made(self, model: Transformer) -> None:
        """Let each module of `model`, which is on the device meta, take its values from the files
        when `Step` makes its parameters: its `reset_parameters` does so once, in place of drawing
        random ones."""
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        modules: Iterable[Any] = model.modules()
        for module in modules:
            if isinstance(module, RotaryPositions) or not hasattr(module, "reset_parameters"):
                continue
            own = module.named_parameters(recurse=False, remove_duplicate=False)
            places = {names[id(parameter)]: here for here, parameter in own}
            module.reset_parameters = functools.partial(self._fill_own, module, places)

    @torch.no_grad()
    def _fill_own(self, module: Any, places: Mapping[str, str]) -> None:
        """Fill a module's own parameters; `places` are their names in it by those in the model."""
        del module.reset_parameters
        for name, value in self.weights(places):
            getattr(module, places[name]).copy_(value)


def shapes_of(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of each parameter of a `Transformer`; of tied ones the first."""
    try:
        with torch.device("meta"):
            model = Transformer(config)
    except RuntimeError as error:  # more numbers than a tensor can count
        raise RunError(f"a model of these sizes cannot be built ({first_line(error)})") from None
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def open_folder(folder: str | Path) -> Pretrained:
    """Look at a published model of the GPT-2 or Llama family, without reading its values.

    Raises `RunError` where the folder or a file of it is missing or damaged, the architecture is
    not known, or a tensor is missing, left over, or of a shape or dtype that does not fit.
    """
    folder = _options.path("folder", folder)
    if not folder.is_dir():
        raise RunError(f"no folder {folder}: name the folder that has the model's {CONFIG}")
    published = read_json(folder / CONFIG)
    try:
        family, config = family_of(published), config_of(published)
    except ConfigError as error:
        raise RunError(f"{folder / CONFIG}: {error}") from None
    except (TypeError, AttributeError) as error:  # a list or a text where a number belongs
        raise RunError(
            f"{folder / CONFIG} has a value of the wrong kind ({first_line(error)}): download it "
            "again"
        ) from None
    files = _files(folder)
    found = _described(files)
    names = _without_prefix(found, PREFIX[family], folder)
    _compare(folder, family, config, {name: found[there] for name, there in names.items()})
    return Pretrained(folder, config, family, files, names)


def read_json(path: Path) -> Json:
    """The object in a JSON file. Raises `RunError` where there is none."""
    try:
        found = json.loads(read_text(path, _MOST_JSON))
    except FileNotFoundError:
        raise RunError(
            f"{path.parent} has no {path.name}: name a folder with {CONFIG}, {WEIGHTS} and "
            f"{TOKENIZER}, as the model's authors publish it"
        ) from None
    except OSError as error:
        raise RunError(cannot_read(path, error)) from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not JSON ({first_line(error)}): download it again") from None
    if not isinstance(found, dict):
        raise RunError(f"{path} contains no JSON object: download it again")
    return found


def _files(folder: Path) -> dict[str, Path]:
    """The file of each tensor: one for all, or as the index says."""
    if (folder / INDEX).exists() and not (folder / WEIGHTS).exists():
        listed = read_json(folder / INDEX).get("weight_map")
        if not isinstance(listed, dict) or not listed:
            raise RunError(f"{folder / INDEX} has no weight_map: download it again")
        for name, file in listed.items():
            if not isinstance(file, str) or Path(file).name != file:
                raise RunError(
                    f"{folder / INDEX} gives {_options.shown(file)} as the file of {name}, which "
                    "is not a file of that folder: download the index again"
                )
        return {name: folder / file for name, file in listed.items()}
    if not (folder / WEIGHTS).exists():
        raise RunError(_no_weights(folder))
    with _opened(folder / WEIGHTS) as file:
        return dict.fromkeys(file.keys(), folder / WEIGHTS)


def _no_weights(folder: Path) -> str:
    pickles = [path.name for pattern in _PICKLES for path in sorted(folder.glob(pattern))]
    if pickles:
        return (
            f"{folder} has its weights only as a pickle ({pickles[0]}), which can run code and is "
            "not opened: if you trust it, load it with transformers and write safetensors: "
            "AutoModelForCausalLM.from_pretrained(folder).save_pretrained(folder)"
        )
    return f"{folder} has no {WEIGHTS} and no {INDEX}: download them"


def _opened(path: Path) -> Any:
    from safetensors import safe_open

    if not path.is_file():
        raise RunError(f"{path} is missing: download it again")
    try:
        return safe_open(path, framework="pt", device="cpu")
    except Exception as error:  # damaged bytes make the reader raise anything
        raise RunError(
            f"{path} is damaged or not a safetensors file ({first_line(error)}): download it again"
        ) from None


def _described(files: Mapping[str, Path]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and dtype of each tensor, without reading it."""
    found = {}
    for path in dict.fromkeys(files.values()):
        with _opened(path) as file:
            there = set(file.keys())
            for name in (name for name, where in files.items() if where == path):
                if name not in there:
                    raise RunError(
                        f"{path} lacks the tensor {name!r}, which the index says is there: "
                        "download both again"
                    )
                piece = file.get_slice(name)
                found[name] = tuple(piece.get_shape()), str(piece.get_dtype())
    return found


def _without_prefix(found: Mapping[str, Any], prefix: str, folder: Path) -> dict[str, str]:
    """The names in the files by their names without `prefix`; without buffers."""
    names: dict[str, str] = {}
    for there in found:
        name = there.removeprefix(prefix)
        if name in names:
            raise RunError(
                f"{folder} has both {names[name]!r} and {there!r}, which are the same weight: "
                "download the files again"
            )
        if not BUFFERS.fullmatch(name):
            names[name] = there
    return names


def _compare(
    folder: Path,
    family: str,
    config: TransformerConfig,
    found: Mapping[str, tuple[tuple[int, ...], str]],
) -> None:
    """Raise `RunError` for the first tensor that is missing or does not fit, or those left over."""
    left = set(found)
    if config.tied:
        left.discard("lm_head.weight")  # the embedding once more
    if config.layers > len(found):  # also where a wrong number would be years of counting
        raise RunError(
            f"{folder} has {len(found)} tensors, and {CONFIG} calls for {config.layers:,} layers: "
            f"use all files of the model, with their {CONFIG}"
        )
    for name, shape in shapes_of(config).items():
        where = place(family, name)
        wanted = shape_there(shape, where)
        if where.name not in found:
            raise RunError(
                f"{folder} lacks the tensor {where.name!r}, of shape {wanted}: use all files of "
                f"the model, with their {CONFIG}"
            )
        there, dtype = found[where.name]
        if there != wanted:
            raise RunError(
                f"{folder}: the tensor {where.name!r} has the shape {there}, and {CONFIG} calls "
                f"for {wanted}: use the {CONFIG} of these weights"
            )
        if dtype not in _FLOATS:
            raise RunError(
                f"{folder}: the tensor {where.name!r} is {dtype}, but only bf16, fp16 and fp32 can "
                "be read: use a checkpoint that is not quantized"
            )
        left.discard(where.name)
    if left:
        names = sorted(left)
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        raise RunError(
            f"{folder} has tensors that a {family} of its {CONFIG} does not have "
            f"({', '.join(names[:_LISTED])}{more}): use the {CONFIG} of these weights"
        )


def shape_there(shape: tuple[int, ...], where: WeightLocation) -> tuple[int, ...]:
    """The shape of the file's tensor that contains a weight of `shape`."""
    outputs = shape[0] * where.parts
    return (*shape[1:], outputs) if where.transposed else (outputs, *shape[1:])


def _part(piece: Any, where: WeightLocation) -> Tensor:
    """One weight of what may be a fused tensor; only its own share of a file is read."""
    shape = piece.get_shape()
    axis = len(shape) - 1 if where.transposed else 0
    size = shape[axis] // where.parts
    bounds = slice(where.part * size, (where.part + 1) * size)
    value: Tensor = piece[:, bounds] if where.transposed else piece[bounds]
    return value.T if where.transposed else value
