"""The graphs of a compiled step: of a whole update, of one micro-batch of it, and of its end."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from trueloop.records import LossOutput
from trueloop.step import lowering, update_graph
from trueloop.step.base import StepBase
from trueloop.step.lowering import Lowered, NotCapturedError, NotCompiledError, Traced
from trueloop.step.update_graph import Bound, UpdateSpec


class StateMissingError(Exception):
    """The optimizer has no state yet for a parameter that has a gradient."""


class ReplacedError(StateMissingError):
    """The model has other parameters than those that the graph was made for."""


class Shared:
    """The state that all graphs of a step share: the numbers of the update, and the sums of
    gradients."""

    def __init__(self, step: StepBase) -> None:
        self.step = step
        self.sums: dict[nn.Parameter, Tensor] = {}
        """For each parameter the sum of a window's gradients, in memory that stays."""
        self._facts: list[Any] = []
        self._plan = UpdateSpec((), (), clips_norm=False, clips_value=False)
        self.hyper = torch.empty(())
        """The numbers of this update, as `update_graph.apply` has them."""
        self._numbers: dict[str, tuple[float, Tensor]] = {}

    def plan(self) -> UpdateSpec:
        """The arithmetic of this update; its numbers are then in `hyper`."""
        step = self.step
        optimizer, limits = step.optimizers[0], (step.clip_norm, step.clip_value)
        facts: list[Any] = [limits, *update_graph.facts_of(optimizer)]
        if facts == self._facts:
            return self._plan
        groups = facts[1:]
        rules = tuple([update_graph.rule_of(optimizer, each) for each in groups])
        rows = [update_graph.numbers_of(rule, each) for rule, each in zip(rules, groups)]  # noqa: B905
        rows.append((step.clip_norm or 0.0, step.clip_value or 0.0, 0.0, 0.0, 0.0))
        plan = UpdateSpec(rules, (), limits[0] is not None, limits[1] is not None)
        if plan != self._plan:
            self._plan = plan
        is_new = len(facts) != len(self._facts)
        self._facts, self.hyper = facts, self._on_device(rows, None if is_new else self.hyper)
        return self._plan

    def number(self, name: str, value: float | Tensor) -> Tensor:
        """A number of the window as a scalar on the device, float64; on CUDA in memory that stays,
        as a graph that was recorded reads it there."""
        kept = self._numbers.get(name)
        if isinstance(value, Tensor):
            if not value.is_cuda:
                return value.double()
            held = torch.empty_like(value, dtype=torch.float64) if kept is None else kept[1]
            self._numbers[name] = (math.nan, held)
            return held.copy_(value)
        value = float(value)
        if kept is None or kept[0] != value:
            into = None if kept is None else kept[1]
            kept = self._numbers[name] = (value, self._on_device(value, into))
        return kept[1]

    def _on_device(self, numbers: Any, into: Tensor | None) -> Tensor:
        """As float64, in memory that stays; on CUDA without a wait."""
        device = self.step.device
        if device.type != "cuda":
            if into is None:
                return torch.tensor(numbers, dtype=torch.float64, device=device)
            into.numpy()[...] = numbers
            return into
        pinned = torch.tensor(numbers, dtype=torch.float64, pin_memory=True)
        if into is None:
            return pinned.to(device, non_blocking=True)
        return into.copy_(pinned, non_blocking=True)

    def scale(self) -> list[Tensor]:
        """The factor of the loss under fp16; None with other precisions."""
        scale = self.step.precision.scale()
        return [] if scale is None else [scale]

    def sum_of(self, parameter: nn.Parameter) -> Tensor:
        """Where the sum of its gradients is kept."""
        found = self.sums.get(parameter)
        if found is None or found.shape != parameter.shape:
            found = self.sums[parameter] = torch.zeros_like(parameter.detach())
        return found


class TracedForward:
    """One run of a traced forward within the graph of it all: the outputs, and the loss and its
    count as they are on the way."""

    def __init__(self, graph: Any, inputs: Sequence[Tensor]) -> None:
        self.loss = torch.empty(())
        self.count: Any = None
        forward, marked = self, marker()

        class LossInterpreter(torch.fx.Interpreter):
            def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
                if target is not marked:
                    return super().call_function(target, args, kwargs)
                forward.loss, forward.count = args
                return args[0].detach()

        with torch.enable_grad():
            found = LossInterpreter(graph).run(*inputs)
        self.outputs = [each.detach() for each in found]


@cache
def marker() -> Callable[[Tensor, Any], Tensor]:
    """A function that dynamo leaves in its graph, to say which tensor is the loss."""

    def marked_loss(loss: Tensor, count: Any) -> Tensor:
        return loss.detach()

    torch.compiler.allow_in_graph(marked_loss)  # type: ignore[no-untyped-call]
    return marked_loss


def unpacked(returned: Any, asks: bool) -> tuple[Tensor, Any, dict[str, Any], Any, Any]:
    """The loss, its count (`asks`: also that which a callable gives), parts, outputs and targets of
    what a `loss_fn` returned."""
    output = returned if isinstance(returned, LossOutput) else LossOutput._of_tuple(returned)
    count = output.count
    if callable(count):
        count = count() if asks else None
    parts = dict(output.parts) if output.parts else {}
    return output.loss.reshape(()), count, parts, output.outputs, output.targets


_CHANGES = (
    "a plain number that the forward or the loss reads changes from call to call (make it a tensor)"
)


def refuse(graph: Any, inputs: Sequence[Any]) -> None:
    """Raise `NotCapturedError` for what would be lost, or is not known, in a graph of the whole."""
    if not all(isinstance(each, Tensor) for each in inputs):
        raise NotCapturedError(_CHANGES)
    for node in graph.graph.nodes:
        if node.op == "call_method" and node.target in ("item", "tolist"):
            if node.args[0].op == "placeholder":  # how dynamo hands a number over
                raise NotCapturedError(_CHANGES)
            raise NotCapturedError("the forward or the loss reads a tensor's value (.item())")
        if node.op == "call_function" and "checkpoint" in str(node.target):
            raise NotCapturedError("activations are recomputed (torch.utils.checkpoint)")


def gradients_of(
    loss: Tensor, leaves: Sequence[Tensor], *factors: Tensor | None
) -> list[Tensor | None]:
    """Of each leaf the gradient of the loss times the factors, None for one that the loss does not
    depend on."""
    if not loss.requires_grad or not leaves:
        raise NotCapturedError("the loss does not depend on the model's parameters")
    with torch.enable_grad():
        for factor in factors:
            loss = loss if factor is None else loss * factor.to(loss.dtype)
        found = torch.autograd.grad(loss, list(leaves), allow_unused=True)
    if any(each is not None and each.layout != torch.strided for each in found):
        raise NotCompiledError("there are sparse gradients")
    return list(found)


def apart(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Outputs that share no memory with an input, nor with each other."""
    seen = {each.untyped_storage()._cdata for each in inputs}
    found = []
    for each in outputs:
        key = each.untyped_storage()._cdata
        found.append(each.clone() if key in seen else each)
        seen.add(key)
    return found


class Version:
    """The state of one graph of dynamo's."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        """Those of the optimizer that the graph reads."""
        self.used: list[int] = []
        """Which of them get a gradient; known once the graph is made."""
        self.names: list[str] = []
        """Of these."""
        self.bound: Bound | None = None

    def with_gradient(self) -> list[nn.Parameter]:
        return [self.parameters[k] for k in self.used]


class BatchGraph:
    """Forward, loss and backward of one shape of batch; a subclass says what is done with the
    gradients.

    Called with a batch; then `loss`, `count`, `parts`, `outputs` and `targets` are what the loss
    function gave. Raises `StateMissingError`, `NotCapturedError` or an error of the compiler's
    before anything has been done.
    """

    def __init__(self, shared: Shared, *, outputs: bool, samples: int) -> None:
        self.shared = shared
        self.samples = samples
        self.version: Version
        """The one that ran last."""
        step, marked = shared.step, marker()
        asks, autocast = step.accumulate > 1, step.precision.autocast
        loss_fn, model = step.loss_fn, step.model

        def forward(batch: Any) -> Any:
            with autocast():
                returned = loss_fn(model, batch)
            loss, count, parts, predicted, targets = unpacked(returned, asks)
            if not outputs:
                predicted = targets = None
            return marked(loss, count), count, parts, predicted, targets

        self._traced = Traced(forward, self._lower)

    @property
    def called(self) -> bool:
        """Whether the last call came as far as to run what was compiled."""
        return self._traced.called

    def __call__(self, batch: Any) -> None:
        self.loss, self.count, self.parts, self.outputs, self.targets = self._traced(batch)

    def finds(self, batch: Any) -> bool:
        """Whether what was compiled is right for such a batch, as far as that is known here."""
        return self._traced.finds(batch)

    def extras(self, version: Version) -> list[Tensor]:
        """The inputs of the graph beside those of the forward."""
        raise NotImplementedError

    def results(
        self,
        version: Version,
        forward: TracedForward,
        leaves: list[Tensor],
        given: list[Tensor],
        extras: list[Tensor],
    ) -> list[Tensor]:
        """Part of the graph: from the loss to what `keep` takes over. `leaves` and `given` are the
        version's parameters, once to take gradients of, and once to write into."""
        raise NotImplementedError

    def keep(self, version: Version, results: Sequence[Tensor]) -> None:
        """Take over what `results` has returned."""
        raise NotImplementedError

    def _lower(self, graph: Any, inputs: Sequence[Tensor]) -> Lowered:
        refuse(graph, inputs)
        step = self.shared.step
        position = {id(each): k for k, each in enumerate(inputs)}
        held = step._gradients.parameters
        version = Version([p for p in held if p.requires_grad and id(p) in position])
        places = [position[id(p)] for p in version.parameters]
        count = len(inputs)

        def function(*flat: Tensor) -> list[Tensor]:
            given = list(flat[:count])
            for place in places:
                given[place] = given[place].detach().requires_grad_()
            forward = TracedForward(graph, given)
            leaves = [given[place] for place in places]
            parameters = [flat[place] for place in places]
            results = self.results(version, forward, leaves, parameters, list(flat[count:]))
            self._number = len(results)
            return [*apart(forward.outputs, flat), *results]

        tensors = [*inputs, *self.extras(version)]
        fixed = {id(each) for each in (*held, *step.model.buffers())}
        static = [k for k, each in enumerate(tensors) if k >= count or id(each) in fixed]
        lowered = lowering.LOWER(function, tensors, static)
        version.names = step._gradients.names_of(version.with_gradient())
        number = self._number
        changed = [each for each in inputs if id(each) in fixed]

        def run(given: list[Tensor]) -> Sequence[Tensor]:
            if not all(map(operator.is_, [given[k] for k in places], version.parameters)):
                raise ReplacedError
            found = lowered([*given, *self.extras(version)])
            torch.autograd.graph.increment_version(changed)
            self.version = version
            border = len(found) - number
            self.keep(version, found[border:])
            return found[:border]

        return run


class UpdateGraph(BatchGraph):
    """A whole update of one micro-batch. After a call, `norm` and `norms` are the gradient's; where
    the norm is not finite, no parameter and no state has changed."""

    def __init__(self, shared: Shared, plan: UpdateSpec, *, outputs: bool, samples: int) -> None:
        self._plan = plan
        self.norm = self.norms = torch.empty(())
        super().__init__(shared, outputs=outputs, samples=samples)

    def extras(self, version: Version) -> list[Tensor]:
        bound, rules = version.bound, self._plan.rules
        if bound is None:
            bound = Bound(rules, self.shared.step.optimizers[0], version.parameters)
            version.bound = bound
        if not bound.refresh():
            raise StateMissingError
        return [self.shared.hyper, *self.shared.scale(), *bound.tensors]

    def results(
        self,
        version: Version,
        forward: TracedForward,
        leaves: list[Tensor],
        given: list[Tensor],
        extras: list[Tensor],
    ) -> list[Tensor]:
        assert version.bound is not None
        hyper, scale = extras.pop(0), extras.pop(0) if self.shared.scale() else None
        gradients = gradients_of(forward.loss, leaves, scale)
        used = version.used = [k for k, each in enumerate(gradients) if each is not None]
        if not all(version.bound.is_whole[k] for k in used):
            raise StateMissingError
        states = version.bound.nested(extras)
        outcome = update_graph.apply(
            self._plan._replace(groups=tuple(version.bound.groups[k] for k in used)),
            [given[k] for k in used],
            [each for each in gradients if each is not None],
            [states[k] for k in used],
            hyper,
            _correction_of(forward.count, hyper),
            scale,
        )
        return list(outcome)

    def keep(self, version: Version, results: Sequence[Tensor]) -> None:
        self.norm, self.norms = results


def _correction_of(count: Any, like: Tensor) -> Tensor | None:
    """NaN for a count of 0, as the gradient of a mean over nothing; None for 1."""
    if isinstance(count, Tensor):
        count = count.detach().reshape(())
        is_good = (count > 0) & torch.isfinite(count)
        return torch.where(is_good, like.new_ones(()), like.new_full((), math.nan))
    if count is not None and not count > 0:
        raise NotCapturedError("the count beside the loss is 0")
    return None


class SumGraph(BatchGraph):
    """One micro-batch of a window: its gradient, weighted, is added to `Shared.sums`; `begins` says
    before the call whether it is the window's first."""

    def __init__(self, shared: Shared, *, outputs: bool, samples: int) -> None:
        self.reference = torch.empty(())
        """The count of the window's first micro-batch, NaN in that one itself."""
        super().__init__(shared, outputs=outputs, samples=samples)

    def extras(self, version: Version) -> list[Tensor]:
        sums = [self.shared.sum_of(p) for p in version.parameters]
        return [self.reference, *self.shared.scale(), *sums]

    def results(
        self,
        version: Version,
        forward: TracedForward,
        leaves: list[Tensor],
        given: list[Tensor],
        extras: list[Tensor],
    ) -> list[Tensor]:
        reference, scale = extras.pop(0), extras.pop(0) if self.shared.scale() else None
        begins = torch.isnan(reference)
        weight, weightless = self._weight(forward.count, reference, begins)
        gradients = gradients_of(forward.loss, leaves, weight, scale)
        version.used = [k for k, each in enumerate(gradients) if each is not None]
        for total, gradient in zip(extras, gradients, strict=True):
            if gradient is None:
                continue
            if weightless is not None:
                gradient = torch.where(weightless, torch.zeros_like(gradient), gradient)
            total.copy_(torch.where(begins, gradient, total + gradient))
        return []

    def _weight(
        self, count: Any, reference: Tensor, begins: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """The weight of the micro-batch, as `Window.add` has it, and whether that is 0."""
        size, is_known = self.shared.step.accumulate, not isinstance(count, Tensor)
        if size == 1:
            return None, None
        count = self.samples if count is None else count
        if not isinstance(count, Tensor):
            if not count > 0:
                raise NotCapturedError("the count beside the loss is 0")
            count = reference.new_full((), float(count))
        n = count.detach().reshape(()).double()
        first = torch.where(begins, n, reference)
        first = torch.where(first > 0, first, torch.ones_like(first))
        weight = torch.where(n == first, torch.full_like(n, 1 / size), n / (size * first))
        return weight, None if is_known else n == 0

    def keep(self, version: Version, results: Sequence[Tensor]) -> None:
        """The sums are where they were."""


class EndGraph:
    """The end of a window whose gradients are in `Shared.sums`: from the division to the
    optimizer's arithmetic. After a call, `norm` and `norms` are as an `UpdateGraph` has them."""

    def __init__(
        self, shared: Shared, plan: UpdateSpec, parameters: Sequence[nn.Parameter]
    ) -> None:
        self.shared = shared
        self.parameters = list(parameters)
        self._bound = Bound(plan.rules, shared.step.optimizers[0], self.parameters)
        self._plan = plan._replace(groups=tuple(self._bound.groups))
        self.names = shared.step._gradients.names_of(self.parameters)
        self._lowered: Lowered | None = None
        self.norm = self.norms = torch.empty(())

    def __call__(self) -> None:
        if not all(self._bound.is_whole) or not self._bound.refresh():
            raise StateMissingError
        shared = self.shared
        sums = [shared.sum_of(p) for p in self.parameters]
        numbers = [
            shared.hyper,
            shared.number("correction", shared.step._window.correction()),
            *shared.scale(),
        ]
        flat = [*self.parameters, *sums, *numbers, *self._bound.tensors]
        with torch.no_grad():
            if self._lowered is None:
                self._lowered = lowering.LOWER(self._function, flat, range(len(flat)))
            self.norm, self.norms = self._lowered(list(flat))
        torch.autograd.graph.increment_version(self.parameters)

    def _function(self, *flat: Tensor) -> list[Tensor]:
        rest, count = list(flat), len(self.parameters)
        parameters, sums, rest = rest[:count], rest[count : 2 * count], rest[2 * count :]
        hyper, correction = rest.pop(0), rest.pop(0)
        scale = rest.pop(0) if self.shared.scale() else None
        states = self._bound.nested(rest)
        return list(
            update_graph.apply(self._plan, parameters, sums, states, hyper, correction, scale)
        )
