"""The watched program's source, as far as a running frame needs it: loops, calls and names."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

from trueloop.doctor.model import vocabulary
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import last_part, walk

LoopNode = ast.For | ast.AsyncFor | ast.While
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class SourceFile:
    """One file, parsed; without any nodes if its source cannot be had."""

    def __init__(self, path: str) -> None:
        self.path = path
        text = "".join(linecache.getlines(path))
        self.text = text
        """The text that ran: the file may change before a finding about it is printed."""
        try:
            self.tree: ast.Module | None = ast.parse(text) if text else None
        except (SyntaxError, ValueError, RecursionError):
            self.tree = None
        self.nodes: list[ast.AST] = []
        """All of the tree: most questions about a file look through each."""
        self._loops: list[tuple[int, int, LoopNode]] = []
        self._functions: list[tuple[int, int]] = []
        self._statements: dict[int, list[ast.stmt]] = {}
        if self.tree is not None:
            self._index(self.tree)

    def _index(self, tree: ast.Module) -> None:
        self.nodes = walk(tree)
        for node in self.nodes:
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                last = node.body[-1].end_lineno or node.lineno
                self._loops.append((node.lineno, last, node))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                self._functions.append((node.lineno, node.end_lineno or node.lineno))
            if isinstance(node, ast.stmt):
                self._statements.setdefault(node.lineno, []).append(node)
        self._loops.sort(key=lambda found: (found[0], -found[1]))

    def loops_around(self, line: int) -> list[LoopNode]:
        """The loops of its own function whose bodies contain a line, outermost first."""
        inner = [first for first, last in self._functions if first <= line <= last]
        begins = max(inner, default=0)
        return [
            node
            for first, last, node in self._loops
            if begins <= first and _in_body(node, line) and line <= last
        ]

    def header_at(self, place: Location) -> ast.For | None:
        """The `for` that asks for its next item at a place."""
        for node in self._statements.get(place.line, ()):
            if isinstance(node, ast.For):
                asks = (node.lineno, node.col_offset + 1) == (place.line, place.column)
                # Up to Python 3.11 the instruction has the position of the whole statement.
                if (asks and place.end_line == node.end_lineno) or _within(node.iter, place):
                    return node
        for _, _, node in self._loops:
            if isinstance(node, ast.For) and _within(node.iter, place):
                return node
        return None

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement that a line belongs to."""
        best: ast.stmt | None = None
        for first in range(line, max(0, line - 40), -1):
            for node in self._statements.get(first, ()):
                if (node.end_lineno or first) >= line:
                    best = node
            if best is not None:
                return best
        return best

    def statements_at(self, line: int) -> list[ast.stmt]:
        """The statements that begin on a line."""
        return self._statements.get(line, [])

    def call_at(self, place: Location) -> ast.Call | None:
        """The call that a place spans."""
        statement = self.statement_at(place.line)
        for node in walk(statement) if statement is not None else ():
            if isinstance(node, ast.Call) and _spans(node, place):
                return node
        return None


def function_around(place: Location) -> ast.AST | None:
    """The function whose code a line is in; None outside of all."""
    nodes = [
        each
        for each in source_of(place.path).nodes
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        and each.lineno <= place.line <= (each.end_lineno or each.lineno)
    ]
    return max(nodes, key=lambda each: each.lineno, default=None)


def _in_body(node: LoopNode, line: int) -> bool:
    first = node.body[0].lineno
    if first > node.lineno:
        return line >= first or (isinstance(node, ast.While) and line >= node.lineno)
    return line >= node.lineno


def _within(node: ast.expr, place: Location) -> bool:
    begin = (node.lineno, node.col_offset)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return begin <= (place.line, place.column - 1) < end


def _spans(node: ast.expr, place: Location) -> bool:
    return (node.lineno, node.col_offset + 1) == (place.line, place.column) and (
        node.end_lineno,
        (node.end_col_offset or 0) + 1,
    ) == (place.end_line, place.end_column)


@lru_cache(maxsize=512)
def source_of(path: str) -> SourceFile:
    return SourceFile(path)


@lru_cache(maxsize=8192)
def loops_of(code: CodeType, line: int) -> tuple[LoopNode | CodeType, ...]:
    """The loops that contain a line of a code object, outermost first; a comprehension is one."""
    if code.co_name in COMPREHENSIONS:
        return (code,)
    return tuple(source_of(code.co_filename).loops_around(line))


@lru_cache(maxsize=8192)
def turns_recording_on(path: str, line: int) -> bool:
    """A line is in a block or a function that turns autograd on in so many words."""
    return any(first <= line <= last for first, last in _recorded_lines(path))


@lru_cache(maxsize=512)
def _recorded_lines(path: str) -> tuple[tuple[int, int], ...]:
    found = []
    for node in source_of(path).nodes:
        asked: list[ast.expr] = []
        if isinstance(node, (ast.With, ast.AsyncWith)):
            asked = [each.context_expr for each in node.items]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            asked = node.decorator_list
        if not any(map(_turns_on, asked)):
            continue
        assert isinstance(node, (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef))
        found.append((node.body[0].lineno, node.end_lineno or 0))
    return tuple(found)


def _turns_on(node: ast.expr) -> bool:
    name = dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    if name == "enable_grad":
        return True
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return name == "set_grad_enabled" and isinstance(first, ast.Constant) and first.value is True


@lru_cache(maxsize=8192)
def spelled(place: Location) -> str:
    """How the thing that a method is called on is written: `self.optimizer`; empty for more."""
    call = source_of(place.path).call_at(place) if place.end_line else None
    if call is None:
        return ""
    function = call.func
    return dotted(function.value) if isinstance(function, ast.Attribute) else ""


@lru_cache(maxsize=8192)
def callee_of(place: Location) -> tuple[str, Location]:
    """How what is called is written, and where: `self.model`."""
    call = source_of(place.path).call_at(place) if place.end_line else None
    if call is None:
        return "", place
    node = call.func
    where = Location(
        place.path,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or 0) + 1,
        place.function,
    )
    return dotted(node), where


@lru_cache(maxsize=8192)
def argument(place: Location, index: int, keyword: str = "") -> str:
    """How an argument of a call is written, if it is a name or a chain of names."""
    call = source_of(place.path).call_at(place) if place.end_line else None
    if call is None:
        return ""
    for given in call.keywords:
        if given.arg == keyword:
            return dotted(given.value)
    return dotted(call.args[index]) if index < len(call.args) else ""


@lru_cache(maxsize=8192)
def written(place: Location, index: int, *keywords: str) -> str:
    """How an argument of a call is written, whatever it is."""
    call = source_of(place.path).call_at(place) if place.end_line else None
    if call is None:
        return ""
    for given in call.keywords:
        if given.arg in keywords:
            return ast.unparse(given.value)
    return ast.unparse(call.args[index]) if 0 <= index < len(call.args) else ""


@lru_cache(maxsize=8192)
def result_used(place: Location) -> bool:
    """The result of a call is used."""
    statement = source_of(place.path).statement_at(place.line)
    if not isinstance(statement, ast.Expr) or not place.end_line:
        return True
    return not (isinstance(statement.value, ast.Call) and _spans(statement.value, place))


@lru_cache(maxsize=2048)
def assigned_to(place: Location) -> str:
    """The name that the statement at a place binds, if it binds one: `model`, `self.net`; in the
    midst of one the keyword, or the key of the dict, whose value it is."""
    statement = source_of(place.path).statement_at(place.line)
    entry = None if statement is None else _entry(statement, place)
    if entry is not None:
        return entry
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return dotted(statement.targets[0])
    if isinstance(statement, ast.AnnAssign):
        return dotted(statement.target)
    return ""


def _entry(statement: ast.stmt, place: Location) -> str | None:
    for node in walk(statement):
        if isinstance(node, ast.keyword) and node.arg and _is_at(node.value, place):
            return node.arg
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                written = key.value if isinstance(key, ast.Constant) else None
                if isinstance(written, str) and _is_at(value, place):
                    return written
    return None


def _is_at(node: ast.expr, place: Location) -> bool:
    return isinstance(node, ast.Call) and (node.lineno, node.col_offset + 1) == place[1:3]


def variables(node: LoopNode | CodeType) -> tuple[str, ...]:
    """The names that a loop binds."""
    if not isinstance(node, (ast.For, ast.AsyncFor)):
        return ()
    return tuple(name.id for name in walk(node.target) if isinstance(name, ast.Name))


def leaves(node: LoopNode | CodeType) -> bool:
    """A `break` or `return` may end the loop early."""
    if isinstance(node, CodeType):
        return False
    return any(isinstance(each, (ast.Break, ast.Return)) for each in walk(node))


@lru_cache(maxsize=512)
def uses_up(node: ast.For) -> bool:
    """A loop of a generator that hands none of its elements on: neither does its body yield, nor
    does it only collect them."""
    inside = [each for statement in node.body for each in walk(statement)]
    if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in inside):
        return False
    taken = {each.id for each in walk(node.target) if isinstance(each, ast.Name)}
    collected = (
        part.id
        for each in inside
        if isinstance(each, ast.Call) and last_part(each.func) in _COLLECTS
        for given in each.args
        for part in walk(given)
        if isinstance(part, ast.Name)
    )
    return taken.isdisjoint(collected)


_COLLECTS = frozenset("append extend add put appendleft".split())


def dotted(node: ast.AST) -> str:
    """`a.b[c]` as it is written; empty for anything that computes."""
    plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.Store)
    if all(isinstance(each, plain) for each in walk(node)):
        return ast.unparse(node)
    return ""


def names_in(place: Location) -> Iterator[str]:
    """The names in the statement at a place."""
    statement = source_of(place.path).statement_at(place.line)
    for node in walk(statement) if statement is not None else ():
        if isinstance(node, ast.Name):
            yield node.id


def names_of_call(place: Location) -> tuple[str, ...]:
    """The names in the call at a place, without those around it."""
    statement = source_of(place.path).statement_at(place.line) if place.line else None
    for node in walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and _is_at(node, place):
            return tuple(each.id for each in walk(node) if isinstance(each, ast.Name))
    return ()


@lru_cache(maxsize=2048)
def calls_method(path: str, name: str, method: str) -> bool:
    """A file calls a method on something of this name, whatever it belongs to."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method
        and (getattr(node.value, "attr", None) or getattr(node.value, "id", None)) == name
        for node in source_of(path).nodes
    )


@lru_cache(maxsize=512)
def handles_prefix(path: str) -> bool:
    """A file handles the prefix that a wrapper puts before keys."""
    tree = source_of(path).tree
    return tree is not None and vocabulary.handles_prefix(tree)


@lru_cache(maxsize=512)
def saves_parts(path: str) -> bool:
    """A file writes a choice of a model's entries."""
    tree = source_of(path).tree
    return tree is not None and vocabulary.saves_parts(tree)


@lru_cache(maxsize=1024)
def assigned(path: str, names: frozenset[str]) -> tuple[str, ...]:
    """The values assigned to attributes of these names, anywhere in a file."""
    found = []
    for node in source_of(path).nodes:
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for part, value in _unpacked(target, node.value):
                last = getattr(part, "attr", None) or getattr(part, "id", None)
                if last in names:
                    found.append(ast.unparse(value))
    return tuple(found)


def _unpacked(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`first, best = 0, 0.0`, or `first, best = read()`: each name with what it is given."""
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    written = value.elts if isinstance(value, ast.Tuple) else []
    values = written if len(written) == len(target.elts) else [value] * len(target.elts)
    return list(zip(target.elts, values, strict=True))


@lru_cache(maxsize=1024)
def returned(path: str, names: frozenset[str]) -> tuple[str, ...]:
    """The values that functions of these names return, anywhere in a file."""
    return tuple(
        ast.unparse(node.value)
        for function in source_of(path).nodes
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name in names
        for node in walk(function)
        if isinstance(node, ast.Return) and node.value is not None
    )


def is_computed(path: str, name: str) -> bool:
    """Something of this name is, somewhere in a file, what a call or an entry of something says."""
    values = assigned(path, frozenset([name.rpartition(".")[2]]))
    return any("(" in value or "[" in value for value in values)


@lru_cache(maxsize=4096)
def tests_above(path: str, line: int) -> tuple[str, ...]:
    """The conditions around a line in its function, or before it if they leave the function or the
    turn of its loop; and the function's decorators."""
    tree = source_of(path).tree
    if tree is None:
        return ()
    around = [
        node
        for node in source_of(path).nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    definition: ast.AST = around[-1] if around else tree
    found = [ast.unparse(each) for each in getattr(definition, "decorator_list", ())]
    for node in walk(definition):
        if isinstance(node, ast.If) and node.lineno <= line:
            inside = line <= (node.end_lineno or 0)
            leaves = isinstance(node.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
            loops = source_of(path).loops_around(line)
            same_loop = bool(loops) and max(each.lineno for each in loops) < node.lineno
            if inside or (leaves and (around or same_loop)):
                found.append(ast.unparse(node.test))
    return tuple(found)


@lru_cache(maxsize=4096)
def is_conditional(place: Location) -> bool:
    """A line is inside an `if` of the innermost loop or function around it."""
    file = source_of(place.path)
    begins = max((node.lineno for node in file.loops_around(place.line)), default=0)
    return any(
        isinstance(node, ast.If)
        and begins < node.lineno <= place.line <= (node.end_lineno or 0)
        and node.lineno > begins
        and not (node.test.lineno <= place.line <= (node.test.end_lineno or 0))
        for node in file.nodes
    )


@lru_cache(maxsize=512)
def is_returned(place: Location) -> bool:
    """A line is part of a `return`: the caller gets the value."""
    return any(
        isinstance(node, ast.Return) and node.lineno <= place.line <= (node.end_lineno or 0)
        for node in source_of(place.path).nodes
    )


@lru_cache(maxsize=512)
def cuts_by_rank(path: str) -> bool:
    """A file takes a share of its data by the rank: `indices[rank::world_size]`."""
    tree = source_of(path).tree
    return tree is not None and vocabulary.cuts_by_rank(tree)


_LEAVE_ALONE = frozenset(
    "enumerate len iter next zip tqdm print list cycle range isinstance".split()
)


@lru_cache(maxsize=1024)
def given_away(path: str, name: str) -> bool:
    """Something of this name is, somewhere in a file, handed to what the file does not define."""
    if not name:
        return False
    nodes = source_of(path).nodes
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    own = {node.name for node in nodes if isinstance(node, kinds)} | _LEAVE_ALONE
    return any(
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) not in own
        and any(
            getattr(given, "attr", getattr(given, "id", "")) == name
            for given in (*node.args, *(each.value for each in node.keywords))
        )
        for node in nodes
    )
