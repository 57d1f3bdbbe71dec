"""The machine with all that moves it on."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trueloop.doctor.static.interpreter import attributes, calls, expressions, statements
from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.values import Function, Scope, Value


class SourceInterpreter(Interpreter):
    """One run of a program."""

    def evaluate(self, node: ast.expr, scope: Scope) -> Value:
        return expressions.evaluate(self, node, scope)

    def run_block(self, body: list[ast.stmt], scope: Scope) -> ControlFlow | None:
        return statements.run_block(self, body, scope)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        statements.assign(self, target, value, scope)

    def bind(self, name: str, value: Value, scope: Scope) -> None:
        statements.bind(self, name, value, scope)

    def call_value(
        self,
        function: Value | None,
        args: list[Value],
        kwargs: dict[str, Value] | None = None,
        node: ast.AST | None = None,
    ) -> Value:
        return calls.call(self, function, args, kwargs or {}, node or ast.Pass())

    def enter(
        self,
        function: Function,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.AST,
        on_yield: Callable[[Value], Value],
    ) -> None:
        calls.enter(self, function, args, kwargs, node, on_yield=on_yield)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        return attributes.read(self, value, name, node)
