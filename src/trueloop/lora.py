"""LoRA: fine-tuning a large model by small matrices beside its linear layers.

Hu et al., "LoRA: low-rank adaptation of large language models", ICLR 2022 (arXiv 2106.09685).
The weight W of an adapted layer is frozen; what trains are A (rank, in) and B (out, rank), and the
layer computes x Wᵀ + alpha / rank · x Aᵀ Bᵀ. Only they have gradients and optimizer state. B begins
at zero, so that the adapted model begins as the model that it adapts.

    lora.apply(model, ["query", "value"], rank=8)
    step = trueloop.Step(model, optimizers.adamw(model, lr=1e-3), loss_fn)
    ...
    lora.save(model, "style.safetensors")   # only the adapters: a few megabytes
    lora.merge(model)                       # the plain model again, its weights changed
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import is_lazy

from trueloop import _options
from trueloop.checkpoint.export import save_weights
from trueloop.checkpoint.tensor_shards import is_sharded
from trueloop.checkpoint.weights import read_weights
from trueloop.errors import ConfigError, RunError, nearest

__all__ = [
    "LoRALinear", "adapters", "apply", "load", "load_state_dict", "merge", "save", "state_dict",
]  # fmt: skip

M = TypeVar("M", bound=nn.Module)

_A, _B, _ALPHA = "lora_a", "lora_b", "alpha"
_LISTED = 3


class LoRALinear(nn.Module):
    """A frozen `nn.Linear` with the two matrices that train beside it.

    Takes and returns what the linear layer does: (…, in) to (…, out). Dropout acts only on the
    input of the matrices. They have the weight's dtype, or float32 beside one of half precision.

    Args:
        base: the layer itself.
        rank: of the matrices.
        alpha: the matrices' product is scaled by alpha / rank.
        dropout: share of the matrices' inputs that is dropped in training.

    Attributes:
        in_features: entries of an input, as the layer has them.
        out_features: entries of an output, as the layer has them.
        lora_a: the first matrix, (rank, in).
        lora_b: the second matrix, (out, rank).
        scale: alpha / rank.
    """

    lora_a: nn.Parameter
    lora_b: nn.Parameter

    def __init__(
        self, base: nn.Linear, rank: int = 8, alpha: float = 16.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.base = base
        self.in_features, self.out_features = base.in_features, base.out_features
        self.rank, self.alpha = rank, alpha
        self.scale = alpha / rank
        self.dropout = nn.Dropout(dropout)
        weight = base.weight
        dtype = torch.promote_types(weight.dtype, torch.float32)
        self.lora_a = nn.Parameter(weight.new_empty((rank, base.in_features), dtype=dtype))
        self.lora_b = nn.Parameter(weight.new_empty((base.out_features, rank), dtype=dtype))
        self.train(base.training)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """A like the weight of a new `nn.Linear` (Kaiming uniform), B zero."""
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        nn.init.zeros_(self.lora_b)

    def forward(self, x: Tensor) -> Tensor:
        """The linear layer's output plus that of the matrices.

        Args:
            x: (…, in).

        Returns:
            (…, out), in the dtype of the layer's output.
        """
        out: Tensor = self.base(x)
        x = self.dropout(x).to(self.lora_a.dtype)
        low = F.linear(F.linear(x, self.lora_a), self.lora_b)
        return out + (self.scale * low).to(out.dtype)

    @property
    def weight(self) -> Tensor:
        """The effective weight, (out, in), for code that reads `layer.weight`; without dropout."""
        return self.base.weight + self._delta().to(self.base.weight.dtype)

    @property
    def bias(self) -> nn.Parameter | None:
        """The bias of the layer, (out,), or None."""
        return self.base.bias

    def _delta(self) -> Tensor:
        return self.scale * (self.lora_b @ self.lora_a)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """Return the linear layer, with the matrices added into its weight, in place.

        The sum is computed in float64 and rounded once (on MPS, which has none, in the matrices'
        own dtype).
        """
        weight = self.base.weight
        wide = self.lora_a.dtype if weight.device.type == "mps" else torch.float64
        a, b = self.lora_a.to(wide), self.lora_b.to(wide)
        weight.copy_(torch.addmm(weight.to(wide), b, a, alpha=self.scale))
        return self.base

    def extra_repr(self) -> str:
        return f"rank={self.rank}, alpha={self.alpha:g}"


def apply(
    model: M,
    modules: str | Sequence[str] | re.Pattern[str],
    *,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
) -> M:
    """Freeze `model` and put a `LoRALinear` around each linear layer that `modules` names.

    It is done in place. Nothing else of the model changes: its classes and their `forward` stay as
    they are, and so do its outputs, until the first update. The names of the adapted weights get
    longer: `blocks.0.query.weight` becomes `blocks.0.query.base.weight`. Load weights before.

    Args:
        model: any module with `nn.Linear` layers inside.
        modules: names of linear layers as they end: `["query", "value"]` takes all of those names,
            "blocks.0.query" that one; or a compiled regular expression, which is searched for in
            each full name.
        rank: of the matrices, from 1 to the smaller side of each weight.
        alpha: the matrices' product is scaled by alpha / rank; above 0. Where only the rank
            changes, the learning rate can stay.
        dropout: share of the inputs of the matrices that is dropped in training, from 0 to below 1.

    Returns:
        The model. Make the optimizer after: those of `trueloop.optimizers` take only what is not
        frozen.

    Raises:
        ConfigError: nothing has the name, or it is not the name of a separate linear layer (but an
            embedding, or a weight that is tied to one), or is adapted already.
    """
    _options.model(model, "lora.apply(model, ['query', 'value'])")
    rank = _options.whole("rank", rank, example=8)
    alpha = _options.positive("alpha", alpha, "16")
    dropout = _options.share("dropout", dropout, below_one=True)
    names = _chosen(model, modules)
    _check_layers(model, names, rank)
    model.requires_grad_(False)
    _wrap(model, dict.fromkeys(names, (rank, alpha)), dropout)
    return model


def adapters(model: nn.Module) -> dict[str, LoRALinear]:
    """Return the adapted layers by their names, each once.

    Args:
        model: any module.
    """
    return {name: m for name, m in model.named_modules() if isinstance(m, LoRALinear)}


def merge(model: M) -> M:
    """Add the matrices into the weights and put the plain linear layers back, in place.

    The outputs stay the same but for rounding (those of eval mode, without dropout). The parameters
    stay frozen: `model.requires_grad_(True)` trains them again.

    Args:
        model: any module; one without adapters does not change.

    Returns:
        The model.

    Raises:
        ConfigError: the matrices are sharded over ranks.
    """
    _options.model(model, "lora.merge(model)")
    found = adapters(model)
    if any(is_sharded(part) for layer in found.values() for part in layer.parameters()):
        raise ConfigError(
            "the model is sharded over ranks, and only an unsharded model can be merged: save its "
            "adapters "
            "with lora.save(model, path), and merge them into a plain model after "
            "lora.load(model, path)"
        )
    merged = {id(layer): layer.merged() for layer in found.values()}
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if isinstance(module, LoRALinear):
            _replace(model, name, merged[id(module)])
    return model


def state_dict(model: nn.Module) -> dict[str, Tensor]:
    """The adapters without the model.

    Args:
        model: a module with adapters.

    Returns:
        For each adapted layer NAME `NAME.lora_a` (rank, in), `NAME.lora_b` (out, rank) and
        `NAME.alpha` (a float32 scalar).

    Raises:
        ConfigError: the model has no adapters.
    """
    _options.model(model, "lora.state_dict(model)")
    found: dict[str, Tensor] = {}
    for name, layer in _adapted(model).items():
        found[f"{name}.{_A}"] = layer.lora_a.detach()
        found[f"{name}.{_B}"] = layer.lora_b.detach()
        found[f"{name}.{_ALPHA}"] = torch.tensor(layer.alpha, dtype=torch.float32)
    return found


def load_state_dict(model: nn.Module, state: Mapping[str, Any]) -> None:
    """Load what `state_dict` returned, in place, or leave all unchanged.

    A model without adapters gets those that `state` has, as `apply` would put them (dropout 0). One
    with adapters must have the very same layers and ranks.

    Args:
        model: the module.
        state: what `state_dict` returned.

    Raises:
        RunError: `state` does not fit the model.
        ConfigError: what `apply` raises.
    """
    _options.model(model, "lora.load_state_dict(model, state)")
    wanted = _described(state)
    found = adapters(model)
    if not found:
        modules = dict(model.named_modules())
        if unknown := [name for name in wanted if name not in modules]:
            raise RunError(
                f"the model has no layer {unknown[0]!r}, which the adapters are for: load them "
                "into a model like the one that they were trained on"
            )
        for name, (rank, _) in wanted.items():
            _check_layers(model, [name], rank)
    here = {name: (layer.rank, layer.alpha) for name, layer in found.items()} or wanted
    if here != wanted:
        raise RunError(_unlike(here, wanted))
    _check_shapes(model, state, wanted)
    if not found:
        model.requires_grad_(False)
        _wrap(model, wanted, 0.0)
    with torch.no_grad():
        for name, layer in adapters(model).items():
            layer.lora_a.copy_(state[f"{name}.{_A}"])
            layer.lora_b.copy_(state[f"{name}.{_B}"])


def save(model: nn.Module, path: str | Path) -> Path:
    """Write only the adapters as safetensors, whole or not at all.

    Of a model whose parameters are sharded, all ranks call it.

    Args:
        model: a module with adapters.
        path: the file, such as "adapters.safetensors".

    Returns:
        The path.

    Raises:
        ConfigError: the model has no adapters.
        RunError: the file cannot be written.
    """
    return save_weights(state_dict(model), path)


def load(model: nn.Module, path: str | Path) -> None:
    """Load adapters that `save` wrote, as `load_state_dict` does.

    Args:
        model: the module.
        path: the file.

    Raises:
        RunError: the file is missing, damaged or does not fit the model.
        ConfigError: what `apply` raises.
    """
    load_state_dict(model, read_weights(_options.path("path", path)))


def _chosen(model: nn.Module, modules: Any) -> list[str]:
    """Names of the modules that are meant, in the model's order; shared ones under the first."""
    named = [name for name, _ in model.named_modules() if name]
    if isinstance(modules, re.Pattern):
        linear = [name for name in named if isinstance(model.get_submodule(name), nn.Linear)]
        found = [name for name in linear if modules.search(name)]
        if not found:
            raise ConfigError(
                f"no nn.Linear of the model has {modules.pattern!r} in its name: {_known(model)}"
            )
        return found
    words = [modules] if isinstance(modules, str) else modules
    if not isinstance(words, Sequence) or not words:
        raise ConfigError(
            f"modules={_options.shown(modules)} names no layers: write e.g. "
            "modules=['query', 'value']"
        )
    found = []
    for word in words:
        _options.text("modules", word, "query")
        meant = [name for name in named if f".{name}".endswith(f".{word}")]
        if not meant:
            raise ConfigError(
                f"no nn.Linear of the model is called {word!r}: {_known(model, word)}"
            )
        found += meant
    return [name for name in named if name in set(found)]


def _known(model: nn.Module, word: str = "") -> str:
    """The end of a message: what linear layers are called here."""
    layers = [name for name, m in model.named_modules() if name and isinstance(m, nn.Linear)]
    if not layers:
        return "it contains none, so there is nothing to adapt"
    return nearest(word, [name.rpartition(".")[2] for name in layers])


def _check_layers(model: nn.Module, names: Sequence[str], rank: int) -> None:
    """Raise `ConfigError` for a module that cannot be adapted."""
    holders: dict[int, set[int]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            holders.setdefault(id(parameter), set()).add(id(module))
    if adapters(model):
        raise ConfigError(
            "the model has LoRA adapters already: merge them first, lora.merge(model), or name all "
            "layers in one lora.apply"
        )
    for name in names:
        layer = model.get_submodule(name)
        if not isinstance(layer, nn.Linear):
            what = _options.kind_of(layer)
            raise ConfigError(f"{name!r} is {what}, and LoRA adapts nn.Linear: {_known(model)}")
        weight = layer.weight
        if is_lazy(weight) or not weight.is_floating_point() or is_sharded(weight):
            raise ConfigError(
                f"{name}.weight has no shape yet, is sharded or quantized: adapt the model before "
                "it is sharded, with floating-point weights"
            )
        if len(holders[id(weight)]) > 1:
            raise ConfigError(
                f"{name}.weight is tied to a different layer's, which would change with it: leave "
                f"{name!r} out, or untie it"
            )
        if rank > min(weight.shape):
            raise ConfigError(
                f"rank={rank} is more than {name}.weight has, of shape {tuple(weight.shape)}: "
                f"write rank={min(8, *weight.shape)}"
            )


def _wrap(model: nn.Module, wanted: Mapping[str, tuple[int, float]], dropout: float) -> None:
    wrapped = {
        id(model.get_submodule(name)): LoRALinear(
            model.get_submodule(name),  # type: ignore[arg-type]
            rank,
            alpha,
            dropout,
        )
        for name, (rank, alpha) in wanted.items()
    }
    # A layer that stands at several places is one there too.
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if id(module) in wrapped:
            _replace(model, name, wrapped[id(module)])


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def _adapted(model: nn.Module) -> dict[str, LoRALinear]:
    found = adapters(model)
    if not found:
        raise ConfigError(
            "the model has no LoRA adapters: write lora.apply(model, ['query', 'value']) first"
        )
    return found


def _described(state: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """Rank and alpha of each layer in the state of adapters."""
    layers = list(dict.fromkeys(str(name).rpartition(".")[0] for name in state))
    expected = {f"{layer}.{part}" for layer in layers for part in (_A, _B, _ALPHA)}
    tensors = all(isinstance(value, Tensor) for value in state.values())
    if not layers or expected != set(state) or not tensors:
        odd = next(iter(sorted(map(str, expected ^ set(state)))), "nothing")
        raise RunError(
            f"these are not LoRA adapters ({odd} is missing or should not be there): give what "
            "lora.state_dict or lora.save made"
        )
    if any(state[f"{layer}.{_ALPHA}"].numel() != 1 for layer in layers):
        raise RunError("an alpha of these LoRA adapters is not one number: save them again")
    return {
        layer: (
            int(state[f"{layer}.{_A}"].shape[0]) if state[f"{layer}.{_A}"].ndim else 0,
            float(state[f"{layer}.{_ALPHA}"]),
        )
        for layer in layers
    }


def _unlike(here: Mapping[str, tuple[int, float]], there: Mapping[str, tuple[int, float]]) -> str:
    name = next(n for n in [*here, *there] if here.get(n) != there.get(n))

    def as_words(which: Mapping[str, tuple[int, float]]) -> str:
        return f"rank {which[name][0]}, alpha {which[name][1]:g}" if name in which else "none"

    return (
        f"these adapters do not fit: for {name!r} the model has {as_words(here)}, and they have "
        f"{as_words(there)}: load them into the plain model, which then gets theirs"
    )


def _check_shapes(
    model: nn.Module, state: Mapping[str, Any], wanted: Mapping[str, tuple[int, float]]
) -> None:
    for name, (rank, _) in wanted.items():
        layer: Any = model.get_submodule(name)
        for part, shape in {_A: (rank, layer.in_features), _B: (layer.out_features, rank)}.items():
            found = tuple(state[f"{name}.{part}"].shape)
            if found != shape or not rank:
                raise RunError(
                    f"{name}.{part} of the adapters has the shape {found}, and the model needs "
                    f"{shape}: load them into a model like the one that they were trained on"
                )
