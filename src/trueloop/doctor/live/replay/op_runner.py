"""Operations out of a bundle, run one by one: checked on its tensors first, and within a limit of
memory.

What an operation would make is asked of torch on the `meta` device, where tensors have sizes and no
memory. So a crafted `full([2**40])` is refused before it is tried.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch

from trueloop import files
from trueloop.doctor.live.replay import op_checks, op_indices
from trueloop.doctor.live.replay.allowed_ops import BoundCall, Ref, shown

_EMPTY = ("empty", "new_empty")
"""Packets whose results contain whatever was in memory begin so."""
_BLANK = (*_EMPTY, "_ctc_loss")
"""And those with a result of which a part does."""
_SHARE = 4
"""A fourth of the machine's memory may be used."""


_WITH_WORKSPACE = {"mkldnn_rnn_layer": 4}
"""Makes so many tensors where gradients are on: the last is for its backward."""


class CannotRunError(Exception):
    """An operation cannot be run; the text says why."""


class OpRunner:
    """Runs operations, and counts the memory of their results that is still in use."""

    def __init__(self, most: int | None = None) -> None:
        self.most = memory() // _SHARE if most is None else most
        self._held: dict[int, list[int]] = {}
        """Storage -> its bytes, and how many live values are in it."""
        self._blank: set[int] = set()
        """Storages of which a part may contain whatever was in memory."""
        self._workspaces: dict[int, tuple[Any, tuple[Any, ...], int]] = {}
        """Storage -> the workspace of an LSTM in it, of which layer, and its version then."""

    def hold(self, tensor: torch.Tensor) -> None:
        """Count a value that is going to be kept."""
        storage = tensor.untyped_storage()
        self._held.setdefault(storage._cdata, [storage.nbytes(), 0])[1] += 1

    def is_defined(self, tensor: torch.Tensor) -> bool:
        """None of it is what happened to be in memory when the program ran."""
        return tensor.untyped_storage()._cdata not in self._blank

    def release(self, tensor: torch.Tensor) -> None:
        """Count one holder of the value less."""
        key = tensor.untyped_storage()._cdata
        held = self._held[key]
        held[1] -= 1
        if not held[1]:
            del self._held[key]
            self._blank.discard(key)

    def run(self, call: BoundCall, values: dict[int, Any], results: int) -> list[Any]:
        """The tensors that an operation makes, of which there are `results`.

        Raises `CannotRunError` for arguments that do not fit its tensors, for more memory than
        there may be, and for whatever torch says.
        """
        given = {name: _filled(value, values) for name, value in call.given}
        expected = call.operation._schema.arguments
        named = {each.name: each.default_value for each in expected} | given
        reason = op_checks.problem(call.packet, named) or self._bad_workspace(call.packet, named)
        if reason:
            raise CannotRunError(reason)
        if op_checks.trusts_strides(call.packet):
            given = _apart(call, given)
        sizes = _made_by(call, given, named, results)
        if sum(sizes) + op_checks.scratch(call.packet, named) > self.most - sum(
            size for size, _ in self._held.values()
        ):
            raise CannotRunError(f"it needs more than the {files.size(self.most)} that it may have")
        try:
            with torch.set_grad_enabled(results == _WITH_WORKSPACE.get(call.packet)):
                output = _call(call.operation, given)
        except Exception as error:  # whatever torch says of arguments that do not fit
            raise CannotRunError(shown(" ".join(str(error).split()), 200)) from None
        made = list(_tensors(output))
        if len(made) != results or any(each.layout != torch.strided for each in made):
            raise CannotRunError(f"it makes {len(made)} tensors, not {results}")
        self._settle(call.packet, made, named)
        return made

    def _settle(self, packet: str, made: list[Any], named: dict[str, Any]) -> None:
        if packet.startswith(_BLANK):
            self._blank.update(each.untyped_storage()._cdata for each in made)
        if packet.startswith(_EMPTY):
            for each in made:
                each.zero_()  # not the value that the rest of the process has left there
        if len(made) == _WITH_WORKSPACE.get(packet):
            workspace = made[3]
            self.hold(workspace)
            key = workspace.untyped_storage()._cdata
            self._workspaces[key] = (workspace, _layer(named), workspace._version)

    def _bad_workspace(self, packet: str, named: dict[str, Any]) -> str:
        """The backward of an LSTM takes the reserve of its forward, in an internal form: only one
        that a forward of this bundle has made, and unchanged."""
        if packet != "mkldnn_rnn_layer_backward":
            return ""
        given = named["workspace"]
        made, layer, version = self._workspaces.get(
            given.untyped_storage()._cdata, (given, None, 0)
        )
        fits = layer == _layer(named) and version == given._version and given.shape == made.shape
        return "" if fits else "its workspace is not from a forward of the same layer"


def _layer(named: dict[str, Any]) -> tuple[Any, ...]:
    return (
        tuple(named["input"].shape), named["input"].dtype, named["hidden_size"], named["reverse"],
        named["train"],
    )  # fmt: skip


def memory() -> int:
    """Bytes of memory that this machine, or the container, has."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not by a question to the system
        whole = 2**33
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            return min(whole, int(file.read()))
    except (OSError, ValueError):
        return whole


def _filled(value: object, values: dict[int, Any]) -> Any:
    if isinstance(value, Ref):
        return values[value.value]
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    return value


def _call(operation: Any, given: dict[str, Any]) -> Any:
    """Call it with arguments by name, of which those at the front go by place: `self` is a name
    that some versions of torch do not take otherwise."""
    args: list[Any] = []
    rest = dict(given)
    for argument in operation._schema.arguments:
        if argument.kwarg_only or argument.name not in rest:
            break
        args.append(rest.pop(argument.name))
    return operation(*args, **rest)


def _apart(call: BoundCall, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, of which those that are only read have memory for each of their elements."""
    written = {
        each.name
        for each in call.operation._schema.arguments
        if each.alias_info is not None and each.alias_info.is_write
    }
    return {
        name: value.contiguous()
        if isinstance(value, torch.Tensor)
        and name not in written
        and torch._debug_has_internal_overlap(value)
        else value
        for name, value in given.items()
    }


def _tensors(output: object) -> Iterator[Any]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, (list, tuple)):
        for each in output:
            yield from _tensors(each)


# ---------------------------------------------------------------------- what it would make


def _made_by(
    call: BoundCall, given: dict[str, Any], named: dict[str, Any], results: int
) -> list[int]:
    """Bytes of each tensor that an operation would make. Raises `CannotRunError` if torch refuses
    the sizes, or makes a different number of tensors."""
    if call.packet in _BY_VALUES:
        return [_BY_VALUES[call.packet](named)]
    abstract = {
        name: _abstract(_places(value) if name == "indices" else value)
        for name, value in given.items()
    }
    if any(each.name == "device" for each in call.operation._schema.arguments):
        abstract["device"] = torch.device("meta")
    _count_pieces(call.packet, named, results)
    try:
        made = list(_tensors(_call(call.operation, abstract)))
    except Exception as error:  # whatever torch says of sizes that do not fit
        raise CannotRunError(shown(" ".join(str(error).split()), 200)) from None
    # A view has no memory of its own, but whoever reads it makes copies of its size.
    return [
        max(each.numel() * each.element_size(), each.untyped_storage().nbytes()) for each in made
    ]


def _abstract(value: object) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list):
        return [_abstract(each) for each in value]
    return value


def _places(indices: Any) -> Any:
    """Indices with each mask in them as the places that it lets through."""
    if not isinstance(indices, list):
        return indices
    found: list[Any] = []
    for index in indices:
        is_mask = isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
        found += index.nonzero().unbind(1) if is_mask else [index]
    return found


def _count_pieces(packet: str, named: dict[str, Any], results: int) -> None:
    """A split of something long into short pieces makes more tensors than there is room for, even
    without new memory."""
    if packet not in _PIECES:
        return
    dim = named["dim"]
    length = op_indices.length(named["self"], dim)
    size = named.get("split_size", 1)
    if length is None or not isinstance(size, int) or size < 0:
        return  # torch reports it itself
    pieces = -(-length // max(size, 1))
    if pieces > max(results, 1):
        raise CannotRunError(f"it makes {pieces} tensors, not {results}")


_PIECES = ("split", "split_copy", "unsafe_split", "unbind", "unbind_copy")


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _broadcast(named: dict[str, Any]) -> int:
    """Bytes of the largest that all tensors together may be stretched to."""
    tensors = [each for each in named.values() if isinstance(each, torch.Tensor)]
    try:
        shape = op_indices.broadcast(*tensors)
    except RuntimeError:
        raise CannotRunError("its arguments differ in shape") from None
    return int(math.prod(shape) * max(each.element_size() for each in tensors))


def _of_unique(named: dict[str, Any]) -> int:
    return _bytes(named["self"]) + 2 * 8 * int(named["self"].numel())


def _of_repeats(named: dict[str, Any]) -> int:
    repeats, inputs = named["repeats"], named.get("self")
    if inputs is not None:  # made of others by torch itself: never on a tape
        raise CannotRunError("it is not an operation that a tape has")
    return 8 * int(repeats.sum(dtype=torch.int64))


def _of_ctc(named: dict[str, Any]) -> int:
    steps, targets = named["log_probs"], named["targets"]
    longest = targets.shape[-1] if targets.dim() else 1
    return int(_bytes(steps) + steps.shape[0] * steps.shape[1] * (2 * longest + 1) * 8)


_BY_VALUES: dict[str, Callable[[dict[str, Any]], int]] = {
    **dict.fromkeys(
        "_local_scalar_dense allclose equal is_same_size _is_all_true _is_any_true".split(),
        _broadcast,
    ),
    **dict.fromkeys("_unique _unique2 unique_consecutive unique_dim".split(), _of_unique),
    "nonzero": lambda named: 8 * int(named["self"].numel()) * max(named["self"].dim(), 1),
    "masked_select": _broadcast,
    "bincount": lambda named: 2**27,
    "repeat_interleave": _of_repeats,
    "_ctc_loss": _of_ctc,
    "_ctc_loss_backward": _of_ctc,
    "_pack_padded_sequence": lambda named: 2 * _bytes(named["input"]),
    "fake_quantize_per_tensor_affine_cachemask": lambda named: 2 * _bytes(named["self"]),
    "fake_quantize_per_channel_affine_cachemask": lambda named: 2 * _bytes(named["self"]),
    "fractional_max_pool3d_backward": lambda named: _bytes(named["self"]),
    "multi_margin_loss_backward": lambda named: _bytes(named["self"]),
    "multilabel_margin_loss_backward": lambda named: _bytes(named["self"]),
}
"""Operations whose results have sizes that depend on values, or that torch does not give."""
