"""Rules that name parameters: one finding for all that are made in one place."""

from __future__ import annotations

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import ParameterMeasured
from trueloop.doctor.rules.base import Rule


class ByParameter(Rule):
    """Reports again what is found at a place whenever a parameter is added or removed there."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[Location, dict[str, ParameterMeasured]] = {}

    def check(self, event: ParameterMeasured) -> None:
        place = event.place
        found = self._found.setdefault(place, {})
        if event.is_idle:
            found[event.parameter] = event
        else:
            found.pop(event.parameter, None)
        self.findings = [each for each in self.findings if each.place != place]
        if found:
            names = [f"`{name}`" for name in found]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            first = next(iter(found.values()))
            self.report_parameters(place, first, ", ".join(names[:3]) + more, len(names) > 1)

    def report_parameters(
        self, place: Location, first: ParameterMeasured, names: str, several: bool
    ) -> None:
        """Report the parameters that are made at `place`."""
        raise NotImplementedError
