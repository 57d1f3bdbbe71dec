"""Changes one line of a training loop, in every way a hand might: moved, deleted, written twice,
unwrapped, or its `.item()` forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from mutation_kinds import KEYS, kind_of, kinds_of

from trueloop.doctor.static.fixes.edits import Cut, Edit, EditRejected, SourceText, indent_of

BLOCKS = (ast.For, ast.While, ast.If, ast.With, ast.Try)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What the training loop calls, but what is the model's or the data's own business.
KEPT_OUT = {"item", "detach"}
NOT_THE_LOOP = {"__init__", "forward", "__getitem__", "__len__", "init_hidden"}


@dataclass(frozen=True)
class Mutant:
    program: str
    change: str
    """`delete`, `duplicate`, `unwrap`, `without item`, or where it was moved to."""
    kind: str
    """What the changed statement does: `zero_grad`, `backward`, ..."""
    passed: tuple[str, ...]
    """The kinds of the statements that it was moved past."""
    line: int
    statement: str
    text: str


class Program:
    """A source text, and which of its statements belong to the training loop."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.source = name, SourceText(text)
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in self.source.tree.nodes for child in ast.iter_child_nodes(node)
        }
        self.looped = self._functions_of_loops()

    def _functions_of_loops(self) -> set[ast.AST]:
        """Functions of the program that its loops call, and what those call."""
        functions = {
            node.name: node
            for node in self.source.tree.nodes
            if isinstance(node, FUNCTIONS) and node.name not in NOT_THE_LOOP
        }
        found: set[ast.AST] = set()
        waiting: list[ast.AST] = [
            node for node in self.source.tree.nodes if isinstance(node, (ast.For, ast.While))
        ]
        seen: set[ast.AST] = set()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            for part in ast.walk(node):
                # A function that is only handed over (a closure, a callback) is called as well.
                name = part.id if isinstance(part, ast.Name) else getattr(part, "attr", None)
                if name in functions and functions[name] not in found:
                    found.add(functions[name])
                    waiting.append(functions[name])
        return found

    def in_loop(self, node: ast.AST) -> bool:
        """It runs again and again while the program trains."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, (ast.For, ast.While)) or node in self.looped:
                return True
            if isinstance(node, FUNCTIONS) and node.name in NOT_THE_LOOP:
                return False
        return False

    def units(self) -> list[ast.stmt]:
        """The statements to change: simple ones, and a small loop that clears gradients."""
        found: list[ast.stmt] = []
        for node in self.source.statements:
            kind = kind_of(node)
            small_loop = isinstance(node, ast.For) and kind == "zero_grad"
            if isinstance(node, (*BLOCKS, *FUNCTIONS, ast.ClassDef)) and not small_loop:
                continue
            inside_small = any(self.parents.get(node) is each for each in found)
            if (
                not inside_small
                and self.has_own_lines(node)
                and (self.in_loop(node) or kind in KEYS)
                and not is_text(node)
            ):
                found.append(node)
        return found

    def has_own_lines(self, node: ast.stmt) -> bool:
        """No other statement begins or ends on its lines: `a = 1; b = 2` are not changed."""
        try:
            self.source.own_lines(node)
        except EditRejected:
            return False
        return True

    def block_of(self, node: ast.stmt) -> list[ast.stmt]:
        return self.source.tree.block_of(node)

    def mutants(self) -> Iterator[Mutant]:
        """Every change of one line, each resulting program once."""
        seen = {ast.dump(ast.parse(self.source.text))}
        for change, node, passed, edit in self._changes():
            try:
                text = self.source.render(edit)
                compile(text, self.name, "exec", dont_inherit=True)
                tree = ast.dump(ast.parse(text))
            except (SyntaxError, RuntimeError):
                continue
            if tree not in seen:
                seen.add(tree)
                yield Mutant(
                    self.name,
                    change,
                    kind_of(node),
                    tuple(kind for each in passed for kind in kinds_of(each)),
                    node.lineno,
                    ast.unparse(node).splitlines()[0],
                    text,
                )

    def _changes(self) -> Iterator[tuple[str, ast.stmt, list[ast.stmt], Edit]]:
        for node in self.units():
            first, last = self.source.own_lines(node)
            if len(self.block_of(node)) > 1:
                yield "delete", node, [], Edit([self.source.drop(first, last)])
            else:
                yield "delete", node, [], Edit([(*self.source.span(node), "pass")])
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                    name = call.func.attr
                    if name in KEPT_OUT:
                        yield f"without {name}", node, [], Edit([self.bare(call, call.func)])
            if kind_of(node) == "log":
                continue
            again = self.source.put(last + 1, self.source.lines[first : last + 1])
            yield "duplicate", node, [], Edit([again])
            for change, passed, target, where in self._moves(node):
                try:
                    edit = self.moved(node, target, where)
                except EditRejected:  # the target shares its line with other code
                    continue
                yield change, node, passed, edit
        for block in self.source.statements:
            if isinstance(block, (ast.With, ast.If)) and not getattr(block, "orelse", []):
                if self.in_loop(block):
                    yield "unwrap", block, [], Edit(self.unwrapped(block))
            elif isinstance(block, FUNCTIONS):
                for decorator in block.decorator_list:
                    line = decorator.lineno - 1
                    yield "unwrap", block, [], Edit([self.source.drop(line, line)])

    def _moves(self, node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt], ast.stmt, str]]:
        block = self.block_of(node)
        at = block.index(node)
        reach = len(block) if kind_of(node) in KEYS else 1
        for k in range(at + 1, min(at + reach, len(block) - 1) + 1):
            yield f"down {k - at}", block[at + 1 : k + 1], block[k], "after"
        for k in range(at - 1, max(at - reach, 0) - 1, -1):
            if not is_text(block[k]):
                yield f"up {at - k}", block[k:at], block[k], "before"
        parent = self.parents.get(node)
        if isinstance(parent, BLOCKS):
            yield "out before", block[:at], parent, "before"
            yield "out after", block[at + 1 :], parent, "after"
        for neighbour, name in ((at + 1, "into next"), (at - 1, "into previous")):
            if 0 <= neighbour < len(block) and isinstance(block[neighbour], BLOCKS):
                body: list[ast.stmt] = block[neighbour].body  # type: ignore[attr-defined]
                yield f"{name}, first", [], body[0], "before"
                yield f"{name}, last", body, body[-1], "after"

    def moved(self, node: ast.stmt, target: ast.stmt, where: str) -> Edit:
        source = self.source
        first, last = source.own_lines(node)
        target_first, target_last = source.own_lines(target)
        gap = target_first if where == "before" else target_last + 1
        lines = source.indented(
            first, last, indent_of(source.lines[first]), indent_of(source.lines[target_first])
        )
        block = self.block_of(node)
        out: Cut = source.drop(first, last)
        if len(block) == 1:
            out = (*source.span(node), "pass")
        return Edit([out, source.put(gap, lines)])

    def bare(self, call: ast.Call, method: ast.Attribute) -> Cut:
        """`loss.item()` without its `.item()`."""
        return self.source.span(method.value)[1], self.source.span(call)[1], ""

    def unwrapped(self, block: ast.With | ast.If) -> list[Cut]:
        """Its head is deleted, its body takes its place."""
        source = self.source
        first, last = source.own_lines(block)
        body = source.own_lines(block.body[0])[0]
        lines = source.indented(
            body, last, indent_of(source.lines[body]), indent_of(source.lines[first])
        )
        return [source.drop(first, last), source.put(first, lines)]


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
