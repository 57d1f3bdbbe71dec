"""Rules and events fit together: a handler with a wrong name would never be called."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import re
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler

from trueloop.doctor import rules
from trueloop.doctor.model import (
    events,
    loss_measurements,
    measurements,
    optimizer_events,
    speed_measurements,
    table_events,
    value_events,
)
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.rules.base import _snake
from trueloop.doctor.static.stubs.schedules import SIGNATURES

RULES = Path(rules.__file__).parent
EVENTS = {
    kind.__name__: kind
    for module in (
        events,
        loss_measurements,
        measurements,
        optimizer_events,
        speed_measurements,
        table_events,
        value_events,
    )
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, Event) and not kind.__subclasses__()
}


@cache  # not where the file is imported: each worker of pytest-xdist does so
def handlers() -> list[tuple[str, ast.FunctionDef]]:
    return [
        (path.name, node)
        for path in sorted(RULES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("on_")
    ]


def test_a_handler_names_an_event_and_takes_it() -> None:
    assert len(handlers()) > 150
    by_method = {f"on_{_snake(name)}": name for name in EVENTS}
    for file, handler in handlers():
        assert handler.name in by_method, f"{file}: {handler.name} names no event"
        (event,) = handler.args.args[1:]
        assert event.annotation is not None
        # With the type of the event, mypy checks that the fields which it reads exist.
        assert ast.unparse(event.annotation) in (by_method[handler.name], "Event"), file


def test_every_event_is_of_use() -> None:
    """A rule or a probe has it in its code, beyond the import."""
    folders = (RULES, RULES.parent / "live")
    used = {
        node.id
        for folder in folders
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name)
    }
    assert set(EVENTS) <= used


def test_every_measurement_has_a_handler() -> None:
    handled = {handler.name for _, handler in handlers()}
    kinds = {name for name, kind in EVENTS.items() if issubclass(kind, Measured)}
    assert len(kinds) > 25
    missing = {name for name in kinds if f"on_{_snake(name)}" not in handled}
    assert not missing, f"no rule judges these: {missing}"


LIBRARIES = (nn, nn.functional, torch.optim, lr_scheduler, tempfile)


def parameters() -> set[str]:
    known = set(SIGNATURES["get_scheduler"]) | {"name"}  # of transformers
    known |= {"strategy", "every"}  # of Fabric, and of Ignite's events
    known |= set(inspect.signature(dataclasses.field).parameters)
    for library in LIBRARIES:
        for value in vars(library).values():
            if inspect.isclass(value) or inspect.isfunction(value):
                with contextlib.suppress(ValueError):
                    known |= set(inspect.signature(value).parameters)
    return known


def test_what_is_known_of_a_thing_has_a_typed_field() -> None:
    """No mapping of texts beside the names that a library gives the arguments of its functions."""
    keys: dict[str, str] = {}
    for folder in ("model", "rules", "static", "live"):
        for path in (RULES.parent / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            assert not re.search(r"\.facts\b|\bfacts\b *[:=[]", text), path
            for match in re.finditer(r'\barguments(?:\[|\.\w+\()"([^"]+)"', text):
                keys[match.group(1)] = path.name
            for match in re.finditer(r'"([^"]+)" (?:not )?in [\w.]*\barguments\b', text):
                keys[match.group(1)] = path.name
    assert {"momentum", "T_0", "log_target", "p"} <= set(keys)
    unknown = set(keys) - parameters()
    assert not unknown, {key: keys[key] for key in unknown}


def test_rules_read_fields_that_mypy_knows() -> None:
    """None asks a value whether it happens to have an attribute of some name."""
    asking = re.compile(r"\b(?:getattr|hasattr)\(")
    files = {path.name for path in RULES.rglob("*.py") if asking.search(path.read_text("utf-8"))}
    assert files == {"base.py", "loading.py"}  # which look for handlers, and for rules
