"""Bundles as watch writes them, small ones of many kinds, and ways to spoil them."""

from __future__ import annotations

import base64
import json
import os
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save
from torch import Tensor, nn

from trueloop.doctor.live.nonfinite.forensics import Found
from trueloop.doctor.live.nonfinite.operation_trace import OperationTrace
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.replay import allowed_ops, bundle
from trueloop.doctor.live.replay.bundle_format import GENERATORS, TAPE, TENSORS
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import NonFiniteOrigin


@dataclass
class Parts:
    """A bundle's content before it is written: spoiled piece by piece."""

    tape: dict[str, Any]
    tensors: dict[str, Tensor]
    generators: dict[str, Any]

    def copy(self) -> Parts:
        return Parts(
            pickle.loads(pickle.dumps(self.tape)), dict(self.tensors), dict(self.generators)
        )

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TAPE).write_text(json.dumps(self.tape), "utf-8")
        (folder / TENSORS).write_bytes(save(self.tensors))
        (folder / GENERATORS).write_text(json.dumps(self.generators), "utf-8")
        return folder


def _run(function: Callable[[], None]) -> None:
    function()


def record(compute: Callable[..., Any], *inputs: Tensor, gradients: bool = True) -> OperationTrace:
    """What a computation, and its backward, writes on a tape."""
    tape = OperationTrace(_run.__code__)
    module = compute if isinstance(compute, nn.Module) else None

    def both() -> None:
        output = compute(*inputs)
        ends = [each for each in autograd_graph.tensors_in(output) if each.requires_grad]
        leaves = [each for each in inputs if each.requires_grad]
        leaves += list(module.parameters()) if module is not None else []
        if gradients and ends and leaves:
            torch.autograd.grad(
                ends, leaves, [torch.ones_like(each) for each in ends], allow_unused=True
            )

    with tape:
        _run(both)
    return tape


def written(tape: OperationTrace, folder: Path) -> Path:
    """The bundle of a tape, of which the first operation is said to have made a NaN."""
    if not any(each.bad for each in tape.operations):
        tape.operations[-1].bad = "NaN"
    found = Found(NonFiniteOrigin(kind="NaN", rows=[1, 2], samples=[3, "key"]))
    found.tape, found.rng = tape, (torch.get_rng_state(),)
    path = bundle.write(str(folder), found, Location("train.py", 3, 1, 3, 9), 7)
    assert path is not None, [each.name for each in tape.operations]
    return Path(path)


def parts_of(folder: Path) -> Parts:
    return Parts(
        json.loads((folder / TAPE).read_text("utf-8")),
        load_file(folder / TENSORS),
        json.loads((folder / GENERATORS).read_text("utf-8")),
    )


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        causal = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        mask = torch.ones(x.shape[-2], x.shape[-2]).tril().bool()
        return causal + F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


class Indices(nn.Module):
    """Everything that a number out of a file may lead astray."""

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.tensor([2, 0, 1])
        chosen = x.gather(1, (rows + 1).tile(3, 1)).sum() + x[rows] + x.index_select(0, rows)
        spread = torch.zeros(3, 4).scatter_add(0, rows[:, None].expand(3, 4), x)
        best, order = x.topk(2)
        return (
            chosen.sum() + spread.index_add(0, rows, x).sum() + x[x > 0].sum() + best.sum()
            + x.take(order).sum() + x.sort(1)[0].median() + x.unfold(1, 2, 1).sum()
        )  # fmt: skip


class Algebra(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        square = x @ x.T + 3 * torch.eye(3)
        spectrum = torch.fft.irfft(torch.fft.rfft(x), n=4)
        return (
            torch.linalg.cholesky(square).sum() + torch.linalg.solve(square, x).sum()
            + torch.linalg.eigh(square)[0].sum() + torch.cdist(x, x + 1).sum() + spectrum.sum()
            + torch.logdet(square)
        )  # fmt: skip


class Pictures(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        grid = F.affine_grid(torch.eye(2, 3).expand(2, 2, 3), (2, 2, 3, 3), align_corners=False)
        turned = F.grid_sample(x, grid, align_corners=False)
        larger = F.interpolate(x, scale_factor=1.5, mode="bilinear")
        padded = F.pad(x, (1, 1, 1, 1), mode="reflect")
        pooled = F.adaptive_max_pool2d(x, 2) + F.adaptive_avg_pool2d(x, 2)
        return turned.sum() + larger.sum() + padded.sum() + pooled.sum() + F.unfold(x, 2).sum()


class Losses(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        target = torch.tensor([1, 0, 3])
        steps = x.log_softmax(1).expand(5, 3, 4)
        ctc = F.ctc_loss(steps, target.clamp(1)[:, None], (5, 5, 5), (1, 1, 1))
        return (
            F.cross_entropy(x, target) + F.multi_margin_loss(x, target) + ctc
            + F.smooth_l1_loss(x, x.detach() + 1) + F.soft_margin_loss(x, x.detach().sign())
        )  # fmt: skip


def _cases() -> dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]]:
    numbers = torch.randn(3, 4, requires_grad=True)
    picture = torch.randn(2, 2, 4, 4, requires_grad=True)
    words = torch.randint(6, (2, 3))
    return {
        "linear": (
            nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Dropout(0.2)), (numbers,),
        ),
        "conv": (
            nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.MaxPool2d(2)),
            (picture,),
        ),
        "norms": (
            nn.Sequential(nn.GroupNorm(1, 2), nn.LayerNorm(4), nn.AvgPool2d(2)), (picture,),
        ),
        "embedding": (nn.Embedding(6, 4, padding_idx=0, scale_grad_by_freq=True), (words,)),
        "bags": (nn.EmbeddingBag(6, 4, mode="max"), (words,)),
        "lstm": (nn.LSTM(4, 2, batch_first=True), (torch.randn(2, 3, 4),)),
        "gru": (nn.GRU(4, 2), (torch.randn(1, 2, 4),)),
        "attention": (Attention(), (torch.randn(1, 2, 3, 4, requires_grad=True),)),
        "indices": (Indices(), (numbers,)),
        "algebra": (Algebra(), (numbers,)),
        "pictures": (Pictures(), (picture,)),
        "losses": (Losses(), (numbers,)),
    }  # fmt: skip


@cache
def recorded(folder: Path) -> dict[str, Parts]:
    """One bundle of each kind."""
    torch.manual_seed(0)
    return {
        name: parts_of(written(record(compute, *inputs, gradients=name != "algebra"), folder))
        for name, (compute, inputs) in _cases().items()
    }


# ---------------------------------------------------------------------- spoiled

_NUMBERS = (0, 1, -1, 2, 3, 100, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -(2**63), 2**64, 10**40)
_FLOATS = (0.5, -1.0, 1e38, float("nan"), float("inf"), -float("inf"))
_TEXTS = ("", "x", "NaN", "\ud800", "\x1b[2J", "ü\n" * 3, "../../x", "a" * 5000, "cuda:0", "meta")
_DTYPES = (torch.float16, torch.float32, torch.float64, torch.int64, torch.int8, torch.bool)


def junk(rng: random.Random) -> Any:
    """A value that stands where another was meant."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind == 1:
        return rng.choice(_FLOATS)
    if kind == 2:
        return rng.choice(_TEXTS)
    if kind == 3:
        return rng.choice((None, True, False, [], {}))
    if kind == 4:
        return [junk(rng) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {rng.choice(("tensor", "float", "dtype", "device", "unknown", "")): junk(rng)}
    if kind == 6:
        return {"tensor": rng.randrange(12)}
    if kind == 7:
        return {"dtype": rng.choice(("float32", "int64", "bool", "complex64", "qint8", "nn"))}
    return nested(rng.choice((3, 300)))


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def _somewhere(rng: random.Random, value: Any) -> tuple[Any, Any]:
    """A container below `value`, and a key of it."""
    while True:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        below = value[key]
        if not isinstance(below, (dict, list)) or not below or rng.random() < 0.15:
            return value, key
        value = below


def spoil_tree(rng: random.Random, parts: Parts) -> None:
    value, key = _somewhere(rng, parts.tape if rng.random() < 0.9 else parts.generators)
    kind = rng.randrange(4)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, list):
        value.insert(key, json.loads(json.dumps(value[key])))
    else:
        value[key] = junk(rng)


def spoil_argument(rng: random.Random, parts: Parts) -> None:
    """A number, a tensor or a flag of an operation is a different one of its kind."""
    if not parts.tape["operations"]:
        return
    operation = rng.choice(parts.tape["operations"])
    if not operation["args"]:
        return
    value, key = _somewhere(rng, operation["args"])
    given = value[key]
    if isinstance(given, bool):
        value[key] = not given
    elif key == "tensor":
        value[key] = rng.randrange(len(parts.tape["values"]))
    elif isinstance(given, int):
        value[key] = rng.choice((*_NUMBERS, given + 1, given - 1))
    elif isinstance(given, float):
        value[key] = rng.choice(_FLOATS)
    else:
        value[key] = junk(rng)


def spoil_name(rng: random.Random, parts: Parts) -> None:
    if parts.tape["operations"]:
        rng.choice(parts.tape["operations"])["name"] = rng.choice(names())


@cache
def names() -> tuple[str, ...]:
    """Operations that this torch has, allowed or not, and some that it does not have."""
    there = sorted(torch._C._dispatch_get_all_op_names())
    aten = [each.replace("::", ".", 1) for each in there if each.startswith("aten::")]
    full = [each if each.count(".") == 2 else f"{each}.default" for each in aten]
    allowed = [each for each in full if allowed_ops.is_allowed(each)]
    return (*full, *allowed, *allowed, "os.system", "aten.no_such.default", "aten", "..", "")


def spoil_tensor(rng: random.Random, parts: Parts) -> None:
    if not parts.tensors:
        return
    name = rng.choice(sorted(parts.tensors))
    tensor = parts.tensors[name]
    kind = rng.randrange(6)
    if kind == 0:
        del parts.tensors[name]
    elif kind == 1:
        parts.tensors[rng.choice(("x", "99999", "-1", "01"))] = tensor.clone()
    elif kind == 2:
        parts.tensors[name] = tensor.to(rng.choice(_DTYPES))
    elif kind == 3:
        _reshape(rng, parts, name)
    elif tensor.dtype == torch.int64 and tensor.numel():
        spoiled = tensor.clone()
        spoiled.view(-1)[rng.randrange(tensor.numel())] = rng.choice(_NUMBERS[:11])
        parts.tensors[name] = spoiled
    elif tensor.dtype == torch.bool:
        parts.tensors[name] = torch.full(tensor.shape, 7, dtype=torch.uint8).view(torch.bool)
    elif tensor.dtype in (torch.float32, torch.float64):
        parts.tensors[name] = torch.full_like(tensor, rng.choice(_FLOATS))


def _reshape(rng: random.Random, parts: Parts, name: str) -> None:
    """Another shape, mostly with the strides that go with it."""
    shape = list(parts.tensors[name].shape)
    if shape and rng.random() < 0.7:
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 7))
    else:
        shape.insert(0, rng.choice((0, 1, 2)))
    made = torch.zeros(shape, dtype=parts.tensors[name].dtype)
    parts.tensors[name] = made
    index = int(name) if name.isdigit() else -1
    if rng.random() < 0.8 and 0 <= index < len(parts.tape["values"]):
        parts.tape["values"][index]["stride"] = list(made.stride())


def spoil_generator(rng: random.Random, parts: Parts) -> None:
    state = rng.choice((b"", b"x", bytes(5056), rng.randbytes(5056), rng.randbytes(16)))
    parts.generators["cpu"] = rng.choice((base64.b64encode(state).decode(), "###", "ü", 3))


def spoil_file(rng: random.Random, folder: Path) -> None:
    """Bytes of a file, cut off, changed, or not of the kind that they were."""
    path = folder / rng.choice((TAPE, TENSORS, GENERATORS))
    if not path.is_file():
        return
    content = bytearray(path.read_bytes())
    kind = rng.randrange(7)
    if kind == 0:
        del content[rng.randrange(len(content) + 1) :]
    elif kind == 1 and content:
        for _ in range(rng.randrange(1, 5)):
            content[rng.randrange(min(len(content), 300))] = rng.randrange(256)
    elif kind == 2:
        content = bytearray(b"[" * 100_000)
    elif kind == 3:
        content = bytearray(b'{"version": ' + b"1" * 5000 + b"}")
    elif kind == 4:
        content = bytearray(rng.randbytes(50))
    path.unlink()
    if kind == 5:
        path.mkdir()
    elif kind == 6:
        rng.choice((os.mkfifo, lambda name: os.symlink(name, name)))(path)
    else:
        path.write_bytes(content)


SPOIL = (
    spoil_tree, spoil_tree, spoil_argument, spoil_argument, spoil_argument, spoil_name,
    spoil_tensor, spoil_tensor, spoil_generator,
)  # fmt: skip


def crafted(rng: random.Random, recorded: dict[str, Parts], folder: Path) -> Path:
    """A bundle that nobody has recorded, in a new folder."""
    parts = recorded[rng.choice(sorted(recorded))].copy()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            rng.choice(SPOIL)(rng, parts)
        except (KeyError, IndexError, TypeError, AttributeError):
            break  # it was spoiled before
    parts.write(folder)
    if rng.random() < 0.1:
        spoil_file(rng, folder)
    return folder
