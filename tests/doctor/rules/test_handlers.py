"""Rules and events fit together: a handler with a wrong name would never be called."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from trueloop.doctor import rules
from trueloop.doctor.model import events, measurements, speed_measurements
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.measurements import Measured
from trueloop.doctor.rules.base import _snake

RULES = Path(rules.__file__).parent
EVENTS = {
    kind.__name__: kind
    for module in (events, measurements, speed_measurements)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, Event) and not kind.__subclasses__()
}
HANDLERS = [
    (path.name, node)
    for path in sorted(RULES.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(node, ast.FunctionDef) and node.name.startswith("on_")
]


def test_a_handler_names_an_event_and_takes_it() -> None:
    assert len(HANDLERS) > 150
    by_method = {f"on_{_snake(name)}": name for name in EVENTS}
    for file, handler in HANDLERS:
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
    handled = {handler.name for _, handler in HANDLERS}
    kinds = {name for name, kind in EVENTS.items() if issubclass(kind, Measured)}
    assert len(kinds) > 25
    missing = {name for name in kinds if f"on_{_snake(name)}" not in handled}
    assert not missing, f"no rule judges these: {missing}"


FACT = re.compile(
    r"""facts(?:\.get\(|\.setdefault\(|\[)f?"([^"]+)"|"([^"]+)" (?:not )?in [\w.]*facts\b"""
)
MOST_FACTS = 52
"""Keys of `Thing.facts` that are left, torch's names of arguments among them. It only shrinks."""


def test_what_is_known_of_a_thing_has_a_typed_field() -> None:
    folders = ("model", "rules", "static", "live")
    keys = {
        key
        for folder in folders
        for path in (RULES.parent / folder).rglob("*.py")
        for match in FACT.findall(path.read_text("utf-8"))
        for key in match
        if key
    }
    assert len(keys) <= MOST_FACTS, f"{len(keys)} keys: {sorted(keys)}"
