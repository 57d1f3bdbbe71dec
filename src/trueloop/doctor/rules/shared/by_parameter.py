"""Rules that name parameters: one finding for all that are made in one place."""

from __future__ import annotations

from typing import ClassVar

from trueloop.doctor.model.events import Measured
from trueloop.doctor.model.findings import Location
from trueloop.doctor.rules.base import Rule


class ByParameter(Rule):
    """Says anew, with every parameter that is found or acquitted, what is found at its place."""

    kinds: ClassVar[tuple[str, str]]
    """Of the measurements: the one that finds a parameter, and the one that acquits it."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[Location, dict[str, Measured]] = {}

    def on_measured(self, event: Measured) -> None:
        if event.what != "updates" or event.values["kind"] not in self.kinds:
            return
        place = event.values["place"]
        found = self._found.setdefault(place, {})
        if event.values["kind"] == self.kinds[0]:
            found[event.values["parameter"]] = event
        else:
            found.pop(event.values["parameter"], None)
        self.findings = [each for each in self.findings if each.place != place]
        if found:
            names = [f"`{name}`" for name in found]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            first = next(iter(found.values()))
            self.tell(place, first, ", ".join(names[:3]) + more, len(names) > 1)

    def tell(self, place: Location, first: Measured, names: str, several: bool) -> None:
        """Report the parameters that are made at `place`."""
        raise NotImplementedError
