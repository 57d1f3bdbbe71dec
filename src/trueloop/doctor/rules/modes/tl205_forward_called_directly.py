"""`model.forward(x)` skips the module's hooks.

## What it does

Finds calls of a module's `forward` method from outside of any module. Where the program has set a
hook that such a call skips, this is a warning; otherwise it is advice.

## Why it breaks training

`model(x)` runs the hooks and then `forward`; `model.forward(x)` runs only `forward`. Hooks are what
the program registers itself with `register_forward_hook`; the older `weight_norm` and
`spectral_norm` compute the weight again in one, pruning applies its mask in one, `fully_shard`
(FSDP2) gathers the parameters in one, and `module.compile()` puts the compiled code in their place.
Without any of these both calls do the same today, and a hook that is added later is silently
skipped. `DistributedDataParallel`, `DataParallel`, `FullyShardedDataParallel` and
`torch.compile(model)` work in their own `forward`, which is not skipped.

## Wrong

```python
model.register_forward_hook(count_calls)
outputs = model.forward(inputs)
```

## Right

```python
model.register_forward_hook(count_calls)
outputs = model(inputs)
```

## Sources

- PyTorch,
  [Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward):
  "one should call the Module instance afterwards instead of this since the former takes care of
  running the registered hooks while the latter silently ignores them"

## How it is detected

The call is written `<something>.forward(...)`, and it is certainly a module: the program creates
it, calls `train()` or `eval()` on it, or sets its parameters or device, and trains it. A warning
needs a hook on that very module, or on all modules, which is set before the call and not removed.
In a method of a module, a call of a part's `forward` (`self.encoder.forward(x)`) is reported only
with a hook on that very part. Not reported: `super().forward(x)`, a `forward` of a different class
that delegates, hooks, objects with a `forward` that are not modules, and functions that wrap and
replace a `forward`.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueloop.doctor.model.events import (
    Backward,
    Ended,
    HookSet,
    Made,
    ModelForward,
    ModeSet,
    Moved,
    Used,
)
from trueloop.doctor.model.findings import Location, Remedy, Replace
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.passes import Forwards

_SKIPPED = {
    "fully_shard": "the hooks of `fully_shard`, which gather the parameters and average gradients",
    "compile": "the compiled code: the module runs as if it had not been compiled",
    "weight_norm": "the hook of `weight_norm`, which computes the weight",
    "spectral_norm": "the hook of `spectral_norm`, which computes the weight",
    "register_forward_hook": "the forward hook that is registered on it",
    "register_forward_pre_hook": "the hook before its forward that is registered on it",
}
_OF_ALL = "the hook that is registered for all modules"
_CALLED = "torch.nn.Module.forward"
_FIX = "Call the module itself: `{}(...)`."
_PRUNING = "the hook that applies the pruning mask"


class ForwardCalledDirectly(Rule):
    code = "TL205"
    hygiene = True

    def __init__(self) -> None:
        super().__init__()
        self.modules: set[Model] = set()
        """Used as only a module is."""
        self.calls: list[tuple[ModelForward, HookSet | None]] = []
        """With the hook that each skips."""
        self.inner: list[tuple[Location, Model, HookSet]] = []
        """The same from inside of modules, with a hook that is skipped."""
        self.forwards = Forwards()
        self.trained: set[Model] = set()
        self.switched: set[Model] = set()
        """Put into a mode: nothing but a module has one."""
        self.hooks: dict[Model | None, HookSet] = {}

    def on_hook_set(self, event: HookSet) -> None:
        if event.removed:
            self.hooks.pop(event.model, None)
        else:
            self.hooks[event.model] = event

    def on_mode_set(self, event: ModeSet) -> None:
        self.switched.add(event.model)

    def on_moved(self, event: Moved) -> None:
        self.modules.add(event.model)

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self.modules.update(event.thing.models)

    def on_model_forward(self, event: ModelForward) -> None:
        self.forwards.add(event)
        within = event.place.function
        if event.direct and "hook" not in within and not within.endswith(".forward"):
            self.calls.append((event, self.hooks.get(event.model, self.hooks.get(None))))

    def on_used(self, event: Used) -> None:
        """`self.encoder.forward(x)` in a module's own method."""
        hook = self.hooks.get(event.subject) if event.what == _CALLED else None
        if hook is not None and "hook" not in event.place.function:
            self.inner.append((event.place, event.subject, hook))

    def on_backward(self, event: Backward) -> None:
        used = self.forwards.through(event)
        self.trained.update(self.forwards.by_serial[serial].model for serial in used)

    def on_ended(self, event: Ended) -> None:
        # Calls that a hook misses come first: of one line, only one finding is kept.
        for call, hook in sorted(self.calls, key=lambda each: each[1] is None):
            used = call.model in self.modules and call.model in self.trained
            if call.model.known or used or call.model in self.switched:
                self._report(call, hook)

        for place, model, hook in self.inner:
            self._report_skipped(place, model.name, hook)

    def _report(self, call: ModelForward, hook: HookSet | None) -> None:
        name = call.spelled or call.model.name
        remedies = [Replace(call.callee, name)] if call.spelled and call.callee.line else []
        if hook is not None:
            self._report_skipped(call.place, name, hook, remedies)
            return
        self.report(
            call.place,
            f"{_shown(name)} runs `forward` without the module's hooks. None is set here, so both"
            " calls do the same; one that is added later would be skipped.",
            severity="advice",
            fix=_FIX.format(name or "model"),
            remedies=remedies,
        )

    def _report_skipped(
        self, place: Location, name: str, hook: HookSet, remedies: Sequence[Remedy] = ()
    ) -> None:
        skipped = _PRUNING if hook.model is not None else _OF_ALL
        self.report(
            place,
            f"{_shown(name)} skips {_SKIPPED.get(hook.by, skipped)}.",
            fix=_FIX.format(name or "model"),
            related=[(hook.place, "sets the hook")],
            remedies=remedies,
        )


def _shown(name: str) -> str:
    return f"`{name}.forward(...)`" if name else "`forward(...)`"
