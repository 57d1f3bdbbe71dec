"""The modules inside of a module, kept so that looking through them all is cheap.

Rules ask what is inside of a module far more often than a program changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, NamedTuple, NoReturn, Self, TypeVar

Inner = TypeVar("Inner")


class Submodules(dict[str, Inner]):
    """Registered submodules by name."""

    changes: ClassVar[int] = 0
    """How often any module has got or lost a submodule."""

    def __init__(self, modules: Mapping[str, Inner]) -> None:
        super().__init__(modules)
        Submodules.changes += bool(modules)

    def __setitem__(self, name: str, module: Inner) -> None:
        Submodules.changes += 1
        super().__setitem__(name, module)

    def __delitem__(self, name: str) -> None:
        Submodules.changes += 1
        super().__delitem__(name)

    def _is_not_counted(self, *args: object) -> NoReturn:
        raise TypeError("change one entry at a time")

    pop = popitem = clear = update = setdefault = __ior__ = _is_not_counted  # type: ignore[assignment]


class _Inside(NamedTuple, Generic[Inner]):
    changes: int
    """`Submodules.changes` when it was found."""
    family: tuple[Inner, ...]
    members: frozenset[Inner]


@dataclass(eq=False, kw_only=True)
class Nested:
    """Something with parts of its own kind."""

    children: dict[str, Self] = field(default_factory=dict)
    """Registered submodules by name."""
    wraps: Self | None = None
    """The module inside DistributedDataParallel, DataParallel, torch.compile, ...; whoever changes
    it gives new `children`, too."""
    _inside: _Inside[Self] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.children = Submodules(self.children)

    def _look_inside(self) -> _Inside[Self]:
        known = self._inside
        # A copy still has what was found in its original.
        if known is not None and known.changes == Submodules.changes and known.family[0] is self:
            return known
        found: dict[Self, None] = {}
        waiting = [self]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found[each] = None
                waiting.extend(each.children.values())
                if each.wraps is not None:
                    waiting.append(each.wraps)
        self._inside = _Inside(Submodules.changes, tuple(found), frozenset(found))
        return self._inside

    def family(self) -> tuple[Self, ...]:
        """Itself and everything inside it."""
        return self._look_inside().family

    def members(self) -> frozenset[Self]:
        """The same without their order."""
        known = self._inside
        if known is not None and known.changes == Submodules.changes and known.family[0] is self:
            return known.members
        return self._look_inside().members

    def covers(self, other: Self) -> bool:
        """`other` is this, or a part of it."""
        return other is self or other in self._look_inside().members

    def overlaps(self, other: Self) -> bool:
        """They have something in common."""
        return other is self or not self._look_inside().members.isdisjoint(
            other._look_inside().members
        )

    def shares_parameters(self, other: Self) -> bool:
        """They share parameters: one covers the other."""
        return self.covers(other) or other.covers(self)
