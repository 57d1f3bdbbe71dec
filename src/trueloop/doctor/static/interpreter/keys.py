"""Keys of dicts: those that are known, and those that are known for one turn of a loop."""

from __future__ import annotations

from typing import Any

from trueloop.doctor.model.arithmetic import SIZE, is_hashable
from trueloop.doctor.model.known_values import loop_of
from trueloop.doctor.model.things import Thing
from trueloop.doctor.static.interpreter.values import Constant, DictValue, Unknown, constant, kept


def put(table: DictValue, key: object, value: Any) -> None:
    """`table[key] = value`."""
    if isinstance(key, Constant) and key.value is not None and is_hashable(key.value):
        table.put(key.value, value and kept(value, key.value))
    else:
        put_in_turn(table, key, value)


def put_in_turn(table: DictValue, key: object, value: Any) -> None:
    """`table[f"net_{i}"] = net`: under the text of this turn; or under a key that is not known."""
    text = text_in_turn(key)
    if text is None:
        table.put_somewhere(value)
        if isinstance(key, Thing) and len(table.keys_of_rest) < SIZE:
            table.keys_of_rest.append(key)
    else:
        table.put(text, value and kept(value, text))
        table.open |= bool(loop_of(key))


def text_in_turn(key: object) -> str | None:
    """The text that a key is in this turn of the loops."""
    text = key.text if isinstance(key, Unknown) else constant(key)
    return text if isinstance(text, str) else None
