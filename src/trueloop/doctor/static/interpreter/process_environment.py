"""The environment that a program has set for itself, and what it calls the number of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

from trueloop.doctor.static.interpreter.values import Unknown, Value

WORLD_SIZES = frozenset({"torch.distributed.get_world_size()", "os.environ['WORLD_SIZE']"})
"""Keys of the number of ranks."""


@dataclass(slots=True)
class ProcessEnvironment:
    """The variables that one run has seen being set, and the number of ranks."""

    variables: dict[str, Value] = field(default_factory=dict)
    """By the keys of their names: `'RANK'`, with the quotes."""
    world_sizes: set[str] = field(default_factory=set)
    """Keys of values that were given for the number of ranks."""

    def set(self, key: str, value: Value, *, guarded: bool) -> None:
        """Set a variable; in a branch, it may have a different value already."""
        self.variables[key] = Unknown(f"os.environ[{key}]") if guarded else value
