"""Switches of autograd and autocast."""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.calls import call as call_value
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.syntax import once
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
    m = call.machine
    on = m.decide(value)[0]
    if not call.result_used:
        m.grad[-1] = on
    # A test that comes out true leaves recording on; nobody has turned it on in so many words.
    left_on = on and m.grad[-1] is True and isinstance(value, Constant) and _is_tested(call)
    return OpaqueObject("torch.no_grad", grad=None if left_on else on)


def _is_tested(call: LibraryCall) -> bool:
    """The argument is the outcome of a test, here or where it got its name."""
    node = call.node
    if not isinstance(node, ast.Call):
        return False
    given = node.args[0] if node.args else node.keywords[0].value if node.keywords else None
    if isinstance(given, ast.Name):
        m = call.machine
        return given.id in _names_of_tests(m.calls[-1][1] if m.calls else m.modules[-1].tree)
    return given is not None and _tests(given)


@once
def _names_of_tests(function: ast.AST) -> frozenset[str]:
    """Names of a function that are assigned nothing but outcomes of tests."""
    stores = [
        each.id
        for each in walk(function)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]
    arguments = [each.arg for each in walk(function) if isinstance(each, ast.arg)]
    tested = [
        each.targets[0].id
        for each in walk(function)
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and _tests(each.value)
    ]
    return frozenset(
        name
        for name in tested
        if name not in arguments and stores.count(name) == tested.count(name)
    )


def _tests(node: ast.expr) -> bool:
    """A comparison, or several of them; or the mode of a module."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _tests(node.operand)
    if isinstance(node, ast.BoolOp):
        return all(map(_tests, node.values))
    return isinstance(node, ast.Compare) or getattr(node, "attr", "") == "training"


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
    if device == "cuda" and "not torch.cuda.is_available()" in call.machine.guards:
        enabled = Constant(False)  # without a GPU it does nothing
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
