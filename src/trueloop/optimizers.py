"""Optimizers with the right parameter groups, fused where an implementation exists.

Weight decay acts on matrices and kernels only; biases, and the gains of normalisation layers, keep
their scale. The model's own order of parameters is kept within each group.

Each function takes the model (or an iterable of parameters) and returns torch's own optimizer:
`torch.optim.AdamW`, `Adam` or `SGD`. Of its two groups the first decays and the second does not;
with `weight_decay=0` there is one group. `muon` takes a model and returns two optimizers, which a
`Step` takes as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import SGD, Adam, AdamW, Optimizer

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.hidden_matrices import hidden_matrices, layer_scales

__all__ = ["adam", "adamw", "by_name", "muon", "parameter_groups", "sgd"]

Parameters = nn.Module | Iterable[nn.Parameter]
_O = TypeVar("_O", SGD, Adam, AdamW)

_NORMS: tuple[type[nn.Module], ...] = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.LocalResponseNorm,
    nn.RMSNorm,
)


def adamw(
    model: Parameters,
    lr: float = 1e-3,
    *,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    layer_decay: float | None = None,
    layers: Sequence[str] | None = None,
) -> AdamW:
    """AdamW: Adam with weight decay that is apart from the gradient.

    Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Args:
        model: the module, or an iterable of parameters (those of fewer than two dimensions then
            do not decay).
        lr: learning rate, above 0: the size of an update of one weight, roughly.
        weight_decay: each update first multiplies the decayed weights by 1 - lr · weight_decay;
            0 or above.
        betas: decay of the running means of the gradient and of its square, each from 0 to below
            1. Means over some 1 / (1 - beta) updates.
        eps: added to the root of the mean square, so that no update is divided by 0; 0 or above,
            in the gradient's unit.
        layer_decay: factor from each layer's lr to that of the layer before it, above 0 and at most
            1: `parameter_groups` says how layers are found. None: one lr.
        layers: names of the layers' modules from input to output; None: found.

    Returns:
        torch's optimizer, with one or two parameter groups.

    Raises:
        ConfigError: a value that cannot work, or a model with nothing to train.
    """
    depth = {"layer_decay": layer_decay, "layers": layers}
    return _build(AdamW, model, lr, weight_decay, depth, **_adam_options(betas, eps))


def adam(
    model: Parameters,
    lr: float = 1e-3,
    *,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    layer_decay: float | None = None,
    layers: Sequence[str] | None = None,
) -> Adam:
    """Adam: updates of about the size `lr`, whatever the size of the gradient.

    Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.

    Args:
        model: the module, or an iterable of parameters.
        lr: learning rate, above 0: the size of an update of one weight, roughly.
        weight_decay: an L2 term: weight_decay · weight is added to the gradient, and so is scaled
            as the gradient is; 0 or above. `adamw` keeps the decay apart.
        betas: decay of the running means of the gradient and of its square, each from 0 to below
            1. Means over some 1 / (1 - beta) updates.
        eps: added to the root of the mean square, so that no update is divided by 0; 0 or above,
            in the gradient's unit.
        layer_decay: factor from each layer's lr to that of the layer before it, above 0 and at most
            1: `parameter_groups` says how layers are found. None: one lr.
        layers: names of the layers' modules from input to output; None: found.

    Returns:
        torch's optimizer, with one or two parameter groups.

    Raises:
        ConfigError: a value that cannot work, or a model with nothing to train.
    """
    depth = {"layer_decay": layer_decay, "layers": layers}
    return _build(Adam, model, lr, weight_decay, depth, **_adam_options(betas, eps))


def sgd(
    model: Parameters,
    lr: float = 0.1,
    *,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
    nesterov: bool = True,
    layer_decay: float | None = None,
    layers: Sequence[str] | None = None,
) -> SGD:
    """Stochastic gradient descent with (Nesterov) momentum.

    Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep
    learning", ICML 2013, in torch's form: the momentum buffer is multiplied by `momentum` and the
    gradient added to it, and the update is lr · buffer.

    Args:
        model: the module, or an iterable of parameters.
        lr: learning rate, above 0: weights change by lr times the gradient. With momentum m, a
            constant gradient moves them lr / (1 - m) per update.
        weight_decay: an L2 term: weight_decay · weight is added to the gradient; 0 or above.
        momentum: the share of the last update's buffer that is kept, from 0 (none) to below 1.
        nesterov: take the gradient's part of the buffer one update ahead; without momentum it has
            no effect.
        layer_decay: factor from each layer's lr to that of the layer before it, above 0 and at most
            1: `parameter_groups` says how layers are found. None: one lr.
        layers: names of the layers' modules from input to output; None: found.

    Returns:
        torch's optimizer, with one or two parameter groups.

    Raises:
        ConfigError: a value that cannot work, or a model with nothing to train.
    """
    momentum = _options.share("momentum", momentum, below_one=True, example="0.9")
    nesterov = _options.flag("nesterov", nesterov) and momentum > 0
    depth = {"layer_decay": layer_decay, "layers": layers}
    return _build(SGD, model, lr, weight_decay, depth, momentum=momentum, nesterov=nesterov)


def muon(
    model: nn.Module,
    lr: float = 1e-3,
    *,
    adamw_lr: float | None = None,
    weight_decay: float = 0.1,
    momentum: float = 0.95,
    nesterov: bool = True,
    ns_steps: int = 5,
    adjust_lr_fn: str = "match_rms_adamw",
    betas: tuple[float, float] = (0.9, 0.95),
    eps: float = 1e-8,
    adamw_modules: Sequence[str] | None = None,
) -> list[Optimizer]:
    """Muon on the hidden matrices, and AdamW on all else: `[torch.optim.Muon, torch.optim.AdamW]`.

    Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024: the update of a
    matrix is its momentum with all singular values brought near 1, by Newton-Schulz iterations in
    bfloat16. `Step(model, optimizers.muon(model), ...)` takes both as one update.

    Muon has the two-dimensional parameters of `nn.Linear`, `nn.MultiheadAttention` and recurrent
    layers. AdamW has the rest: embeddings (`nn.Embedding`, also where a matrix is tied to one), the
    head, norms and biases, convolution kernels (torch's Muon takes two dimensions only), and
    parameters that a module of a different class has itself.

    Args:
        model: the module.
        lr: learning rate of Muon, above 0.
        adamw_lr: that of AdamW; None: the same.
        weight_decay: of both, apart from the gradient; norms and biases do not decay. 0 or above.
        momentum: the share of the running mean of gradients that is kept, from 0 to below 1.
        nesterov: take the gradient's part of it one update ahead.
        ns_steps: Newton-Schulz iterations, 1 to 99.
        adjust_lr_fn: how lr is scaled for a matrix of shape (A, B). `match_rms_adamw`, by
            0.2 √max(A, B): the update has the size of AdamW's, so AdamW's lr and decay fit (Liu et
            al., "Muon is scalable for LLM training", 2025). `original`, by √max(1, A / B), as
            Jordan has it: lr is then about 0.02, and AdamW's is given apart.
        betas: of AdamW, as `adamw` has them.
        eps: of AdamW, as `adamw` has it.
        adamw_modules: names of the modules that are the head, such as `("head",)`: AdamW has all of
            their parameters. None: the last `nn.Linear` outside of repeated blocks (modules with a
            sibling of their class in the same `ModuleList`, `ModuleDict` or `Sequential`). (): no
            head.

    Returns:
        Both optimizers; only Muon if nothing is left for AdamW.

    Raises:
        ConfigError: an impossible value, no hidden matrix, or a torch without Muon (before 2.9).
    """
    model = _options.model(model, "optimizers.muon(model, lr=1e-3)")
    lr = _options.positive("lr", lr, "1e-3")
    others_lr = lr if adamw_lr is None else _options.positive("adamw_lr", adamw_lr, "3e-4")
    options = _muon_options(weight_decay, momentum, nesterov, ns_steps, adjust_lr_fn)
    hidden, groups = _divided(model, options["weight_decay"], adamw_modules)
    found = [_muon_of_torch()([{"params": hidden, "name": "hidden"}], lr=lr, **options)]
    more = _adam_options(betas, eps)
    if groups:
        found.append(_fused(AdamW, groups, _has_sparse(model), lr=others_lr, **more))
    return found


def _muon_options(
    weight_decay: Any, momentum: Any, nesterov: Any, ns_steps: Any, adjust_lr_fn: Any
) -> dict[str, Any]:
    if _options.whole("ns_steps", ns_steps, 1, 5) > 99:
        raise ConfigError(f"ns_steps={ns_steps} is above 99: write ns_steps=5")
    return {
        "weight_decay": _options.not_negative("weight_decay", weight_decay, "0.1"),
        "momentum": _options.share("momentum", momentum, below_one=True, example="0.95"),
        "nesterov": _options.flag("nesterov", nesterov),
        "ns_steps": ns_steps,
        "adjust_lr_fn": _options.choice("adjust_lr_fn", adjust_lr_fn, _ADJUSTED),
    }


def _divided(
    model: nn.Module, weight_decay: float, adamw_modules: Sequence[str] | None
) -> tuple[list[nn.Parameter], list[dict[str, Any]]]:
    """Muon's matrices, and AdamW's groups."""
    groups = parameter_groups(model, weight_decay)
    hidden = hidden_matrices(model, adamw_modules)
    if not hidden:
        raise ConfigError(
            "the model has no hidden matrix for Muon: it takes those of linear, attention and "
            "recurrent layers other than the head, and no convolution kernels: choose adamw"
        )
    taken = {id(p) for p in hidden}
    for group in groups:
        group["params"] = [p for p in group["params"] if id(p) not in taken]
    return hidden, [group for group in groups if group["params"]]


_ADJUSTED = ("match_rms_adamw", "original")


def _muon_of_torch() -> Any:
    kind = getattr(torch.optim, "Muon", None)
    if kind is None:
        raise ConfigError(
            f"torch {torch.__version__} has no Muon: install torch 2.9 or newer, or choose adamw"
        )
    return kind


_BY_NAME: dict[str, Callable[..., Any]] = {"adamw": adamw, "adam": adam, "sgd": sgd, "muon": muon}


def by_name(
    name: str,
    model: Parameters,
    lr: float,
    *,
    weight_decay: float,
    layer_decay: float | None = None,
) -> Optimizer | list[Optimizer]:
    """An optimizer with its defaults, by the name of its function.

    Args:
        name: `adamw`, `adam`, `sgd` or `muon`.
        model: the module, or an iterable of parameters (not for `muon`).
        lr: learning rate, above 0.
        weight_decay: 0 or above; see the function.
        layer_decay: as `adamw` has it; None: one lr.

    Returns:
        What the function returns: one optimizer, or of `muon` a list of them.

    Raises:
        ConfigError: an unknown name, a value that cannot work, or a model with nothing to train.
    """
    make = _BY_NAME[_options.by_name("optimizer", name, _BY_NAME)]
    depth: dict[str, Any] = {} if layer_decay is None else {"layer_decay": layer_decay}
    if depth and make is muon:
        raise ConfigError("muon takes no layer_decay: choose adamw, adam or sgd")
    found: Optimizer | list[Optimizer] = make(model, lr, weight_decay=weight_decay, **depth)
    return found


def parameter_groups(
    model: Parameters,
    weight_decay: float,
    *,
    lr: float | None = None,
    layer_decay: float | None = None,
    layers: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Trainable parameters in two groups, decayed and not; in one if nothing decays.

    For an optimizer that is not one of this module's: `Lion(parameter_groups(model, 0.1), lr=...)`.

    With `layer_decay` each layer has separate groups, with lr · layer_decay ** (layers after it):
    the last layer learns at `lr`, the first ones change least (Clark, Luong, Le and Manning,
    "ELECTRA", ICLR 2020; Bao, Dong, Piao and Wei, "BEiT", ICLR 2022). Everything before the first
    repeated block is layer 0 (embeddings), each block is a layer, and everything after the last one
    is the last layer (the final norm and the head). A model without blocks has a layer for each
    module that holds parameters itself, in the order of registration.

    Args:
        model: the module, or an iterable of bare parameters, which has no layers to look at: those
            of fewer than two dimensions are left undecayed.
        weight_decay: of the first group; 0 or above.
        lr: the learning rate, which `layer_decay` needs.
        layer_decay: factor from each layer's lr to that of the layer before it, above 0 and at most
            1; None: no `lr` in the groups.
        layers: names of the layers' modules from input to output, which contain all parameters;
            None: found as above.

    Returns:
        Groups for an optimizer, each with `params`, `weight_decay` and, where there are two, a
        `name`: `decay` or `no_decay`; with `layer_decay` also `lr`, and `layer_3/decay`.

    Raises:
        ConfigError: nothing to train, or what is given has no parameters; a layer that the model
            does not have.
    """
    if layer_decay is not None:
        return _by_layer(model, weight_decay, lr, layer_decay, layers)
    if layers is not None:
        raise ConfigError("layers is for layer_decay: write e.g. layer_decay=0.75 with it")
    return _by_decay(model, weight_decay)


def _by_decay(model: Parameters, weight_decay: float) -> list[dict[str, Any]]:
    """The groups of `parameter_groups` without layers."""
    weight_decay = _options.not_negative("weight_decay", weight_decay, "0.01")
    of_norms: set[int] = set()
    if isinstance(model, nn.Module):
        of_norms = {
            id(p) for m in model.modules() if isinstance(m, _NORMS) for p in m.parameters(False)
        }
    trainable = [p for p in _parameters(model) if p.requires_grad]
    if not trainable:
        raise ConfigError("the model has no trainable parameter: set requires_grad=True on some")
    if any(is_lazy(p) for p in trainable):
        raise ConfigError(
            "the model has lazy layers, whose parameters have no shape yet: run one batch through "
            "it, model(inputs), before you make the optimizer"
        )
    if weight_decay == 0:
        return [{"params": trainable, "weight_decay": 0.0}]
    decayed = [p for p in trainable if p.ndim >= 2 and id(p) not in of_norms]
    kept = [p for p in trainable if p.ndim < 2 or id(p) in of_norms]
    groups = [
        {"params": decayed, "weight_decay": weight_decay, "name": "decay"},
        {"params": kept, "weight_decay": 0.0, "name": "no_decay"},
    ]
    return [group for group in groups if group["params"]]


def _by_layer(
    model: Any, weight_decay: float, lr: float | None, decay: float, layers: Any
) -> list[dict[str, Any]]:
    """The groups of `parameter_groups`, cut by layer, each with its learning rate."""
    if _options.share("layer_decay", decay, example="0.75") == 0:
        raise ConfigError(f"layer_decay={decay} must be above 0: write e.g. layer_decay=0.75")
    if not isinstance(model, nn.Module):
        raise ConfigError(
            "layer_decay needs the model, whose layers say how deep a parameter is: give the model "
            "in place of its parameters"
        )
    if lr is None:
        raise ConfigError(
            "layer_decay needs the learning rate: write parameter_groups(model, weight_decay, "
            f"lr=1e-3, layer_decay={decay})"
        )
    found = layer_scales(model, decay, layers)
    cut: dict[tuple[int, int], dict[str, Any]] = {}
    for kind, group in enumerate(_by_decay(model, weight_decay)):
        for parameter in group["params"]:
            layer, scale = found[id(parameter)]
            suffix = f"/{group['name']}" if "name" in group else ""
            new = {**group, "params": [], "lr": lr * scale, "name": f"layer_{layer}{suffix}"}
            cut.setdefault((layer, kind), new)["params"].append(parameter)
    return [cut[key] for key in sorted(cut)]


def _parameters(model: Any) -> list[Tensor]:
    """The parameters of a module or of an iterable, each a leaf and each once."""
    if isinstance(model, nn.Module):
        return list(model.parameters())
    _check_iterable(model)
    found: dict[int, Tensor] = {}
    for part in model:
        if not isinstance(part, Tensor):
            raise ConfigError(_no_parameter(part))
        if part.requires_grad and not part.is_leaf:
            raise ConfigError(
                f"a tensor of shape {tuple(part.shape)} among the parameters is the result of a "
                "computation, which no update can change: give the nn.Parameter that it was "
                "computed from"
            )
        found[id(part)] = part
    return list(found.values())


def _check_iterable(model: Any) -> None:
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise ConfigError(
            f"the optimizer was given the class {model.__name__}: make a model first, "
            f"model = {model.__name__}(...), and give that"
        )
    if isinstance(model, Tensor):
        raise ConfigError("the optimizer was given one tensor: write [tensor], a list of it")
    if isinstance(model, Optimizer):
        raise ConfigError(
            f"the optimizer was given {_options.kind_of(model)}, which is an optimizer already: "
            "give that to Step, or the model here"
        )
    if not isinstance(model, Iterable) or isinstance(model, (str, bytes)):
        raise ConfigError(
            f"the optimizer was given {_options.shown(model)}: give the model, or a list of its "
            "parameters"
        )


def _no_parameter(part: Any) -> str:
    if isinstance(part, dict):
        return (
            "the optimizer was given groups of parameters: build it with torch, e.g. "
            "torch.optim.AdamW(groups), or give the model"
        )
    if isinstance(part, nn.Module):
        return (
            "the optimizer was given several modules: write nn.ModuleList([...]) around them, and "
            "give that"
        )
    if isinstance(part, tuple):
        return "the optimizer was given named parameters: write model.parameters(), or the model"
    return (
        f"the optimizer was given {_options.shown(part)} as a parameter: write the model, or "
        "model.parameters()"
    )


def _adam_options(betas: Any, eps: Any) -> dict[str, Any]:
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ConfigError(
            f"betas={_options.shown(betas)} must be two numbers: write betas=(0.9, 0.999)"
        )
    first, second = (
        _options.share(f"betas[{k}]", beta, below_one=True, example=example)
        for k, (beta, example) in enumerate(zip(betas, ("0.9", "0.999"), strict=True))
    )
    return {"betas": (first, second), "eps": _options.not_negative("eps", eps, "1e-8")}


def _build(
    kind: type[_O],
    model: Parameters,
    lr: float,
    weight_decay: float,
    depth: dict[str, Any],
    **options: Any,
) -> _O:
    lr = _options.positive("lr", lr, "1e-3")
    groups = parameter_groups(model, weight_decay, lr=lr, **depth)
    return _fused(kind, groups, _has_sparse(model), lr=lr, **options)


def _has_sparse(model: Any) -> bool:
    """Whether an embedding of it has sparse gradients."""
    return isinstance(model, nn.Module) and any(
        isinstance(m, (nn.Embedding, nn.EmbeddingBag)) and m.sparse for m in model.modules()
    )


def _fused(kind: type[_O], groups: list[dict[str, Any]], sparse: bool, **options: Any) -> _O:
    """The optimizer, fused where it can be."""
    # Torch accepts complex parameters and sparse gradients here, and fails at the first step.
    if not sparse and all(p.is_floating_point() for group in groups for p in group["params"]):
        try:
            return kind(groups, fused=True, **options)
        except RuntimeError:
            pass  # no fused implementation for this device: torch's own choice
    return kind(groups, **options)
