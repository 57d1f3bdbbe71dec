"""`with`: the modes inside a block."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trueloop.doctor.model.known_values import contents
from trueloop.doctor.model.things import Model, Thing
from trueloop.doctor.static.interpreter.conditions import outcome_of
from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    GeneratorContext,
    Instance,
    OpaqueObject,
    Scope,
    Unknown,
    Value,
)
from trueloop.doctor.static.interpreter.yields import at_caller, depth_of

Body = Callable[[], "ControlFlow | None"]


def entered(
    m: Interpreter, items: list[ast.withitem], body: list[ast.stmt], scope: Scope, node: ast.AST
) -> ControlFlow | None:
    """Run a block inside the contexts of a `with`."""
    if not items:
        return m.run_block(body, scope)
    item, *rest = items
    context = m.evaluate(item.context_expr, scope)

    stack = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""
    if stack and not rest and _is_exit_stack(context):
        m.assign(ast.Name(stack, ast.Store()), context, scope)
        return _stacked(m, stack, body, scope)

    def inside() -> ControlFlow | None:
        with m.nested(node) as may_go:
            return entered(m, rest, body, scope, node) if may_go else None

    def bind(value: Value) -> None:
        if item.optional_vars is not None:
            m.assign(item.optional_vars, value, scope)

    model = _accumulated(m, item.context_expr)
    if model is not None and isinstance(context, Unknown):
        context = OpaqueObject("contextlib.nullcontext", accumulates=m.evaluate(model, scope))
    return within(m, context, inside, bind, item.context_expr)


def _accumulated(m: Interpreter, node: ast.expr) -> ast.expr | None:
    """The model in `with self.accelerator.accumulate(model)`, of an accelerator that the caller
    made: it also runs the backward."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    model = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if node.func.attr != "accumulate" or not isinstance(model, (ast.Name, ast.Attribute)):
        return None
    runs_backward = "backward" in m.modules[-1].survey.uses.get(last_name(node.func.value), ())
    return model if runs_backward else None


def _is_exit_stack(context: Value) -> bool:
    kind = context.kind if isinstance(context, OpaqueObject) else ""
    return kind in ("contextlib.ExitStack", "contextlib.AsyncExitStack")


def _stacked(m: Interpreter, stack: str, body: list[ast.stmt], scope: Scope) -> ControlFlow | None:
    """Run the block of a `with ExitStack() as stack`: what follows `stack.enter_context(...)` is
    inside that context."""
    for position, statement in enumerate(body):
        rest = body[position + 1 :]
        with m.nested(statement) as may_go:
            if not may_go:
                return None
            call = _entering(statement, stack)
            if call is not None:
                return _pushed(m, stack, statement, call, rest, scope)
            if isinstance(statement, ast.If) and _enters_within(statement, stack):
                outcome, _ = outcome_of(m, statement.test, scope)
                taken = statement.body if outcome else statement.orelse
                return _stacked(m, stack, [*taken, *rest], scope)
            signal = m.run_block([statement], scope)
        if signal is not None:
            return signal
    return None


def _pushed(
    m: Interpreter,
    stack: str,
    statement: ast.stmt,
    call: ast.Call,
    rest: list[ast.stmt],
    scope: Scope,
) -> ControlFlow | None:
    def bind(value: Value) -> None:
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            m.assign(target, value, scope)

    context = m.evaluate(call.args[0], scope)
    return within(m, context, lambda: _stacked(m, stack, rest, scope), bind, call)


def _entering(statement: ast.stmt, stack: str) -> ast.Call | None:
    """`stack.enter_context(...)`, perhaps with its result assigned."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
        return None
    owner = call.func.value
    named = isinstance(owner, ast.Name) and owner.id == stack
    return call if named and call.func.attr in ("enter_context", "enter_async_context") else None


def _enters_within(statement: ast.If, stack: str) -> bool:
    """One of its branches enters a context that lasts beyond it."""
    return any(
        _entering(each, stack) is not None
        or (isinstance(each, ast.If) and _enters_within(each, stack))
        for each in (*statement.body, *statement.orelse)
    )


def within(
    m: Interpreter, context: Any, inside: Body, bind: Callable[[Any], None], node: ast.AST
) -> ControlFlow | None:
    """Run something inside one context."""
    if isinstance(context, OpaqueObject):
        bind(context.entered or context)
        models = _models_of(context)
        return inside_foreign(m, context, lambda: _with_open_modes(m, models, inside))
    if isinstance(context, Instance) and context.cls.lookup("__enter__") is not None:
        bind(m.call_value(m.attribute(context, "__enter__", node), [], node=node))
        signal = inside()
        leave = m.attribute(context, "__exit__", node)
        m.call_value(leave, [NONE, NONE, NONE], node=node)
        return signal
    if isinstance(context, GeneratorContext):
        return inside_generator(m, context, inside, bind, node)
    bind(context if isinstance(context, Thing) else m.unknown(node, (context,)))
    models = [] if isinstance(context, Model) else _models_of(context)
    return _with_open_modes(m, models, inside)


def _with_open_modes(m: Interpreter, models: Sequence[Model], inside: Body) -> ControlFlow | None:
    """Nobody knows what the context does with its models: `eval_mode(model)` switches them, and may
    stop recording, too."""
    if not models:
        return inside()
    before = {member: member.training for model in models for member in model.family()}
    for member in before:
        member.training = None
    m.grad.append(m.grad[-1] and None)
    try:
        return inside()
    finally:
        m.grad.pop()
        for member, training in before.items():
            if member.training is None:
                member.training = training


def _models_of(context: object, depth: int = 3) -> list[Model]:
    """The models that something unknown was made of."""
    if isinstance(context, Model):
        return [context]
    parts: Iterable[object] = contents(context)
    if isinstance(context, Unknown):
        parts = context.of[:6]
    elif isinstance(context, OpaqueObject) and not context.kind.startswith(_KNOWN):
        parts = context.arguments.values()
    return [model for part in parts if depth for model in _models_of(part, depth - 1)]


_KNOWN = ("torch", "contextlib", "accelerate", "lightning", "deepspeed", "apex", "tqdm")
"""Packages whose contexts do not switch the modes of a model."""


def inside_foreign(m: Interpreter, context: OpaqueObject, inside: Body) -> ControlFlow | None:
    """A context of torch's (or of a different library's) that changes the modes inside."""
    if context.grad is not None:
        m.grad.append(context.grad)
    if context.autocast != "":
        m.autocast.append(context.autocast)
    m.forked += context.forks_rng
    if context.accumulates is not None:
        m.accumulating.append(context.accumulates)
    try:
        return inside()
    finally:
        if context.grad is not None:
            m.grad.pop()
        if context.autocast != "":
            m.autocast.pop()
        m.forked -= context.forks_rng
        if context.accumulates is not None:
            m.accumulating.pop()


def inside_generator(
    m: Interpreter,
    context: GeneratorContext,
    inside: Body,
    bind: Callable[[Any], None],
    node: ast.AST,
) -> ControlFlow | None:
    """A function under `@contextmanager`: the block runs at its `yield`."""
    found: list[ControlFlow | None] = []
    depth = depth_of(m)

    def on_yield(value: Value) -> Value:
        if not found:
            with at_caller(m, depth):
                bind(value)
                found.append(inside())
        return NONE

    m.enter(context.function, context.args, context.kwargs, node, on_yield)
    if not found:
        # The function never got to its `yield` here: the block runs all the same.
        found.append(inside())
    return found[0]


def autocast_of(dtype: Value | None, enabled: Value | None, device: str | None) -> str | None:
    """The dtype in which an autocast block computes: see `events.Event.autocast`."""
    on: object = True if enabled is None else "?"
    if isinstance(enabled, Constant):
        on = bool(enabled.value)
        if not on:
            return None
    name = getattr(dtype, "name", "") if dtype is not None else ""
    short = name.rpartition(".")[2]
    if on == "?":
        return "unknown"
    if dtype is None:
        return {"cuda": "float16", "cpu": "bfloat16"}.get(device or "", "unknown")
    return {"half": "float16"}.get(short, short) if short else "unknown"
