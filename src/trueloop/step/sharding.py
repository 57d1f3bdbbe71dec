"""FSDP2: the model sharded over the ranks, block by block, by torch's `fully_shard`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from trueloop import _options, device as devices, ranks
from trueloop.errors import ConfigError
from trueloop.records import LossOutput
from trueloop.step.materialise import Materialiser, check_resettable, initialising, is_on_meta
from trueloop.step.module_blocks import blocks_of, check_blocks, check_owners
from trueloop.step.parallel import LossFn, Parallel, average_gradients, one_line
from trueloop.step.sharded_muon import make_exact

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class FSDPOptions:
    """How `Step(..., parallel=FSDPOptions(...))` uses torch's `fully_shard`.

    Attributes:
        blocks: names of the classes whose modules are sharded one by one, such as `("Block",)`;
            what is in none of them is sharded as one. A rank holds one block whole at a time,
            beside its shards. None: the repeated layers, which are the outermost modules that come
            two or more of a class in one `ModuleList`, `ModuleDict` or `Sequential`, and have a
            matrix or a kernel. (): no blocks.
        replicate: copies of the sharded model (HSDP): the ranks form this many groups of
            neighbours, usually the hosts; the model is sharded within each, and gradients are
            averaged between them. It divides the number of ranks.
        param_dtype: `bf16` or `fp16`: what the forward and the backward compute with, and what the
            parameters travel in. The shards, which the optimizer updates, keep the parameters' own
            dtype. None: their own dtype.
        reduce_dtype: what gradients are summed over ranks in. None: float32 where `param_dtype` is
            set, else the parameters' own dtype.
        cpu_offload: shards, gradients and optimizer state live in the host's memory, and the
            optimizer runs there.
        reshard_after_forward: whether a block's whole parameters are freed between its forward and
            its backward: less memory, one more exchange. An int: they stay sharded over so many
            ranks. None: True for the blocks, False for the rest.
    """

    blocks: Sequence[str] | None = None
    replicate: int = 1
    param_dtype: str | torch.dtype | None = None
    reduce_dtype: str | torch.dtype | None = None
    cpu_offload: bool = False
    reshard_after_forward: bool | int | None = None

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        _options.whole("replicate", self.replicate)
        for name in ("param_dtype", "reduce_dtype"):
            _check_dtype(name, getattr(self, name))
        _options.flag("cpu_offload", self.cpu_offload)
        if not isinstance(self.reshard_after_forward, (bool, type(None))):
            _options.whole("reshard_after_forward", self.reshard_after_forward)


def _check_dtype(name: str, value: Any) -> None:
    if not isinstance(value, torch.dtype) and value is not None:
        _options.choice(name, value, _DTYPES)


def _dtype(value: Any) -> torch.dtype | None:
    return _DTYPES[value] if isinstance(value, str) else value


class FSDP(Parallel):
    """Each rank has a shard of every parameter, of its gradient and of the optimizer's state.

    Also the strategy for a model that the user has sharded with `fully_shard`.
    """

    name = "fsdp"

    def __init__(
        self, model: nn.Module, optimizers: Sequence[Optimizer], device: torch.device
    ) -> None:
        super().__init__(getattr(model, "_orig_mod", model), model)
        self._device = device
        self._optimizers = optimizers
        for optimizer in optimizers:
            make_exact(optimizer)
        self._modules = fsdp_modules(self.model)
        self._plain: list[nn.Parameter] = []
        """Those that are not sharded: of the optimizer, outside the model."""
        self._stashed: list[tuple[Tensor | None, Tensor | None]] = []

    @property
    def device(self) -> torch.device:
        return self._device

    def refresh(self, parameters: Sequence[nn.Parameter]) -> None:
        for module in self._modules:
            module.reshard()  # after a forward without a backward the root's are whole
        self._plain = [p for p in parameters if not is_sharded(p)]

    def loss(self, loss_fn: LossFn, view: nn.Module, batch: Any) -> LossOutput:
        try:
            return LossOutput.of(loss_fn(view, batch))
        except RuntimeError as error:
            if "mixed torch.Tensor and DTensor" in str(error):
                raise ConfigError(_OUTSIDE) from error
            raise

    @contextmanager
    def synchronising(self, last: bool) -> Iterator[None]:
        if last:
            yield
            return
        self._set_synchronising(False)
        try:
            yield
        finally:
            self._set_synchronising(True)

    def _set_synchronising(self, flag: bool) -> None:
        for module in self._modules:
            module.set_requires_gradient_sync(flag, recurse=False)

    def _leaves(self) -> Iterable[Tensor]:
        # Gradients go to the whole parameters, which torch keeps for the backward.
        whole = (getattr(part, "_unsharded_param", None) for part in self._parameters())
        return [*self._plain, *(p for p in whole if p is not None)]

    def check_synchronised(self) -> None:
        average_gradients(self._plain)

    def synchronise(self, parameters: Sequence[nn.Parameter]) -> None:
        self.discard()
        raise ConfigError(
            "an accumulation window is open, and under fsdp only the backward of its last "
            "micro-batch can exchange the gradients: write step(batch, last=True) at an epoch's "
            "last batch, or step.plan(epochs=…, batches=…) before the first"
        )

    def stash(self) -> None:
        self._stashed = []
        for part in self._parameters():
            whole = getattr(part, "_unsharded_param", None)
            kept = None if whole is None else whole.grad
            self._stashed.append((_accumulated(part), kept))
        self._clear()

    def restore(self) -> None:
        for part, (accumulated, gradient) in zip(self._parameters(), self._stashed, strict=True):
            _accumulate(part, accumulated)
            if gradient is not None:
                part._unsharded_param.grad = gradient
        self._stashed = []

    def discard(self) -> None:
        self._stashed = []
        self._clear()
        reset = getattr(self.model, "reset_iter_state", None)
        # Before the first forward there is nothing to reset, and torch refuses.
        if reset is not None and getattr(_state(self.model), "_is_root", None):
            reset()

    def _parameters(self) -> list[Any]:
        """torch's own records of the sharded parameters, where the gradients of an open window are:
        torch has no public way to them."""
        return [part for group in _groups(self._modules) for part in group.fsdp_params]

    def _clear(self) -> None:
        for part in self._parameters():
            _accumulate(part, None)
            if getattr(part, "_unsharded_param", None) is not None:
                part._unsharded_param.grad = None

    def explain(self, error: BaseException) -> None:
        kind = " or ".join(type(optimizer).__name__ for optimizer in self._optimizers)
        if "mixed torch.Tensor and DTensor" in str(error):
            raise ConfigError(
                f"a parameter group of {kind} has sharded parameters and others, which it updates "
                "in one call: give those outside the model a separate group"
            ) from error
        if (
            isinstance(error, NotImplementedError)
            or "DTensor" in str(error)
            or "harding" in str(error)
        ):
            raise ConfigError(
                f"{kind} cannot update sharded parameters ({one_line(error)}): use one of "
                "trueloop.optimizers, or parallel='ddp'"
            ) from error


def _groups(modules: Sequence[Any]) -> Iterator[Any]:
    """torch's records of what each of these modules has sharded."""
    for module in modules:
        state = _state(module)
        groups = getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]
        yield from (group for group in groups if group is not None)


def take_in_trained(model: nn.Module) -> None:
    """After a change of which parameters are trained. At the first forward torch has set the dtype
    in which a block's gradients are summed, by those that were trained then: none of a frozen
    block."""
    for group in _groups(fsdp_modules(model)):
        group._init_mp_dtypes()


def _accumulated(part: Any) -> Tensor | None:
    """The gradient that torch keeps in the dtype of the reduction. From 2.15 on there is none: the
    whole parameter's own gradient is accumulated."""
    gradient: Tensor | None = part.__dict__.get("unsharded_accumulated_grad")
    return gradient


def _accumulate(part: Any, gradient: Tensor | None) -> None:
    if "unsharded_accumulated_grad" in part.__dict__:
        part.unsharded_accumulated_grad = gradient


_OUTSIDE = (
    "the loss uses sharded parameters outside the forward of their block, where no rank has them "
    "whole: let loss_fn call model(...), name other classes in FSDPOptions(blocks=...), or, for "
    "a different method, call torch.distributed.fsdp.register_fsdp_forward_method(model, 'method')"
)


def sharded_by_user(model: nn.Module, optimizers: Sequence[Optimizer]) -> FSDP | None:
    """The strategy for a model to which `fully_shard` was applied already; None for any other."""
    inner = getattr(model, "_orig_mod", model)
    if not fsdp_modules(inner):
        return None
    sharded: Any = next(p for p in inner.parameters() if is_sharded(p))
    return FSDP(model, optimizers, device_of_mesh(sharded.device_mesh))


def shard(model: nn.Module, optimizers: Sequence[Optimizer], options: FSDPOptions) -> FSDP:
    """Shard `model` in place, and give the optimizers the new parameters; all ranks then have rank
    0's weights. Raises `ConfigError` for a model or an optimizer that cannot be sharded."""
    if any(optimizer.state for optimizer in optimizers):
        raise ConfigError(
            "the optimizer has a state already, which belongs to parameters that are not sharded: "
            "make a new optimizer, and load the state after the step is made"
        )
    blocks = blocks_of(model, options.blocks)
    check_owners(model, blocks)
    check_resettable(model)
    device = _device_of(model)
    names = dict(model.named_parameters(remove_duplicate=False))
    how = _how(options, device)
    _broadcast([t for t in (*model.parameters(), *model.buffers()) if not t.is_meta])
    materialiser = Materialiser(device)
    with initialising(device) if is_on_meta(model) else nullcontext():
        for block in blocks:
            materialiser.fill(block)
            _fully_shard(block, how)
        materialiser.fill(model)
        _fully_shard(model, how, is_root=True)
    _repoint(optimizers, names, model)
    return FSDP(model, optimizers, device)


def materialise_whole(
    model: nn.Module, optimizers: Sequence[Optimizer], options: FSDPOptions
) -> None:
    """In one process: give a model on meta its values, the same as under many ranks."""
    check_resettable(model)
    device = _device_of(model)
    names = dict(model.named_parameters(remove_duplicate=False))
    with initialising(device):
        materialiser = Materialiser(device)
        for block in blocks_of(model, options.blocks):
            materialiser.fill(block)
        materialiser.fill(model)
    _repoint(optimizers, names, model)


def _how(options: FSDPOptions, device: torch.device) -> dict[str, Any]:
    """The arguments of `fully_shard`."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy

    count, copies = ranks.world_size(), options.replicate
    if count % copies:
        raise ConfigError(
            f"replicate={copies} does not divide the {count} ranks: write a divisor of {count}"
        )
    param, reduce = _dtype(options.param_dtype), _dtype(options.reduce_dtype)
    how: dict[str, Any] = {
        "mesh": init_device_mesh(device.type, (count,), mesh_dim_names=("shard",))
        if copies == 1
        else init_device_mesh(
            device.type, (copies, count // copies), mesh_dim_names=("replicate", "shard")
        ),
        "mp_policy": MixedPrecisionPolicy(param, reduce or (torch.float32 if param else None)),
        "reshard_after_forward": options.reshard_after_forward,
    }
    if options.cpu_offload:
        how["offload_policy"] = CPUOffloadPolicy(pin_memory=device.type != "cpu")
    return how


def _fully_shard(module: nn.Module, how: dict[str, Any], is_root: bool = False) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = how["mp_policy"]
    if is_root and policy.param_dtype is not None:
        # The loss is computed from the outputs, and a sum in half precision loses its last digits.
        how = {**how, "mp_policy": MixedPrecisionPolicy(*_dtypes(policy), torch.float32)}
    if how["reshard_after_forward"] is None:
        # Before torch 2.8 None is not a value: its default was True for all but the root.
        how = {**how, "reshard_after_forward": not is_root}
    try:
        fully_shard(module, **how)
    except (ValueError, NotImplementedError) as error:
        raise ConfigError(
            f"torch's fully_shard does not take {type(module).__name__} ({one_line(error)}): "
            "change the model, or name other classes in FSDPOptions(blocks=[...])"
        ) from error


def _dtypes(policy: Any) -> tuple[Any, Any]:
    return policy.param_dtype, policy.reduce_dtype


def _repoint(
    optimizers: Sequence[Optimizer], names: dict[str, nn.Parameter], model: nn.Module
) -> None:
    """Give the optimizers the parameters that have replaced theirs."""
    now = dict(model.named_parameters(remove_duplicate=False))
    new = {id(old): now[name] for name, old in names.items()}
    for optimizer, group in ((one, group) for one in optimizers for group in one.param_groups):
        group["params"] = [new.get(id(p), p) for p in group["params"]]
        if isinstance(optimizer, SGD) and group.get("fused") and ranks.is_distributed():
            # It has no fused form for shards.
            group["fused"], group["foreach"] = False, True
            optimizer._step_supports_amp_scaling = False


def _broadcast(tensors: Sequence[Tensor]) -> None:
    """Give every rank the tensors of rank 0, in place: those of one dtype and device at once, up
    to 64 MiB."""
    with torch.no_grad(), ranks.waiting("the tensors of rank 0"):
        for part in _batches(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in part])
            dist.broadcast(flat, src=0)
            values = torch.split(flat, [tensor.numel() for tensor in part])
            for tensor, value in zip(part, values, strict=True):
                tensor.copy_(value.view_as(tensor))


_BATCH_BYTES = 64 * 2**20


def _batches(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for group in groups.values():
        part: list[Tensor] = []
        for tensor in group:
            if part and sum(t.nbytes for t in part) + tensor.nbytes > _BATCH_BYTES:
                yield part
                part = []
            part.append(tensor)
        yield part


def sync_buffers(model: nn.Module) -> None:
    """Give every rank the buffers of rank 0 (the running statistics of batch norm); all ranks must
    call it together."""
    if ranks.is_distributed():
        _broadcast([b for b in model.buffers() if not b.is_meta and not is_sharded(b)])


def placed(value: Any, like: Any) -> Any:
    """A whole tensor as the shards of one that is sharded; anything else itself."""
    if not isinstance(value, Tensor) or is_sharded(value) or not is_sharded(like):
        return value
    if value.shape != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    # Each rank has the whole, and cuts out its own part: nothing is sent.
    whole = value.to(like.device_mesh.device_type)
    return distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=None)


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a sharded tensor, in its memory; any other tensor itself."""
    if not is_sharded(tensor):
        return tensor
    with torch.no_grad():
        part: Tensor = tensor.to_local()  # type: ignore[attr-defined]
    return part


def like(part: Tensor, tensor: Any) -> Tensor:
    """`part`, which is this rank's, sharded as `tensor` is; itself where that is not sharded."""
    if not is_sharded(tensor):
        return part
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(
        part,
        tensor.device_mesh,
        tensor.placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def placed_model(model: nn.Module, saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """A model's saved state, whole or sharded, as the model has it here."""
    live = model.state_dict()
    return {name: placed(value, live.get(name)) for name, value in saved.items()}


def placed_optimizer(optimizer: Optimizer, saved: dict[str, Any]) -> dict[str, Any]:
    """An optimizer's saved state, whole or sharded, as its parameters are here."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    if not any(is_sharded(p) for p in held):
        return saved
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    likes = dict(zip(numbers, held, strict=False))
    state = {
        number: {name: placed(entry, likes.get(number)) for name, entry in entries.items()}
        if isinstance(entries, dict)
        else entries
        for number, entries in saved["state"].items()
    }
    return {**saved, "state": state}


def reshard(model: nn.Module) -> None:
    """Free the whole parameters that a forward without a backward has left in place."""
    for module in fsdp_modules(model):
        module.reshard()


def is_sharded(tensor: Tensor) -> bool:
    """Whether it is a `DTensor`."""
    return hasattr(tensor, "placements")


def fsdp_modules(model: nn.Module) -> list[Any]:
    """The modules of a model to which `fully_shard` was applied."""
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp is None:
        return []  # nothing has imported it, so nothing is sharded
    return [module for module in model.modules() if isinstance(module, fsdp.FSDPModule)]


def _state(module: Any) -> Any:
    get = getattr(module, "_get_fsdp_state", None)
    return None if get is None else get()


def _device_of(model: nn.Module) -> torch.device:
    """Where the ranks compute: where the model is, or, for one on meta, the accelerator that the
    process group speaks to."""
    found = next((p.device for p in model.parameters() if not p.is_meta), None)
    if found is not None:
        return found
    if dist.is_available() and dist.is_initialized() and "nccl" not in dist.get_backend_config():
        return torch.device("cpu")
    return devices.pick("auto")


def device_of_mesh(mesh: Any) -> torch.device:
    """The device on which this rank of the mesh computes."""
    kind = mesh.device_type
    return torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)
