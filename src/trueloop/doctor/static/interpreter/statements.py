"""Statements: what each does to the state of a run, and where the run continues."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from trueloop.doctor.model.events import NotCalled, TensorRetained
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import NOWHERE, Checkpoint, Tensor, Thing
from trueloop.doctor.static.interpreter import conditions, imports, ticks_passed_by
from trueloop.doctor.static.interpreter.attributes import set_in_wholes, set_item, write
from trueloop.doctor.static.interpreter.branches import (
    OpenBranch,
    backwards_left_out,
    branch_that_updates,
    option_alone,
)
from trueloop.doctor.static.interpreter.counters import asks_object, closes_window, counted_loop
from trueloop.doctor.static.interpreter.decorators import decorate
from trueloop.doctor.static.interpreter.derived_containers import container_in
from trueloop.doctor.static.interpreter.emptied_holders import is_let_go
from trueloop.doctor.static.interpreter.expressions import arithmetic, evaluate
from trueloop.doctor.static.interpreter.growing_lists import add_to_list
from trueloop.doctor.static.interpreter.inference import guess, is_no_tensor
from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.loops import run_for, run_while
from trueloop.doctor.static.interpreter.match_statements import run_match
from trueloop.doctor.static.interpreter.option_defaults import is_always_on
from trueloop.doctor.static.interpreter.preferred_branches import preferred_outcome
from trueloop.doctor.static.interpreter.step_budget import ProgramFailsError
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import has_or, once, shape, stands_in, written
from trueloop.doctor.static.interpreter.unpacking import unpack
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryName,
    Method,
    OpaqueObject,
    Scope,
    Sequence,
    Unknown,
    Value,
    closing,
    constant,
)
from trueloop.doctor.static.interpreter.with_blocks import entered
from trueloop.doctor.static.stubs import repeated_decays
from trueloop.doctor.static.stubs.checkpoints import is_edited
from trueloop.doctor.static.stubs.manual_updates import notice


def run_block(m: Interpreter, body: list[ast.stmt], scope: Scope) -> ControlFlow | None:
    """Run statements one after the other; the signal if they were left early."""
    if not body:
        return None
    m.nesting += 1
    try:
        return None if m.is_too_deep(body[0]) else _run(m, body, scope)
    finally:
        m.nesting -= 1


def _run(m: Interpreter, body: list[ast.stmt], scope: Scope) -> ControlFlow | None:
    for position, statement in enumerate(body):
        m.steps += 1
        if m.steps > m.budget:
            m.spend(0, statement)
        handler = _HANDLERS.get(type(statement))
        if handler is None:
            continue
        signal = handler(m, statement, scope)
        if signal is not None:
            return signal
        if m.rest_in:
            windows, m.rest_in = m.rest_in, ()
            with m.guarded((), windows):
                return _run(m, body[position + 1 :], scope)
    return None


def _expression(m: Interpreter, node: ast.Expr, scope: Scope) -> ControlFlow | None:
    if isinstance(node.value, ast.Constant):
        return None
    m.bare.add(id(node.value))
    evaluate(m, node.value, scope)
    if isinstance(node.value, ast.Attribute):
        m.backwards.add(id(node.value))
        m.emit(NotCalled, node.value, method=node.value.attr)
    ends = ("exit", "_exit", "abort", "quit")
    if isinstance(node.value, ast.Call) and last_name(node.value.func) in ends:
        return ControlFlow.RAISE
    return None


# ------------------------------------------------------------------------------- assignment


def _assign(m: Interpreter, node: ast.Assign, scope: Scope) -> ControlFlow | None:
    decay = m.modules[-1].survey.decays.get(id(node))
    if decay is not None:
        repeated_decays.notice(m, node, decay, scope)
    value = evaluate(m, node.value, scope)
    m.assigned = node.value
    for target in node.targets:
        if isinstance(value, Tensor) and stands_in(target, node.value):
            _keep_sum(m, target, value, node.value, scope)
            assign(m, target, value, scope, afresh=False)
        else:
            assign(m, target, value, scope)
    m.assigned = None
    return None


def _annotated(m: Interpreter, node: ast.AnnAssign, scope: Scope) -> ControlFlow | None:
    if node.value is not None:
        assign(m, node.target, evaluate(m, node.value, scope), scope)
    return None


def _augmented(m: Interpreter, node: ast.AugAssign, scope: Scope) -> ControlFlow | None:
    decay = m.modules[-1].survey.decays.get(id(node))
    if decay is not None:
        repeated_decays.notice(m, node, decay, scope)
    old = evaluate(m, _read(node), scope)
    value = evaluate(m, node.value, scope)
    if isinstance(old, Sequence) and isinstance(node.op, ast.Add):
        add_to_list(m, old, value, node)
        return None
    own = _operator_of(old, node.op)
    if own is not None:
        assign(m, node.target, m.call_value(own, [value], node=node), scope, afresh=False)
        return None
    result = arithmetic(m, node.op, old, value, node)
    if m.turns and isinstance(old, (Unknown, Checkpoint)) and constant(value) == 1:
        loop = m.turns[-1].loop
        loop.resumed_from = loop.resumed_from or old  # a counter that a file may have set
    if m.turns and isinstance(result, Constant) and isinstance(result.value, (int, float)):
        result.loop_variant = result.loop_variant or True
        if constant(value) == 1:
            result.counts = counted_loop(m, old, assigned_at(m, node.target, scope))
    if isinstance(result, Tensor) and isinstance(node.op, ast.Add):
        kept = value if isinstance(value, Tensor) else result
        _keep_sum(m, node.target, kept, node, scope, result)
    notice(m, old, value, node, "scaled" if isinstance(node.op, (ast.Mult, ast.Div)) else "set")
    if not (isinstance(old, Tensor) and old.grad_of is not None):  # in place
        assign(m, node.target, result, scope, afresh=False)
    return None


def _operator_of(value: Value, sign: ast.operator) -> Method | None:
    """The user's own `+=`: `__iadd__`, or `__add__`."""
    if not isinstance(value, Instance):
        return None
    word = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv"}.get(type(sign))
    found = value.cls.lookup(f"__i{word}__") or value.cls.lookup(f"__{word}__")
    return Method(value, found) if isinstance(found, Function) else None


@once
def _read(node: ast.AugAssign) -> ast.expr:
    """Its target as it is read."""
    read = copy.copy(node.target)
    read.ctx = ast.Load()
    return read


def assigned_at(m: Interpreter, target: ast.expr, scope: Scope) -> int | None:
    """How many turns had begun when a variable or attribute was last assigned afresh."""
    if isinstance(target, ast.Name):
        holder = scope.find(target.id)
        return holder.assigned_at.get(target.id) if holder is not None else None
    if isinstance(target, ast.Attribute):
        owner = evaluate(m, target.value, scope)
        if isinstance(owner, Instance):
            return owner.assigned_at.get(target.attr, owner.turns)
        # What a module carries from call to call (a membrane potential) is its state, not a record.
        noted = m.attributes_set.get((id(owner), target.attr), (owner, 0))
        return None if m.inside_models else noted[1]
    if isinstance(target, ast.Subscript):
        owner = evaluate(m, target.value, scope)
        owner = container_in(owner) or owner
        if isinstance(owner, DictValue):
            return owner.assigned_at.get(constant(evaluate(m, target.slice, scope)), owner.turns)
        return owner.turns if isinstance(owner, Sequence) else None
    return None


def _keep_sum(
    m: Interpreter,
    target: ast.expr,
    kept: Tensor,
    node: ast.AST,
    scope: Scope,
    total: Value | None = None,
) -> None:
    since = assigned_at(m, target, scope)
    if kept.graph and m.recording and m.predates_turn(since):
        holder = written(target)
        container = kept if total is None else total
        m.emit(
            TensorRetained, node, tensor=kept, how="sum", holder=holder, container=container,
            what=_summand(m, node, target), since=since, let_go=is_let_go(m, node, target),
        )  # fmt: skip


def _summand(m: Interpreter, node: ast.AST, target: ast.expr) -> Location:
    """The added value: the right side of `total += loss`, the loss of `total = total + loss`."""
    if isinstance(node, ast.AugAssign):
        return m.place(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        total = shape(target)
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if shape(one) == total:
                return m.place(other)
    return NOWHERE


def assign(
    m: Interpreter, target: ast.expr, value: Any, scope: Scope, *, afresh: bool = True
) -> None:
    """Give a target a value."""
    if isinstance(target, ast.Name):
        bind(m, target.id, value, scope, afresh=afresh)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(m, target.value, scope)
        if isinstance(owner, Instance) and afresh:
            owner.assigned_at[target.attr] = m.turns_begun
        elif afresh:
            m.attributes_set[id(owner), target.attr] = owner, m.turns_begun
        write(m, owner, target.attr, value, target)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(m, target, value, scope)
    elif isinstance(target, ast.Starred):
        if not isinstance(value, Sequence):  # one that represents them: see `unpack`
            value = Sequence("list", [value], True)
        value.turns = m.turns_begun
        assign(m, target.value, value, scope)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(m, target.value, scope)
        set_item(m, owner, evaluate(m, target.slice, scope), value, target, afresh=afresh)
        set_in_wholes(m, owner, target, value, scope)


def bind(m: Interpreter, name: str, value: Any, scope: Scope, *, afresh: bool = True) -> None:
    """Give a variable a value; a thing takes its first name."""
    if isinstance(value, (Unknown, OpaqueObject)):
        found = guess(m, name, value, scope.module)
        if found is not value:  # the same thing wherever it is handed to
            found = m.guessed.setdefault((id(value), type(found)), (value, found))[1]
        value = found
    elif isinstance(value, Tensor) and is_no_tensor(name, value, scope.module):
        value = guess(m, name, Unknown(name, (value,)), scope.module)
    elif isinstance(value, Thing) and not value.name and name not in ("self", "cls"):
        value.name = "" if value in m.receivers else name  # `for layer in self.modules()` has it
    holder = scope.outer.get(name, scope)
    if holder is not scope:
        m.history.write(changed=0)
    holder.variables[name] = value
    if afresh:
        holder.assigned_at[name] = m.turns_begun


def _unpack(m: Interpreter, target: ast.Tuple | ast.List, value: object, scope: Scope) -> None:
    starred = next((i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
    m.spend(len(target.elts) >> 2, target)
    parts = unpack(m, value, len(target.elts), starred, target)
    for part, each in zip(target.elts, parts, strict=True):
        assign(m, part, each, scope)


def _delete(m: Interpreter, node: ast.Delete, scope: Scope) -> ControlFlow | None:
    m.spend(len(node.targets) >> 2, node)
    for target in node.targets:
        if isinstance(target, ast.Name):
            holder = scope.find(target.id)
            if holder is not None:
                holder.variables.pop(target.id, None)
                holder.waiting.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            is_edited(evaluate(m, target.value, scope))
        elif isinstance(target, ast.Attribute) and target.attr == "grad":
            write(m, evaluate(m, target.value, scope), "grad", NONE, node)
    return None


# ------------------------------------------------------------------------------- definitions


def _function(
    m: Interpreter, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope
) -> ControlFlow | None:
    args = node.args
    function = Function(
        node,
        scope,
        scope.module,
        f"{scope.owner.name}.{node.name}" if scope.is_class and scope.owner else node.name,
        scope.owner if scope.is_class else None,
        [evaluate(m, default, scope) for default in args.defaults],
        {
            arg.arg: evaluate(m, default, scope)
            for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if default is not None
        },
        [evaluate(m, decorator, scope) for decorator in node.decorator_list],
    )
    known = scope.variables.get(node.name)
    if not (scope.is_class and known is not None and _sets_a_property(node)):
        made = decorate(m, function, function.decorators, node)
        scope.outer.get(node.name, scope).variables[node.name] = made
    return None


def _sets_a_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`@name.setter`: the name stays that of the getter."""
    return any(getattr(each, "attr", "") in ("setter", "deleter") for each in node.decorator_list)


def _class(m: Interpreter, node: ast.ClassDef, scope: Scope) -> ControlFlow | None:
    bases = [evaluate(m, base, scope) for base in node.bases if not isinstance(base, ast.Starred)]
    decorators = [evaluate(m, decorator, scope) for decorator in node.decorator_list]
    kind = Class(node, scope.module, node.name, bases, {})
    inner = Scope(scope.module, scope, owner=kind, is_class=True)
    kind.scope, kind.namespace = inner, inner.variables
    run_block(m, node.body, inner)
    fields = [
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    is_tuple = any(isinstance(b, LibraryName) and b.name.endswith("NamedTuple") for b in bases)
    if is_tuple or any("dataclass" in m.key(each) for each in decorators):
        kind.fields = fields
    holder = scope.outer.get(node.name, scope)  # `global Net`
    holder.variables[node.name] = decorate(m, kind, decorators, node)
    return None


def _import(m: Interpreter, node: ast.Import, scope: Scope) -> ControlFlow | None:
    m.spend(len(node.names) >> 2, node)
    for alias in node.names:
        head = alias.name.partition(".")[0]
        bound = alias.asname or head
        whole = alias.name if alias.asname else head
        found = m.project.later(whole, "", scope.module)
        scope.outer.get(bound, scope).variables[bound] = found
    return None


def _import_from(m: Interpreter, node: ast.ImportFrom, scope: Scope) -> ControlFlow | None:
    m.spend(len(node.names) >> 2, node)
    source = m.project.absolute(node.module or "", node.level, scope.module)
    begins = m.must_succeed and not m.calls and scope.module is m.modules[0]
    names = [each.name for each in node.names]
    if begins and (why := imports.failure_of(m, source, names, scope.module)):
        raise ProgramFailsError(m.place(node), why)
    for alias in node.names:
        if alias.name == "*":
            imports.import_star(m, source, scope)
        else:
            found = m.project.later(source, alias.name, scope.module)
            name = alias.asname or alias.name
            scope.outer.get(name, scope).variables[name] = found
    return None


def _global(m: Interpreter, node: ast.Global, scope: Scope) -> ControlFlow | None:
    m.spend(len(node.names) >> 2, node)
    for name in node.names:
        scope.outer[name] = scope.top()
    return None


def _nonlocal(m: Interpreter, node: ast.Nonlocal, scope: Scope) -> ControlFlow | None:
    m.spend(len(node.names) >> 2, node)
    for name in node.names:
        holder = scope.parent.find(name) if scope.parent is not None else None
        if holder is not None:
            scope.outer[name] = holder
    return None


# ------------------------------------------------------------------------------- control flow


def _if(m: Interpreter, node: ast.If, scope: Scope) -> ControlFlow | None:
    preferred = preferred_outcome(m, node, scope)
    tested = len(m.tested)
    updates = branch_that_updates(node) if m.turns else None
    asks = updates or (m.turns and asks_object(node) is not None)
    outcome, guards = (closes_window(m, node, scope) if asks else None), list[str]()
    if outcome is None and preferred is False and _always_leaves(m, node, scope):
        outcome = True
    if outcome is None:
        outcome, guards = conditions.outcome_of(m, node.test, scope, preferred, updates)
    windows = m.tested[tested:]
    del m.tested[tested:]
    if guards:
        key = guards[-1].removeprefix("not ")
        negated = (key == guards[-1]) != outcome
        m.sites[id(node)] = OpenBranch(key, negated, (node.body, node.orelse), m.modules[-1])
    m.reached.add((id(node), outcome))
    if not guards and isinstance(node.test, ast.Compare):
        ticks_passed_by.note(m, node, outcome, scope)
    if not windows:
        if left := backwards_left_out(node, outcome, guards, m.varying, scope):
            m.passed_by |= left
        alone = option_alone(node, outcome, guards) - m.passed_by
        if alone and not any(each.removeprefix("not ") in m.varying for each in guards):
            m.reach.passed_alone.setdefault(guards[0], set()).update(alone)
    body = node.body if outcome else node.orelse
    if guards or windows:
        with m.guarded(guards, windows):
            signal = run_block(m, body, scope)
    else:
        signal = run_block(m, body, scope)
    if windows and signal is None and m.project.leaves(node.orelse if outcome else node.body):
        m.rest_in = tuple(windows)  # `if (i + 1) % n: continue`
    return signal


def _always_leaves(m: Interpreter, node: ast.If, scope: Scope) -> bool:
    """`if args.evaluate: validate(...); return`, with an option that nothing switches off."""
    if not isinstance(node.test, ast.Attribute) or not m.project.leaves(node.body):
        return False
    return is_always_on(scope.module.tree, m.evaluate(node.test, scope))


def _with(m: Interpreter, node: ast.With | ast.AsyncWith, scope: Scope) -> ControlFlow | None:
    return entered(m, list(node.items), node.body, scope, node)


def _try(m: Interpreter, node: ast.Try, scope: Scope) -> ControlFlow | None:
    """The body as if nothing was raised; handlers where the body itself raises for certain."""
    m.tries += 1
    signal = run_block(m, node.body, scope)
    m.tries -= 1
    if signal is ControlFlow.RAISE and node.handlers:
        handler = node.handlers[0]
        if handler.name:
            scope.variables[handler.name] = m.unknown(handler)
        with m.guarded([f"raised at {node.lineno}"]):
            signal = run_block(m, handler.body, scope)
    elif signal is None:
        signal = run_block(m, node.orelse, scope)
    last = run_block(m, node.finalbody, scope)
    return last or signal


def _return(m: Interpreter, node: ast.Return, scope: Scope) -> ControlFlow | None:
    value = NONE if node.value is None else evaluate(m, node.value, scope)
    # `if (i + 1) % n == 0: return True`
    scope.returned.append(closing(value, m.windows[scope.windows :]))
    return ControlFlow.RETURN


def _assert(m: Interpreter, node: ast.Assert, scope: Scope) -> ControlFlow | None:
    if has_or(node.test):
        evaluate(m, node.test, scope)
    else:
        conditions.outcome_of(m, node.test, scope, True)  # the run goes on only if it holds
    return None


_HANDLERS: dict[type[ast.stmt], Callable[[Interpreter, Any, Scope], ControlFlow | None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.If: _if,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Return: _return,
    ast.Raise: lambda m, node, scope: ControlFlow.RAISE,
    ast.Match: run_match,
    ast.For: run_for,
    ast.AsyncFor: run_for,
    ast.While: run_while,
    ast.Assert: _assert,
    ast.Break: lambda m, node, scope: ControlFlow.BREAK,
    ast.Continue: lambda m, node, scope: ControlFlow.CONTINUE,
}
