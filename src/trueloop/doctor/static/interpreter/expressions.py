"""Expressions: what each is worth, and what evaluating it does."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, TypeGuard

from trueloop.doctor.model.arithmetic import SIZE, computed, is_small, stays_small
from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import Checkpoint, Loop, Model, Tensor, Thing
from trueloop.doctor.static.interpreter import conditions, imports
from trueloop.doctor.static.interpreter.attributes import item_of, read
from trueloop.doctor.static.interpreter.calls import call
from trueloop.doctor.static.interpreter.comprehensions import comprehension, dictionary
from trueloop.doctor.static.interpreter.counters import window_of
from trueloop.doctor.static.interpreter.generators import MOST, yielded
from trueloop.doctor.static.interpreter.inference import guess
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.joined_conditions import Junction
from trueloop.doctor.static.interpreter.loop_plans import elements
from trueloop.doctor.static.interpreter.preferred_branches import choice_of, preferred_way
from trueloop.doctor.static.interpreter.step_budget import NESTING
from trueloop.doctor.static.interpreter.stub_lookup import find_star_call
from trueloop.doctor.static.interpreter.unpacking import chunks_of
from trueloop.doctor.static.interpreter.values import (
    Constant,
    DictValue,
    Function,
    Generator,
    Imported,
    LibraryName,
    Parameters,
    Scope,
    Sequence,
    Super,
    Unknown,
    Value,
    closing,
)
from trueloop.doctor.static.stubs import repeated_layers, tensor_shapes as shapes
from trueloop.doctor.static.stubs.batch_means import notice_division, notice_weight
from trueloop.doctor.static.stubs.containers import container_of, extend
from trueloop.doctor.static.stubs.options import by_default
from trueloop.doctor.static.stubs.padded_lists import filled_up, repeated
from trueloop.doctor.static.stubs.statistics import notice_arithmetic
from trueloop.doctor.static.stubs.tensors import combine, derive
from trueloop.doctor.static.stubs.thresholds import notice_threshold

_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@",
}  # fmt: skip


def evaluate(m: Interpreter, node: ast.expr, scope: Scope) -> Value:
    """The value of an expression."""
    m.steps += 1
    if m.steps > m.budget:
        m.spend(0, node)
    kind = type(node)
    if m.nesting < NESTING:  # what is nearest at hand first: half of all expressions
        if kind is ast.Name:
            name = node.id  # type: ignore[attr-defined]
            known = scope.variables.get(name)
            if known is not None and type(known) is not Imported and name not in scope.outer:
                return known
        elif kind is ast.Constant:
            return _constant(m, node, scope)  # type: ignore[arg-type]
    handler = _HANDLERS.get(kind)
    m.nesting += 1
    try:
        if handler is None or (m.nesting > NESTING and m.is_too_deep(node)):
            return m.unknown(node)
        return handler(m, node, scope)
    finally:
        m.nesting -= 1


def _constant(m: Interpreter, node: ast.Constant, scope: Scope) -> Value:
    value = node.value
    if isinstance(value, int) and not is_small(value):
        return _number(m, node)
    return Constant(value)


def _number(m: Interpreter, node: ast.AST, *parts: Any) -> Value:
    """A number, or text, that is too long to be computed with."""
    found = m.unknown(node, parts)
    found.number = True
    return found


def lookup(m: Interpreter, name: str, scope: Scope) -> Value | None:
    """The value of a name; None if nothing is known of it."""
    holder = scope.find(name)
    if holder is not None:
        found = holder.variables.get(name)
        if found is None or isinstance(found, Imported):
            return imports.value_in(m, holder, name)
        return found
    if name in _BUILTINS:
        return LibraryName(f"builtins.{name}")
    if name == "torch":  # of a star import that cannot be read, or forgotten
        return LibraryName(name)
    dotted = find_star_call(scope.top().stars[:SIZE], name)
    return LibraryName(dotted) if dotted is not None else None


def _name(m: Interpreter, node: ast.Name, scope: Scope) -> Value:
    found = lookup(m, node.id, scope)
    if found is None:
        found = guess(m, node.id, Unknown(node.id), scope.module)
        scope.top().variables[node.id] = found
    return found


def _attribute(m: Interpreter, node: ast.Attribute, scope: Scope) -> Value:
    return read(m, evaluate(m, node.value, scope), node.attr, node)


def _call(m: Interpreter, node: ast.Call, scope: Scope) -> Value:
    if isinstance(node.func, ast.Name) and node.func.id == "super":
        method = _method_scope(scope)
        return Super(method.owner, method.receiver)
    function = evaluate(m, node.func, scope)
    args: list[Value] = []
    kwargs: dict[str, Value] = {}
    is_open = False
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            spread = _spread(m, arg, scope)
            if isinstance(spread, Sequence) and not spread.open:
                args += spread.values
            else:
                is_open = True
                kwargs.setdefault("*", spread)
        else:
            args.append(evaluate(m, arg, scope))
    for keyword in node.keywords:
        value = evaluate(m, keyword.value, scope)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, DictValue) and not value.open:
            kwargs.update({key: each for key, each in value.entries.items() if type(key) is str})
        else:
            is_open = True
            kwargs.setdefault("**", value)
    rest = [kwargs.pop(mark) for mark in ("*", "**") if mark in kwargs] if is_open else []
    return call(m, function, args, kwargs, node, rest if is_open else None)


def _method_scope(scope: Scope) -> Scope:
    """The scope of the method around: comprehensions and inner functions have their own."""
    inner: Scope | None = scope
    while inner is not None:
        if inner.owner is not None and inner.function is not None:
            return inner
        inner = inner.parent
    return scope


def _binary(m: Interpreter, node: ast.BinOp, scope: Scope) -> Value:
    left, right = evaluate(m, node.left, scope), evaluate(m, node.right, scope)
    if isinstance(node.op, ast.Mult) and _has_models(right):  # `n * [layer]`
        left, right = right, left
    if isinstance(node.op, ast.Mult) and _has_models(left):
        repeated_layers.notice_list(m, node, left, right)
    found = arithmetic(m, node.op, left, right, node)
    if isinstance(node.op, ast.Mult) and m.turns:
        notice_weight(m, node, left, right, found)
    return found


def _has_models(value: Value) -> TypeGuard[Sequence]:
    return isinstance(value, Sequence) and any(isinstance(each, Model) for each in value.values)


def arithmetic(m: Interpreter, sign: ast.operator, left: Any, right: Any, node: ast.AST) -> Value:
    """One operation on two values."""
    left, right = conditions.as_read(m, left), conditions.as_read(m, right)
    found = _arithmetic(m, sign, left, right, node)
    if not m.turns or m.batch_turn() is None:
        notice_arithmetic(m, sign, left, right, found, node)
    return found


def _arithmetic(m: Interpreter, sign: ast.operator, left: Any, right: Any, node: ast.AST) -> Value:
    if isinstance(sign, ast.Div):
        notice_division(m, left, right, node)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return combine(m, sign, left, right, node)
    if isinstance(sign, ast.Mod) and loop_of(left):
        return _remainder(m, left, right, node)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _constants(m, sign, left, right, node)
    if isinstance(sign, ast.Add) and isinstance(left, _LISTS) and isinstance(right, _LISTS):
        return _added(m, left, right)
    if isinstance(node, ast.AugAssign) and isinstance(left, Model) and container_of(left):
        extend(left, right)
        return left
    if isinstance(left, Sequence) and isinstance(sign, ast.Mult):
        return repeated(m, left, right, node)
    a, b = m.key(left), m.key(right)
    if type(sign) in (ast.Add, ast.Mult) and b < a:
        a, b = b, a
    found = m.unknown(node, (left, right), key=f"({a} {_SIGNS.get(type(sign), '?')} {b})")
    counts = isinstance(sign, (ast.Add, ast.Sub)) and isinstance(left, Checkpoint)
    found.shape = shapes.of_arithmetic(sign, left, right)
    # `checkpoint["epoch"] + 1`: a number, which leads to no state.
    found.number = is_number(right) and (counts or is_number(left))
    return found


_LISTS = (Sequence, Parameters)


def _added(m: Interpreter, *lists: Sequence | Parameters) -> Sequence:
    """`[...] + [...]`, or `list(encoder.parameters()) + list(decoder.parameters())`."""
    values = [part for each in lists for part in getattr(each, "values", [each])]
    kind = getattr(lists[0], "kind", "list")
    is_open = any(getattr(each, "open", False) for each in lists)
    return filled_up(Sequence(kind, values, is_open, turns=m.turns_begun), lists)


def is_number(value: object) -> bool:
    """A plain number, known or not."""
    return isinstance(value, Constant) or (isinstance(value, Unknown) and value.number)


def _constants(
    m: Interpreter, sign: ast.operator, left: Constant, right: Constant, node: ast.AST
) -> Value:
    rest = left.modulo is not None or right.modulo is not None
    if rest or not stays_small(sign, left.value, right.value):
        # `i - i % n`: one number stands for every remainder, so nothing is computed with it.
        return _number(m, node, left, right)
    value = computed(sign, left.value, right.value, None)
    if value is None:
        return m.unknown(node, (left, right))
    variant = left.loop_variant or right.loop_variant
    return Constant(value, loop_variant=variant, counts=left.counts or right.counts)


def _remainder(m: Interpreter, left: Any, right: Any, node: ast.AST) -> Value:
    """A loop's count modulo the size of a window: the few turns that represent all go through
    windows of two."""
    size = right.value if isinstance(right, Constant) else None
    if size == 1 or (isinstance(right, Unknown) and m.window_of_one(right.key)):
        return Constant(0, loop_variant=loop_of(left))
    if isinstance(left, Constant) and isinstance(left.value, int):
        counted = left.loop_variant if isinstance(left.loop_variant, Loop) else left.counts
        m.history.counts_asked += 1
        loop = counted if isinstance(counted, Loop) else None
        return Constant(
            left.value % 2,
            loop_variant=left.loop_variant,
            modulo=window_of(m, right, loop),
        )
    return Unknown(f"{m.key(left)} % {m.key(right)}", (left, right), loop_variant=True)


def _unary(m: Interpreter, node: ast.UnaryOp, scope: Scope) -> Value:
    if isinstance(node.op, ast.Not):
        operand = evaluate(m, node.operand, scope)
        outcome, key, negated = m.verdict(operand)
        if outcome is not None:
            modulo = operand.modulo if isinstance(operand, Constant) else None
            return Constant(not outcome, modulo=modulo)
        return Unknown(key if negated else f"not {key}")
    value = evaluate(m, node.operand, scope)
    if isinstance(value, Constant) and isinstance(value.value, (int, float)):
        if not isinstance(node.op, (ast.USub, ast.UAdd)) and not isinstance(value.value, int):
            return m.unknown(node, (value,))
        if isinstance(node.op, ast.USub):
            return Constant(-value.value, loop_variant=value.loop_variant)
        return value if isinstance(node.op, ast.UAdd) else Constant(~int(value.value))
    if isinstance(value, Tensor):
        made = derive(m, node, value, keeps_loss=True)
        made.shape, made.dtype, made.reduced = value.shape, value.dtype, value.reduced
        return made
    found = m.unknown(node, (value,), key=f"(-{m.key(value)})")
    found.number = is_number(value)
    return found


def _compare(m: Interpreter, node: ast.Compare, scope: Scope) -> Value:
    left = evaluate(m, node.left, scope)
    found: Value = Constant(True)
    for sign, operand in zip(node.ops, node.comparators, strict=True):
        right = evaluate(m, operand, scope)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            notice_threshold(m, sign, left, right, node)
            parents = [each for each in (left, right) if isinstance(each, Tensor)]
            if not isinstance(sign, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                made = derive(m, node, *parents, graph=False)
                made.shape, made.dtype = (
                    shapes.broadcast(map(shapes.shape_of, (left, right))),
                    "bool",
                )
                return made
        found = conditions.compare(m, sign, left, right, node)
        if isinstance(found, Constant) and not found.value:
            return found
        left = right
    return found


def _bool(m: Interpreter, node: ast.BoolOp, scope: Scope) -> Value:
    """`a or b` as a value: what decides it, where that is known."""
    if id(node) in m.bare and (choice := choice_of(node)) is not None:
        return _conditional(m, choice, scope)
    is_or = isinstance(node.op, ast.Or)
    value: Value = Constant(not is_or)
    windows: list[Any] = []
    for position, part in enumerate(node.values):
        value = evaluate(m, part, scope)
        outcome = m.verdict(value)[0]
        if isinstance(value, Constant) and value.modulo is not None:
            windows.append(value.modulo)
        if outcome is is_or:
            return closing(value, windows)
        if outcome is None and position < len(node.values) - 1:
            rest = [evaluate(m, each, scope) for each in node.values[position + 1 :]]
            if any(conditions.is_fixed(each, is_or) for each in rest):
                return Constant(is_or)  # `n > 1 or scaler is not None`, with a scaler
            if is_or and isinstance(rest[-1], (Thing, Constant)) and not isinstance(value, Thing):
                # `x or default`: as an option it is what was given.
                return value
            word = " or " if is_or else " and "
            key = f"({word.join(m.key(each) for each in (value, *rest))})"
            parts = [m.verdict(each) for each in (value, *rest)]
            if all(outcome is None for outcome, _, _ in parts):
                m.junctions[key] = Junction(is_or, tuple(each[1:] for each in parts))
            return m.unknown(node, (value, *rest), key=key)
    return closing(value, windows)


def _conditional(m: Interpreter, node: ast.IfExp, scope: Scope) -> Value:
    outcome, guards = conditions.outcome_of(m, node.test, scope, preferred_way(m, node))
    m.chose |= bool(guards)
    body = node.body if outcome else node.orelse
    if not guards:
        return evaluate(m, body, scope)
    with m.guarded(guards):
        return evaluate(m, body, scope)


def _spread(m: Interpreter, node: ast.Starred, scope: Scope) -> Value:
    """The values that `*layers()` spreads: all that a generator of the user's yields."""
    value = evaluate(m, node.value, scope)
    if isinstance(value, Generator):
        return yielded(m, value, node, MOST)
    return chunks_of(m, value, node.value)


def _sequence(m: Interpreter, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
    values: list[Value] = []
    is_open = len(node.elts) > SIZE
    for element in node.elts[:SIZE]:
        if isinstance(element, ast.Starred):
            spread = _spread(m, element, scope)
            if isinstance(spread, Sequence):
                values += spread.values
                is_open |= spread.open
            else:
                values.append(spread)
                is_open = True
        else:
            values.append(evaluate(m, element, scope))
    kind = type(node).__name__.lower()
    return Sequence(kind, values, is_open, m.place(node), m.turns_begun)


def _subscript(m: Interpreter, node: ast.Subscript, scope: Scope) -> Value:
    value = evaluate(m, node.value, scope)
    index = evaluate(m, node.slice, scope)
    if isinstance(value, DictValue):
        index = by_default(m, index) or index
    return item_of(m, value, index, node)


def _slice(m: Interpreter, node: ast.Slice, scope: Scope) -> Value:
    parts = [
        Constant(None) if part is None else evaluate(m, part, scope)
        for part in (node.lower, node.upper, node.step)
    ]
    if all(isinstance(part, Constant) and not part.loop_variant for part in parts):
        values = [part.value for part in parts if isinstance(part, Constant)]
        if all(each is None or isinstance(each, int) for each in values):
            return Constant(slice(*values))
    return Sequence("slice", parts)


def _lambda(m: Interpreter, node: ast.Lambda, scope: Scope) -> Value:
    defaults = [evaluate(m, default, scope) for default in node.args.defaults]
    return Function(node, scope, scope.module, "<lambda>", defaults=defaults)


def _text(m: Interpreter, node: ast.JoinedStr, scope: Scope) -> Value:
    parts = [
        evaluate(m, part.value, scope)
        for part in node.values
        if isinstance(part, ast.FormattedValue)
    ]
    if not parts:
        text = "".join(str(each.value) for each in node.values)  # type: ignore[attr-defined]
        m.spend(len(text) >> 8, node)
        return Constant(text)
    loop_variant = any(loop_of(part) for part in parts)
    key = f"text<{', '.join(m.key(part) for part in parts)}@{node.lineno}>"
    pieces = [each.value if isinstance(each, ast.Constant) else "{}" for each in node.values]
    now = _text_now(node, parts)
    parts.append(Constant("".join(map(str, pieces))))
    return Unknown(key, tuple(parts), loop_variant=loop_variant, number=True, text=now)


def _text_now(node: ast.JoinedStr, parts: list[Value]) -> str | None:
    """The text in this turn, if each part is a short constant without a format."""
    pieces, values = [], iter(parts)
    for each in node.values:
        if isinstance(each, ast.Constant):
            pieces.append(str(each.value))
            continue
        part = next(values)
        assert isinstance(each, ast.FormattedValue)
        is_plain = each.format_spec is None and each.conversion == -1
        if not is_plain or not isinstance(part, Constant) or part.modulo is not None:
            return None
        if not is_small(part.value):
            return None
        pieces.append(str(part.value))
    return "".join(pieces)


def _walrus(m: Interpreter, node: ast.NamedExpr, scope: Scope) -> Value:
    value = evaluate(m, node.value, scope)
    m.assign(node.target, value, scope)
    return value


def _yield(m: Interpreter, node: ast.Yield, scope: Scope) -> Value:
    value = Constant(None) if node.value is None else evaluate(m, node.value, scope)
    if scope.on_yield is not None:
        return scope.on_yield(value)
    return m.unknown(node)


def _yield_from(m: Interpreter, node: ast.YieldFrom, scope: Scope) -> Value:
    values, is_whole = elements(m, evaluate(m, node.value, scope), node)
    m.unfinished += not is_whole
    for value in values:
        if scope.on_yield is not None:
            scope.on_yield(value)
    return m.unknown(node)


def _await(m: Interpreter, node: ast.Await, scope: Scope) -> Value:
    return evaluate(m, node.value, scope)


def _starred(m: Interpreter, node: ast.Starred, scope: Scope) -> Value:
    return evaluate(m, node.value, scope)


_BUILTINS = frozenset(dir(builtins))
_HANDLERS: dict[type[ast.AST], Callable[[Interpreter, Any, Scope], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _bool,
    ast.IfExp: _conditional,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: dictionary,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Lambda: _lambda,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.DictComp: comprehension,
    ast.JoinedStr: _text,
    ast.NamedExpr: _walrus,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
    ast.Starred: _starred,
}
