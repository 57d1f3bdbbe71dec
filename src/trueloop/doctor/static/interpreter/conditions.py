"""Tests of `if`, `while` and conditional expressions: what they come to in one run."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from typing import Any, TypeGuard

from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import (
    Checkpoint,
    Loader,
    Loop,
    Model,
    Optimizer,
    Scheduler,
    Tensor,
    Thing,
)
from trueloop.doctor.model.vocabulary import RANK_GUARD
from trueloop.doctor.static.interpreter.derived_containers import container_in
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import find_method
from trueloop.doctor.static.interpreter.survey import end_name
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    LibraryMethod,
    LibraryName,
    Method,
    OpaqueObject,
    Scope,
    Sequence,
    Unknown,
    Value,
    constant,
    varies,
)
from trueloop.doctor.static.stubs.tensor_shapes import broadcast, shape_of

_OF_REST: dict[tuple[type[ast.cmpop], object], bool] = {
    (ast.Gt, 0): True, (ast.GtE, 1): True, (ast.Lt, 1): False, (ast.LtE, 0): False,
}  # fmt: skip
"""Comparisons of a remainder that ask whether there is one."""
_DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32",
    "float": "float32", "float64": "float64", "double": "float64", "float8_e4m3fn": "float8_e4m3fn",
}  # fmt: skip
"""Types of numbers that a training runs in, by their names in `torch`."""
_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_SIGN = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


_OF_TORCH: dict[str, type[Thing]] = {
    "torch.nn.Module": Model,
    "torch.optim.Optimizer": Optimizer,
    "torch.optim.optimizer.Optimizer": Optimizer,
    "torch.utils.data.DataLoader": Loader,
    "torch.utils.data.dataloader.DataLoader": Loader,
    "torch.Tensor": Tensor,
    "torch.autograd.Variable": Tensor,  # true of every tensor
}
"""The things that are instances of torch's own classes."""


def ways_out(run: Interpreter) -> Iterator[tuple[str, bool]]:
    """Conditions under which a run has left a function or the program, though not at once in both
    cases: which outcome stays."""
    for identity, site in run.sites.items():
        for branch in (True, False):
            taken, other = site.branches if branch else site.branches[::-1]
            once = (identity, branch) in run.reached and (identity, not branch) not in run.reached
            if once and run.project.leaves(taken) and not run.project.leaves(other):
                yield site.key, branch == site.negated


def outcome_of(
    m: Interpreter,
    node: ast.expr,
    scope: Scope,
    preferred: bool | None = None,
    updates: bool | None = None,
) -> tuple[bool, list[str]]:
    """The value of a test in this run, and the open conditions that made it so.

    `preferred`: which outcome to prefer where the source leaves it open; `updates`: which one leads
    to an update, and therefore comes at times where it changes from turn to turn.
    """
    if isinstance(node, ast.BoolOp):
        wanted = isinstance(node.op, ast.Or)
        guards: list[str] = []
        kept_by_last = not wanted and preferred is False and _may_be_kept_by_last(m, node, scope)
        for part in node.values:
            option = kept_by_last and part is not node.values[-1]
            outcome, more = outcome_of(m, part, scope, None if option else preferred, updates)
            guards += more
            if outcome is wanted:
                return wanted, guards
            if any(guard.removeprefix("not ") in m.policy.forced for guard in more):
                preferred = None  # The run was asked to get past this test.
        return not wanted, guards
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        preferred = None if preferred is None else not preferred
        if preferred is None and _asks_for_type(node.operand) and m.policy.optional:
            preferred = False  # `if not isinstance(...)`: the branch is the option.
        updates = None if updates is None else not updates
        outcome, guards = outcome_of(m, node.operand, scope, preferred, updates)
        return not outcome, guards
    if preferred is None and isinstance(node, ast.Attribute):
        files = (scope.module.survey, m.modules[0].survey)
        if any(each.exits and written(node) in each.exits for each in files):
            preferred = False
    if preferred is None and isinstance(node, ast.Attribute) and node.attr == "requires_grad":
        preferred = True  # as parameters are, unless something freezes them
    if preferred is None and m.turns and isinstance(node, (ast.Name, ast.Attribute, ast.Compare)):
        # The turns before the last one show what a loop does.
        name, ends = end_name(node), scope.module.survey.ends
        preferred = False if (name, True) in ends else True if (name, False) in ends else None
    value = m.evaluate(node, scope)
    if is_count(value):
        m.history.counts_asked += 1
    if isinstance(value, Constant) and value.modulo is not None:
        m.tested.append(value.modulo)
    if preferred is None and _asks_for_entry(node, value):
        preferred = isinstance(node.ops[0], ast.In)
    if preferred is None and updates is not None and not m.policy.optional and varies(value):
        preferred = updates
    outcome, guard = m.decide(value, preferred)
    return outcome, [guard] if guard else []


def _may_be_kept_by_last(m: Interpreter, node: ast.BoolOp, scope: Scope) -> bool:
    """A run with all options keeps the options of `if option and data is None: raise` and of `if
    option and steps > 1 and ranks > 1: raise`, since the last part is still open."""
    *options, last = node.values
    if not m.policy.optional or not all(map(_is_option, options)):
        return False
    if any(isinstance(each, ast.Call) for each in ast.walk(last)):
        return False
    outcome, key, _ = m.verdict(m.evaluate(last, scope))
    return outcome is None and key not in m.decided and not m.policy.forces(key)


def _is_option(node: ast.expr) -> bool:
    """`args.option`, or a comparison of it with a number or a text that is written there."""
    if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
        node = node.left
    return isinstance(node, ast.Attribute)


def is_fixed(value: Value, outcome: bool) -> bool:
    """A truth that neither options nor loops change."""
    if not isinstance(value, Constant) or value.modulo is not None or value.loop_variant:
        return False
    return value.value is outcome


def _asks_for_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"


def _asks_for_entry(node: ast.expr, value: Value) -> TypeGuard[ast.Compare]:
    """`if name in checkpoint["optimizers"]`: a file that the program has written has its parts."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return False
    of = value.of[-1:] if isinstance(value, Unknown) else ()
    return any(isinstance(each, Checkpoint) for each in of)


def compare(m: Interpreter, sign: ast.cmpop, left: Any, right: Any, node: ast.expr) -> Value:
    """One comparison."""
    kind, left, right = type(sign), as_read(m, left), as_read(m, right)
    if is_count(left) or is_count(right):
        m.history.counts_asked += 1
    if kind in (ast.Is, ast.IsNot) or _is_none(left) or _is_none(right):
        return _identity(m, kind, left, right, node)
    if kind in (ast.In, ast.NotIn):
        return _contained(m, kind, left, right, node)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _numbers(m, kind, left, right)
    if kind in (ast.Eq, ast.NotEq):
        if isinstance(left, Constant) and isinstance(right, Sequence):
            left, right = right, left
        same = _same_items(left, right) if isinstance(left, Sequence) else _same_type(left, right)
        if same is not None:
            return Constant(same == (kind is ast.Eq))
    if isinstance(left, Constant) and left.loop_variant and kind in (ast.Eq, ast.NotEq):
        return _counted(m, kind, left, right)
    if isinstance(right, Constant) and right.loop_variant and kind in (ast.Eq, ast.NotEq):
        return _counted(m, kind, right, left)
    if kind in (ast.Lt, ast.GtE) and (loop := _counted_to_its_end(m, left, right)) is not None:
        return Constant(_is_last(m, loop) == (kind is ast.GtE))
    if isinstance(left, Thing) and not left.known and isinstance(constant(right), str):
        left = Unknown(m.key(left))  # `args.optimizer == "adam"` asks for a name
    if isinstance(left, Unknown) and isinstance(right, Constant) and kind in (ast.Eq, ast.NotEq):
        return _equality(m, kind, left, right)
    key = f"{m.key(left)} {_SIGN[kind]} {m.key(right)}"
    return Unknown(key, (left, right), shape=broadcast([shape_of(left), shape_of(right)]))


def is_count(value: Value) -> bool:
    """A number that changes from turn to turn of a loop."""
    return isinstance(value, Constant) and bool(value.loop_variant)


def _is_none(value: object) -> bool:
    return isinstance(value, Constant) and value.value is None


def _identity(
    m: Interpreter, kind: type[ast.cmpop], left: Any, right: Any, node: ast.expr
) -> Value:
    """`x is None` asks the same as `not x`; other identities are like equality."""
    negated = kind in (ast.IsNot, ast.NotEq)
    if _is_none(left) and not _is_none(right):
        left, right = right, left
    if _is_none(right):
        if isinstance(left, Unknown):
            key = m.key(left)
            return Unknown(key if negated else f"not {key}", (left,))
        return Constant(_is_none(left) != negated)
    if isinstance(left, Constant) and isinstance(right, Constant):
        same = left.value is right.value or left.value == right.value
        return Constant(same != negated)
    if left is right and kind in (ast.Is, ast.IsNot):
        return Constant(not negated)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        if (
            isinstance(right, Constant)
            and isinstance(right.value, bool)
            and isinstance(left, Unknown)
        ):
            turned = right.value == negated
            return Unknown(f"not {left.key}" if turned else left.key, (left,))
        key = f"{m.key(left)} == {m.key(right)}"
        return Unknown(f"not {key}" if negated else key, (left, right))
    if isinstance(left, LibraryName) and isinstance(right, LibraryName):
        return Constant((left.name == right.name) != negated)
    return Constant((left is right) != negated)


def _same_type(left: object, right: object) -> bool | None:
    """Two types of a tensor's numbers are one: `dtype == torch.float16`; None for other things, and
    for different types of which a function may return one as well as the other."""
    if not isinstance(left, LibraryName) or not isinstance(right, LibraryName):
        return None
    one, other = (_DTYPES.get(each.name.removeprefix("torch.")) for each in (left, right))
    if one is None or other is None:
        return None
    return None if one != other and (left.chosen or right.chosen) else one == other


def _same_items(left: Sequence, right: object) -> bool | None:
    """Two containers of constants are equal; None where that is not known. `TRAIN = 0,` in an
    enumeration is a tuple. No container is equal to a text or a number."""
    if left is right:
        return True
    if isinstance(right, Constant) and isinstance(right.value, (str, int, float)):
        return False
    if not isinstance(right, Sequence) or left.open or right.open:
        return None
    pairs = [*zip(left.values, right.values, strict=False)]
    if not all(
        isinstance(each, Constant) and not each.loop_variant for pair in pairs for each in pair
    ):
        return None
    same = all(constant(one) == constant(other) for one, other in pairs)
    return same and left.kind == right.kind and len(left.values) == len(right.values)


def as_read(m: Interpreter, value: Value) -> Value:
    """An attribute of a library's object, which may be a method or any value, where it is compared
    or computed with: `AttrDict(options).steps > 1`."""
    if isinstance(value, LibraryMethod) and find_method(value.receiver, value.name) is None:
        return Unknown(m.key(value), (value.receiver,))
    return value


def _contained(
    m: Interpreter, kind: type[ast.cmpop], left: Any, right: Any, node: ast.expr
) -> Value:
    negated = kind is ast.NotIn
    if isinstance(left, Unknown) and left.key in m.equal:
        left = Constant(m.equal[left.key])  # an earlier test has shown it
    known = _known_items(right) if isinstance(left, Constant) else None
    if isinstance(left, Constant) and known is not None:
        m.spend(len(known) >> 8, node)
        open_turn = left.loop_variant and isinstance(known, list) and _comes_later(m, left, known)
        if not open_turn:
            try:
                return Constant((left.value in known) != negated)
            except TypeError:
                pass
    key = f"{m.key(left)} in {m.key(right)}"
    return Unknown(f"not {key}" if negated else key, (left, right))


def _known_items(value: object) -> str | bytes | list[Any] | None:
    """The items that `in` searches, where all of them are known."""
    if isinstance(value, Instance) and value.cls.lookup("__contains__") is None:
        value = container_in(value)
    if isinstance(value, Constant) and isinstance(value.value, (str, bytes)):
        return value.value
    if isinstance(value, Constant) and isinstance(value.value, tuple):
        return list(value.value)
    if isinstance(value, Sequence) and not value.open:
        items = [each.value for each in value.values if isinstance(each, Constant)]
        return items if len(items) == len(value.values) else None
    if isinstance(value, DictValue) and not value.open:
        return list(value.entries)
    if isinstance(value, Model) and value.kind.endswith(".ModuleDict") and value.complete:
        return list(value.children)
    return None


def _comes_later(m: Interpreter, count: Constant, items: list[Any]) -> bool:
    """A loop's count is not yet, but will be, one of these: `if epoch in (60, 80)`."""
    numbers = [Constant(each) for each in items if isinstance(each, int)]
    outcomes = [_counted(m, ast.Eq, count, each) for each in numbers]
    return any(isinstance(each, Unknown) for each in outcomes) and count.value not in items


def _numbers(m: Interpreter, kind: type[ast.cmpop], left: Constant, right: Constant) -> Value:
    if right.loop_variant and not left.loop_variant:
        swap: dict[type[ast.cmpop], type[ast.cmpop]] = {
            ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
        }  # fmt: skip
        left, right, kind = right, left, swap.get(kind, kind)
    if left.modulo is not None and (is_rest := _OF_REST.get((kind, right.value))) is not None:
        return Constant((left.value != 0) == is_rest, modulo=left.modulo)
    if left.modulo is not None and kind in (ast.Eq, ast.NotEq):
        wanted = 0 if right.value == 0 else 1
        return Constant((left.value == wanted) == (kind is ast.Eq), modulo=left.modulo)
    if left.loop_variant and not right.loop_variant and isinstance(right.value, (int, float)):
        if kind in (ast.Eq, ast.NotEq):
            return _counted(m, kind, left, right)
        if right.value > 2:
            # A few turns represent many: whether the run gets that far is open.
            return Unknown(f"{m.key(left)} {_SIGN[kind]} {right.value}", (left, right))
    try:
        return Constant(bool(_COMPARE[kind](left.value, right.value)))
    except TypeError:
        return Unknown(f"{m.key(left)} {_SIGN[kind]} {m.key(right)}", (left, right))


def _counted(m: Interpreter, kind: type[ast.cmpop], left: Constant, right: Any) -> Value:
    """A loop's count against a number: the last turn, one of the simulated ones, or an open one."""
    outcome: bool | None = None
    loop = left.loop_variant
    if left.modulo is not None:
        outcome = left.value == (0 if isinstance(right, Constant) and right.value == 0 else 1)
    elif isinstance(right, Constant):
        outcome = left.value == right.value
        if isinstance(loop, Loop) and isinstance(loop.turns, int) and loop.turns > 3:
            index = next((turn.index for turn in m.turns if turn.loop is loop), 0)
            if right.value - (left.value - index) == loop.turns - 1:
                return Constant(_is_last(m, loop) == (kind is ast.Eq))
        if not outcome and isinstance(right.value, int) and right.value > 2:
            if isinstance(loop, Loop) and not _is_last(m, loop):
                return Constant(kind is not ast.Eq)  # it comes once, after the first turns
            return Unknown(f"{left.value} == {right.value}", (left, right))
    elif isinstance(loop, Loop) and not loop_of(right):
        outcome = _is_last(m, loop)
    else:
        key = f"{m.key(left)} == {m.key(right)}"
        found = Unknown(key if kind is ast.Eq else f"not {key}", (left, right))
        if isinstance(right, Unknown):
            found.equals = (right.key, left.value)
        return found
    return Constant(outcome == (kind is ast.Eq), modulo=left.modulo)


def _counted_to_its_end(m: Interpreter, left: Value, right: Value) -> Loop | None:
    """The loop of `i < len(loader) - 1` or `i + 1 < len(loader)`, which is false in its last
    turn."""
    loop = left.loop_variant if isinstance(left, Constant) and left.modulo is None else None
    if not isinstance(left, Constant) or not isinstance(loop, Loop):
        return None
    length = re.fullmatch(r"(\()?len\(.+\)(?(1) - 1\))", m.key(right))
    index = next((turn.index for turn in m.turns if turn.loop is loop), None)
    if length is None or index is None or left.value - index != (0 if length[1] else 1):
        return None
    return loop


def _is_last(m: Interpreter, loop: Loop) -> bool:
    return any(turn.loop is loop and turn.index == loop.simulated - 1 for turn in m.turns)


def _equality(m: Interpreter, kind: type[ast.cmpop], left: Unknown, right: Constant) -> Value:
    negated = kind is ast.NotEq
    known = left.key in m.equal
    # What only one rank does stays an open condition: the others do not come here.
    if known and not (m.equal[left.key] == right.value and RANK_GUARD.search(left.key)):
        return Constant((m.equal[left.key] == right.value) != negated)
    if isinstance(right.value, bool):
        turned = right.value == negated
        return Unknown(f"not {left.key}" if turned else left.key, (left,))
    key = f"{left.key} == {right.value!r}"
    found = Unknown(f"not {key}" if negated else key, (left, right))
    if not left.loop_variant:
        found.equals = (left.key, right.value)
    return found


_PLAIN = frozenset(
    "bool bytes dict float int list set str tuple Mapping MutableMapping OrderedDict".split()
)
"""Classes of plain values and containers: no module is one of these."""


def instance_of(m: Interpreter, value: Any, kind: Any, node: ast.AST) -> Value:
    """`isinstance(value, kind)`."""
    if isinstance(kind, Sequence):
        with m.nested(node) as may_go:
            m.spend(len(kind.values), node)
            answers = [instance_of(m, value, each, node) for each in kind.values if may_go]
        if any(isinstance(each, Constant) and each.value for each in answers):
            return Constant(True)
        if answers and all(isinstance(each, Constant) for each in answers):
            return Constant(False)
    cls = value.cls if isinstance(value, (Instance, Thing)) else None
    if isinstance(kind, Class) and isinstance(cls, Class):
        return Constant(kind in cls.lineage())
    if isinstance(kind, Class) and isinstance(
        value, (Constant, Sequence, DictValue, Function, Method)
    ):
        return Constant(False)
    if isinstance(kind, LibraryName) and isinstance(value, Constant) and value.value is not None:
        return Constant(type(value.value).__name__ == kind.name.rpartition(".")[2])
    if isinstance(kind, LibraryName) and isinstance(value, Sequence):
        return Constant(kind.name == f"builtins.{value.kind}")
    if isinstance(kind, LibraryName) and isinstance(value, DictValue):
        return Constant(kind.name.rpartition(".")[2] in ("dict", "Mapping", "MutableMapping"))
    if isinstance(kind, LibraryName) and isinstance(value, (Thing, OpaqueObject)):
        if isinstance(value, Model) and kind.name.rpartition(".")[2] in _PLAIN:
            return Constant(False)
        asked = _OF_TORCH.get(kind.name)
        if asked is Model and isinstance(value, Model):
            return Constant(True)  # also one known only by its use: what is not, has no mode
        known = isinstance(value, Thing) and (value.known or getattr(value, "graph", False))
        if asked is not None and known and cls is None:
            return Constant(isinstance(value, asked))
        mine = getattr(value, "kind", "")
        if isinstance(value, Scheduler) and value.known and cls is None:
            schedule, _, short = kind.name.rpartition(".")
            if schedule == "torch.optim.lr_scheduler":
                return Constant(short in (mine, "LRScheduler", "_LRScheduler"))
        if mine and mine.rpartition(".")[2] == kind.name.rpartition(".")[2]:
            return Constant(True)
    return Unknown(f"isinstance({m.key(value)}, {m.key(kind)})", (value, kind))
