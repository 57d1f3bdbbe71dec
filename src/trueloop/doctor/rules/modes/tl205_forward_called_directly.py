"""`model.forward(x)` skips the module's hooks.

## What it does

Finds calls of a module's `forward` method from outside of any module.

## Why it breaks training

`model(x)` runs the hooks and then `forward`; `model.forward(x)` runs only `forward`. Libraries rely
on hooks: `fully_shard` (FSDP2) gathers the parameters and prepares gradient averaging, older
spectral and weight norms recompute the weight, pruning applies its masks, `module.compile()` calls
the compiled code. Without any of these both calls do the same today, and a hook that is added later
is silently skipped. `DistributedDataParallel`, `DataParallel`, `FullyShardedDataParallel` and
`torch.compile(model)` work in their own `forward`, which is not skipped: there it is advice.

## Wrong

```python
outputs = model.forward(inputs)
```

## Right

```python
outputs = model(inputs)
```

## Sources

- PyTorch,
  [Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward):
  "one should call the Module instance afterwards instead of this since the former takes care of
  running the registered hooks while the latter silently ignores them"

## How it is detected

The call is written `<something>.forward(...)`, and it is certainly a module: the program creates
it, calls `train()` or `eval()` on it, or sets its parameters or device, and trains it. Not
reported: calls in a method of a module (`super().forward(x)`, `self.encoder.forward(x)`), a
`forward` of a different class that delegates, hooks, objects with a `forward` that are not modules,
and functions that wrap and replace a `forward`.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Ended, Made, ModelForward, ModeSet, Moved, Used
from trueloop.doctor.model.findings import Replace
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.passes import Forwards

_IN_FORWARD = ("ddp", "dp", "fsdp", "compile")
"""Wrappers that do their work in their own `forward`."""


class ForwardCalledDirectly(Rule):
    code = "TL205"

    def __init__(self) -> None:
        super().__init__()
        self.modules: set[Model] = set()
        """Used as only a module is."""
        self.calls: list[ModelForward] = []
        self.forwards = Forwards()
        self.trained: set[Model] = set()
        self.switched: set[Model] = set()
        """Put into a mode: nothing but a module has one."""
        self.sharded: set[Model] = set()

    def on_used(self, event: Used) -> None:
        if event.what.endswith(".fully_shard") and isinstance(event.subject, Model):
            self.sharded.add(event.subject)

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
            self.calls.append(event)

    def on_backward(self, event: Backward) -> None:
        used = self.forwards.through(event)
        self.trained.update(self.forwards.by_serial[serial].model for serial in used)

    def on_ended(self, event: Ended) -> None:
        for call in self.calls:
            used = call.model in self.modules and call.model in self.trained
            if call.model.known or used or call.model in self.switched:
                self._report(call)

    def _report(self, call: ModelForward) -> None:
        name = call.spelled or call.model.name
        shown = f"`{name}.forward(...)`" if name else "`forward(...)`"
        if call.model in self.sharded:
            skips = "and `fully_shard` needs them to gather parameters and average gradients."
        elif call.model.wrapper in _IN_FORWARD:
            skips = "but not the wrapper, which works in its own `forward`."
        else:
            skips = "which FSDP, pruning, weight norm and `module.compile()` rely on."
        self.report(
            call.place,
            f"{shown} skips the module's hooks, {skips}",
            severity="advice" if call.model.wrapper in _IN_FORWARD else None,
            fix=f"Call the module itself: `{name or 'model'}(...)`.",
            remedies=[Replace(call.callee, name)] if call.spelled and call.callee.line else [],
        )
