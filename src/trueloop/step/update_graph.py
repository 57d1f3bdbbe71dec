"""The optimizer's update as arithmetic on tensors, to be traced into a graph: unscale, divide,
norm, clip, and what Adam, AdamW and SGD do.

The formulas are those of `torch.optim`'s single-tensor implementations, with the bias corrections
in double precision, as there. Every number that may change from update to update (learning rate,
betas, weight decay, clip limits) is an entry of a tensor, so that no schedule changes the graph.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

COLUMNS = 5
"""Numbers of a parameter group in the tensor of hyperparameters."""
KINDS = (Adam, AdamW, SGD)
"""Optimizers whose arithmetic is here; subclasses may do anything, and are not."""


class GroupSpec(NamedTuple):
    """The options of a parameter group that decide which arithmetic there is; all others are
    numbers."""

    kind: str
    """`adam` or `sgd`."""
    decoupled: bool = False
    """AdamW's weight decay."""
    amsgrad: bool = False
    momentum: bool = False
    nesterov: bool = False
    maximize: bool = False

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the state's tensors, as `torch.optim` has them."""
        if self.kind == "sgd":
            return ("momentum_buffer",) if self.momentum else ()
        names = ("exp_avg", "exp_avg_sq", "step")
        return (*names, "max_exp_avg_sq") if self.amsgrad else names


Facts = tuple[Any, ...]
"""The rule of a parameter group's update, and its numbers."""
_ADAM = operator.itemgetter("lr", "betas", "weight_decay", "eps", "amsgrad", "maximize")
_SGD = operator.itemgetter("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")


def facts_of(optimizer: Optimizer) -> list[Facts]:
    """Of each group of one of `KINDS`; cheap, as it is asked for each update."""
    if isinstance(optimizer, SGD):
        found = [_SGD(group) for group in optimizer.param_groups]
    else:
        decoupled = isinstance(optimizer, AdamW)
        found = [
            (*_ADAM(group), decoupled or group.get("decoupled_weight_decay", False))
            for group in optimizer.param_groups
        ]
    return [each if type(each[0]) is float else _settled(*each) for each in found]


def _settled(lr: Any, *rest: Any) -> Facts:
    """Without what may change and stay the same object."""
    return (float(lr), *rest)


def rule_of(optimizer: Optimizer, facts: Facts) -> GroupSpec:
    """The arithmetic of a group."""
    if isinstance(optimizer, SGD):
        _, momentum, _, _, nesterov, maximize = facts
        return GroupSpec("sgd", momentum=momentum != 0, nesterov=nesterov, maximize=maximize)
    *_, amsgrad, maximize, decoupled = facts
    return GroupSpec("adam", decoupled, amsgrad=amsgrad, maximize=maximize)


def numbers_of(rule: GroupSpec, facts: Facts) -> tuple[float, ...]:
    """A group's row of the tensor of hyperparameters."""
    if rule.kind == "sgd":
        return (*facts[:4], 0.0)
    lr, betas, decay, eps, *_ = facts
    return (lr, *betas, decay, eps)


class UpdateSpec(NamedTuple):
    """Which parameters an update changes, and how; the graph is made for it."""

    rules: tuple[GroupSpec, ...]
    """Of each parameter group."""
    groups: tuple[int, ...]
    """The group of each parameter that has a gradient."""
    clips_norm: bool
    clips_value: bool


class Outcome(NamedTuple):
    """The results of an update."""

    norm: Tensor
    """Global norm before clipping; not finite: nothing was changed."""
    norms: Tensor
    """Of each gradient, before the correction."""


def realised(value: Tensor) -> Tensor:
    """`value` in new memory. The compiler would compute it again for every element of what it is
    multiplied with, a power of beta included."""
    value = value.contiguous()
    return value.as_strided(value.shape, value.stride())


def apply(
    plan: UpdateSpec,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    states: Sequence[Sequence[Tensor]],
    hyper: Tensor,
    correction: Tensor | None = None,
    scale: Tensor | None = None,
) -> Outcome:
    """Write the update into `parameters` and `states`, unless the norm is not finite.

    `hyper` is (groups + 1, COLUMNS), float64: a row for each group, then the limits. `correction`
    multiplies the gradients (None: 1), which `scale` had multiplied.
    """
    limits = hyper[-1]
    norms = torch.stack([torch.linalg.vector_norm(wide(each)) for each in gradients])
    factor = limits.new_ones(())
    if scale is not None:
        factor = 1.0 / scale.double()
        norms = norms * factor.to(norms.dtype)
    norm = torch.linalg.vector_norm(norms)
    if correction is not None:
        norm = norm * correction.to(norm.dtype)
        factor = factor * correction
    admitted = torch.isfinite(norm)
    if plan.clips_norm:
        factor = factor * torch.clamp(limits[0] / (norm.double() + 1e-6), max=1.0)
    factor, admitted = realised(factor.reshape(1))[0], realised(admitted.reshape(1))[0]
    tables = _tables(plan, states, hyper)
    for k, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
        g = wide(gradient)
        g = g * factor.to(g.dtype)
        if plan.clips_value:
            limit = limits[1].to(g.dtype)
            g = torch.minimum(torch.maximum(g, -limit), limit)
        rule = plan.rules[plan.groups[k]]
        change = _adam if rule.kind == "adam" else _sgd
        numbers = [each.to(g.dtype) for each in tables[k]]
        new, state = change(rule, wide(parameter), g, states[k], numbers)
        written = [each for j, each in enumerate(states[k]) if rule.state[j] != "step"]
        for old, value in zip((parameter, *written), (new, *state), strict=True):
            old.copy_(torch.where(admitted, value.to(old.dtype), old))
    for step in _steps(plan, states):
        step.copy_(step + admitted)
    return Outcome(norm, norms)


def wide(value: Tensor) -> Tensor:
    """In float32 at least, which is what torch's fused optimizers compute in."""
    return value.to(torch.promote_types(value.dtype, torch.float32))


def _steps(plan: UpdateSpec, states: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    adam = [plan.rules[group].kind == "adam" for group in plan.groups]
    return [state[2] for state, is_adam in zip(states, adam, strict=True) if is_adam]


def _tables(
    plan: UpdateSpec, states: Sequence[Sequence[Tensor]], hyper: Tensor
) -> list[list[Tensor]]:
    """For each parameter the numbers of its update, computed in float64, once for a group."""
    found: list[list[Tensor]] = [[]] * len(plan.groups)
    for number, rule in enumerate(plan.rules):
        members = [k for k, group in enumerate(plan.groups) if group == number]
        if not members:
            continue
        if rule.kind == "sgd":
            table = _sgd_table(hyper[number]).expand(len(members), -1)
        else:
            steps = torch.stack([states[k][2] for k in members]).double() + 1
            table = _adam_table(hyper[number], steps)
        for k, numbers in zip(members, table.unbind(), strict=True):
            found[k] = list(numbers.unbind())
    return found


def _adam_table(row: Tensor, steps: Tensor) -> Tensor:
    """A row for each of the `steps` that its parameter will have made: lr / bias correction 1,
    1 / √(bias correction 2), eps, 1 - beta1, beta2, 1 - beta2, decay, 1 - lr · decay."""
    lr, beta1, beta2, decay, eps = row.unbind()
    one = torch.ones_like(steps)
    corrected = [lr / (1 - beta1**steps), (1 - beta2**steps).rsqrt()]
    plain = [eps, 1 - beta1, beta2, 1 - beta2, decay, 1 - lr * decay]
    return realised(torch.stack([*corrected, *(each * one for each in plain)], 1))


def _sgd_table(row: Tensor) -> Tensor:
    """One row: lr, momentum, 1 - dampening, decay."""
    lr, momentum, dampening, decay, _ = row.unbind()
    return realised(torch.stack([lr, momentum, 1 - dampening, decay])[None])


_New = tuple[Tensor, tuple[Tensor, ...]]


def _adam(
    rule: GroupSpec, p: Tensor, g: Tensor, state: Sequence[Tensor], numbers: Sequence[Tensor]
) -> _New:
    """The parameter, and the state that changes: the moments, and amsgrad's largest one."""
    rate, root, eps, share, beta2, square_share, decay, kept = numbers
    g = -g if rule.maximize else g
    if rule.decoupled:
        p = p * kept
    else:
        g = g + decay * p
    mean = wide(state[0])
    mean = mean + share * (g - mean)
    square = beta2 * wide(state[1]) + square_share * g * g
    if not rule.amsgrad:
        return p - rate * (mean / (square.sqrt() * root + eps)), (mean, square)
    largest = torch.maximum(wide(state[3]), square)
    return p - rate * (mean / (largest.sqrt() * root + eps)), (mean, square, largest)


def _sgd(
    rule: GroupSpec, p: Tensor, g: Tensor, state: Sequence[Tensor], numbers: Sequence[Tensor]
) -> _New:
    lr, momentum, share, decay = numbers
    g = -g if rule.maximize else g
    g = g + decay * p
    if not rule.momentum:
        return p - lr * g, ()
    buffer = momentum * wide(state[0]) + share * g
    return p - lr * (g + momentum * buffer if rule.nesterov else buffer), (buffer,)


class Bound:
    """The state that an optimizer has for some parameters, in the user's own tensors."""

    def __init__(
        self, rules: Sequence[GroupSpec], optimizer: Optimizer, parameters: Sequence[nn.Parameter]
    ) -> None:
        self._optimizer = optimizer
        self._parameters = parameters
        group_of = {p: k for k, group in enumerate(optimizer.param_groups) for p in group["params"]}
        self.groups = [group_of[p] for p in parameters]
        """The parameter group of each."""
        self.tensors: list[Tensor] = []
        """Those of the state, each parameter's after the other's."""
        self._seen: tuple[int, ...] = ()
        self._state: Any = None
        self._places: list[tuple[dict[str, Any], str]] = []
        names = [rules[group].state for group in self.groups]
        found = [optimizer.state.get(p, {}) for p in parameters]
        self.is_whole = [
            all(map(torch.is_tensor, map(state.get, wanted)))
            for wanted, state in zip(names, found, strict=True)
        ]
        """Whether a parameter's state is there: the optimizer's first step with its gradient makes
        it."""
        self._names = [
            wanted if whole else () for wanted, whole in zip(names, self.is_whole, strict=True)
        ]

    def refresh(self) -> bool:
        """Look the tensors up again, as others may have been loaded; whether they are there."""
        state = self._optimizer.state
        # Parameters are slow to look up. What is held here keeps its id.
        if state is not self._state or tuple(map(id, state.values())) != self._seen:
            self._places = [
                (state.get(p, {}), name)
                for p, names in zip(self._parameters, self._names, strict=True)
                for name in names
            ]
            if not all(torch.is_tensor(each.get(name)) for each, name in self._places):
                return False
            self._state, self._seen = state, tuple(map(id, state.values()))
        self.tensors = [each[name] for each, name in self._places]
        return True

    def nested(self, flat: Sequence[Tensor]) -> list[list[Tensor]]:
        """Tensors like those of the state, flat as they are, for each parameter its own."""
        rest = iter(flat)
        return [[next(rest) for _ in names] for names in self._names]
