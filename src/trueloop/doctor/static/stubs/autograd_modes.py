"""Switches of autograd and autocast."""

from __future__ import annotations

from trueloop.doctor.static.interpreter.calls import call as call_value
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.values import Constant, OpaqueObject, Value, constant
from trueloop.doctor.static.interpreter.with_blocks import autocast_of


def _grad(call: LibraryCall, on: bool) -> Value:
    return OpaqueObject("torch.no_grad", grad=on)


@calls("torch.no_grad")
def _no_grad(call: LibraryCall) -> Value:
    function = call.arg(0)
    if function is not None and not isinstance(function, Constant):
        # As a decorator by hand: `step = torch.no_grad()(step)` or `torch.no_grad(step)`.
        return function
    return _grad(call, False)


@calls("torch.inference_mode")
def _inference_mode(call: LibraryCall) -> Value:
    return _grad(call, call.const(0, "mode", True) is False)


@calls("torch.enable_grad")
def _enable_grad(call: LibraryCall) -> Value:
    return _grad(call, True)


@calls("torch.set_grad_enabled")
def _set_grad_enabled(call: LibraryCall) -> Value:
    value = call.arg(0, "mode", Constant(True))
    on = call.machine.decide(value)[0]
    if not call.result_used:
        call.machine.grad[-1] = on
    return _grad(call, on)


@calls("torch.autocast", "torch.amp.autocast")
def _autocast(call: LibraryCall) -> Value:
    device = call.arg(0, "device_type", Constant(None))
    return _block(call, _device(device), call.arg(1, "dtype"), call.arg(2, "enabled"))


@calls("torch.cuda.amp.autocast")
def _cuda_autocast(call: LibraryCall) -> Value:
    return _block(call, "cuda", call.arg(1, "dtype"), call.arg(0, "enabled"))


@calls("torch.cpu.amp.autocast")
def _cpu_autocast(call: LibraryCall) -> Value:
    return _block(call, "cpu", call.arg(1, "dtype"), call.arg(0, "enabled"))


def _block(
    call: LibraryCall, device: str | None, dtype: Value | None, enabled: Value | None
) -> Value:
    return OpaqueObject("torch.autocast", autocast=autocast_of(dtype, enabled, device))


def _device(value: Value) -> str | None:
    name = constant(value)
    return name.partition(":")[0] if isinstance(name, str) else None


@calls("contextlib.nullcontext", "contextlib.suppress")
def _nothing(call: LibraryCall) -> Value:
    given = call.arg(0, "enter_result")
    return OpaqueObject("contextlib.nullcontext", entered=given)


_OF_CHECKPOINT = frozenset(
    "use_reentrant preserve_rng_state context_fn determinism_check debug early_stop".split()
)


@calls("torch.utils.checkpoint.checkpoint")
def _checkpointed(call: LibraryCall) -> Value:
    """The function with its arguments: that it runs again in the backward changes nothing here."""
    if not call.args:
        return call.unknown(*call.kwargs.values())
    function, *args = call.args
    kwargs = {name: value for name, value in call.kwargs.items() if name not in _OF_CHECKPOINT}
    rest: list[Value] | None = [] if call.open else None
    return call_value(call.machine, function, args, kwargs, call.node, rest)
