"""The classes of a file that a framework trains: a run for each, with the framework's own loop."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter import lightning_loop, trainer_loop
from trueloop.doctor.static.interpreter.imports import value_in
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.receivers import definitions, receiver
from trueloop.doctor.static.interpreter.values import Class, Module, TrainerObject


class FrameworkRun(NamedTuple):
    """A run that begins with a framework's loop."""

    drive: Callable[[Interpreter], None]
    place: tuple[str, int, int]
    """Where that loop is taken to be: nothing there is the user's."""
    methods: list[ast.stmt]
    """The methods that the framework calls."""
    once: bool
    """A program that has gone through these methods has shown the same."""


def framework_runs(module: Module) -> Iterator[FrameworkRun]:
    """The runs that the classes of a file are worth."""
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        methods = trainer_loop.methods_of(node)
        if not methods:
            for step in lightning_loop.training_steps(node):
                yield FrameworkRun(_fit(module, node), _place(module, step), [step], False)
        else:
            yield FrameworkRun(_train(module, node), _place(module, node), methods, True)


def _place(module: Module, node: ast.stmt) -> tuple[str, int, int]:
    return module.path, node.lineno, node.col_offset + 1


def _fit(module: Module, node: ast.ClassDef) -> Callable[[Interpreter], None]:
    """Lightning's `trainer.fit(module)`."""

    def drive(m: Interpreter) -> None:
        cls = value_in(m, definitions(m, module), node.name)
        if isinstance(cls, Class) and cls.node is node and lightning_loop.is_lightning_module(cls):
            made = receiver(m, cls, node)
            if isinstance(made, Model):
                lightning_loop.train(m, cls, made)

    return drive


def _train(module: Module, node: ast.ClassDef) -> Callable[[Interpreter], None]:
    """transformers' `trainer.train()`."""

    def drive(m: Interpreter) -> None:
        cls = value_in(m, definitions(m, module), node.name)
        if isinstance(cls, Class) and cls.node is node and trainer_loop.is_trainer(cls):
            made = receiver(m, cls, node)
            if isinstance(made, TrainerObject):
                trainer_loop.train(m, made, node)

    return drive
