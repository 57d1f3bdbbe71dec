"""Data that is split into parts: what is split alike, and what data was computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Constant, OpaqueObject, Sequence, Unknown, Value
from trueloop.doctor.model.table_events import SamplesSplit, Sliced
from trueloop.doctor.model.things import Dataset, Tensor, Thing

_DEPTH = 12
_VISITS = 400


class DataSplit(NamedTuple):
    """Data that was split into parts."""

    data: Value
    place: Location
    key: object
    """Equal for what is split alike."""


class ChosenColumns(NamedTuple):
    """ChosenColumns of data that were chosen: `x[:, keep]`."""

    sliced: Sliced
    chosen: Value


@dataclass(eq=False)
class SplitRecord:
    """All splits of a run."""

    found: list[DataSplit] = field(default_factory=list)
    columns: list[ChosenColumns] = field(default_factory=list)
    results: dict[int, Value] = field(default_factory=dict)
    """Results of indexing, by identity."""
    sliced: dict[int, Sliced] = field(default_factory=dict)
    """Values that are some of the samples, by identity."""
    _rows: dict[int, list[Sliced]] = field(default_factory=dict)
    _choices: set[int] = field(default_factory=set)
    """The indices that chose the parts of a split, by identity."""

    def on_samples_split(self, event: SamplesSplit) -> None:
        for data in event.data:
            for each in _contents(data):
                self.found.append(DataSplit(each, event.place, event))

    def on_sliced(self, event: Sliced) -> None:
        self.results[id(event.result)] = event.result
        chosen = _columns(event.index)
        if chosen is not None:
            self.columns.append(ChosenColumns(event, chosen))
            if not _is_grid(event.index):
                return
        rows = _rows(event.index)
        if rows is None:
            return
        self.sliced[id(event.result)] = event
        for data in _contents(event.data):
            before = self._rows.setdefault(id(data), [])
            for each in before:
                key = self._together(_rows(each.index), rows)
                if key is not None:
                    self.found.append(DataSplit(data, event.place, key))
                    self._choices.update((id(_rows(each.index)), id(rows)))
            before.append(event)

    def _together(self, one: Value | None, other: Value | None) -> object:
        """Two choices of samples are the parts of one split: what they have in common; or None."""
        if one is None or other is None or one is other:
            return None
        bounds = bounds_of(one), bounds_of(other)
        if bounds != (None, None):
            return _meet(*bounds)
        parts = self._cut(one), self._cut(other)
        if parts[0] is not None and parts[1] is not None and parts[0].data is parts[1].data:
            meets = _meet(bounds_of(parts[0].index), bounds_of(parts[1].index))
            return None if meets is None else (id(parts[0].data), meets)
        roots = _root(one), _root(other)
        if roots[0] is other or roots[1] is one or _is_rest(one, other) or _is_rest(other, one):
            return id(one) ^ id(other)
        pair = roots[0] is not None and roots[0] is roots[1] and _is_pair(one, other)
        return id(roots[0]) if pair else None

    def _cut(self, index: Value) -> Sliced | None:
        """How an array of indices was taken from all of them: `torch.from_numpy(order[:n])`."""
        same = (self.sliced.get(id(each)) for each in self.conversions(index))
        return next((each for each in same if each is not None), None)

    def is_part(self, value: Value) -> bool:
        """It is what a split left of its data."""
        if _is_result(value):
            return True
        sliced = self.sliced.get(id(value))
        if sliced is None or id(_rows(sliced.index)) in self._choices:
            return sliced is not None
        held = _contents(sliced.data)
        return any(split.data is each for split in self.found for each in held)

    def is_of_part(self, columns: ChosenColumns, data: Value) -> bool:
        """They were taken from a part of this data, after the split: `x[train][:, keep]`. Not the
        square parts of a table of samples against samples: `kernel[test][:, train]`."""
        taken = columns.sliced
        if not _is_grid(taken.index):
            found = self.sliced.get(id(taken.data))
            if found is None:
                return _is_split_off(taken.data, data)
            taken = found
        if id(_rows(taken.index)) not in self._choices:
            return False
        if not any(each is data for each in _contents(taken.data)):
            return False
        return not any(id(each) in self._choices for each in self.origins(columns.chosen))

    def conversions(self, value: Value) -> list[Value]:
        """Data, and the arrays that it is the same numbers of, or the only one that a tensor is
        computed from: `torch.from_numpy(array.astype(np.float32)).unsqueeze(1)`."""
        found = [value]
        while len(found) < _DEPTH and id(found[-1]) not in self.results:
            before = _converted_from(found[-1])
            if before is None or any(before is each for each in found):
                break
            found.append(before)
        return found

    def derives(self, value: Value, source: Value) -> bool:
        """A value was computed from a different one, from all of its samples."""
        return any(each is source for each in self.origins(value))

    def origins(self, value: Value, *, indices: bool = True) -> Iterator[Value]:
        """Everything that a value was computed from, with itself; without `indices`, not what
        chose rows or columns."""
        seen: set[int] = set()
        waiting = [(value, _DEPTH)]
        while waiting and len(seen) < _VISITS:
            each, depth = waiting.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            yield each
            if depth and not self.is_part(each):
                parts = [*made_of(each)]
                if not indices and id(each) in self.results:
                    parts = parts[:1]
                waiting += [(part, depth - 1) for part in parts]


def made_of(value: Value) -> Iterable[Value]:
    if isinstance(value, Tensor):
        return [*value.of, *value.made_from]
    if isinstance(value, Unknown):
        return value.of
    return value.values if isinstance(value, Sequence) else ()


_CONVERSIONS = (".astype", ".to_numpy", ".reshape", ".ravel", ".flatten", ".copy", ".squeeze")


def _converted_from(value: Value) -> Value | None:
    """The array that a value is the same numbers of, or the one that a tensor is computed from."""
    if isinstance(value, Tensor) and value.made_from:
        first = value.made_from[0]
        return first if isinstance(first, (Tensor, Unknown)) else None
    parts = [each for each in made_of(value) if isinstance(each, (Tensor, Unknown))]
    if isinstance(value, Tensor):
        return parts[0] if len(parts) == 1 else None
    method = parts[0] if parts and isinstance(parts[0], Unknown) else None
    if method is not None and method.key.endswith(_CONVERSIONS) and method.of:
        return method.of[0]
    is_array = isinstance(value, Unknown) and value.key.endswith(".values")
    return parts[0] if is_array and parts else None


def _contents(data: Value | None) -> list[Value]:
    """The arrays of a data set; other data as it is."""
    if isinstance(data, Dataset):
        held = [*data.tensors, *data.attributes.values()]
        return [each for each in held if isinstance(each, (Tensor, Unknown))]
    return (
        [] if data is None or (isinstance(data, Thing) and not isinstance(data, Tensor)) else [data]
    )


def _columns(index: Value) -> Value | None:
    """The columns of `x[:, columns]`, where they are computed."""
    if not isinstance(index, Sequence) or len(index.values) != 2:
        return None
    rows, columns = index.values
    whole = index.kind == "tuple" and isinstance(rows, Constant) and rows.value == slice(None)
    whole = whole or _is_grid(index)
    return columns if whole and isinstance(columns, (Tensor, Unknown)) else None


def _is_grid(index: Value) -> bool:
    """`np.ix_(rows, columns)`."""
    return isinstance(index, Sequence) and index.kind == "grid"


def _rows(index: Value) -> Value | None:
    """The index that chooses samples: a slice, or an array of numbers."""
    if isinstance(index, Sequence) and index.kind in ("tuple", "grid") and index.values:
        index = index.values[0]
    if isinstance(index, Constant):
        is_slice = isinstance(index.value, slice) and index.value != slice(None)
        return index if is_slice else None
    if isinstance(index, Sequence):
        return index if index.kind == "slice" else None
    return index if isinstance(index, (Tensor, Unknown)) else None


def _meet(one: tuple[str, str] | None, other: tuple[str, str] | None) -> str | None:
    """Where one slice ends and the other begins."""
    if one is None or other is None:
        return None
    if other[0] and one[1] == other[0]:
        return other[0]
    return one[0] if one[0] and one[0] == other[1] else None


def _is_rest(one: Value, other: Value) -> bool:
    """`np.setdiff1d(order, part)`."""
    if not isinstance(one, Unknown) or not one.key.startswith("setdiff1d"):
        return False
    return any(each is other for each in one.of[1:])


def _is_pair(one: Value, other: Value) -> bool:
    """`train, test = ...`, or two results of a function that splits."""
    keys = [each.key for each in (one, other) if isinstance(each, Unknown)]
    return len(keys) == 2 and all(
        each.startswith("split<") or each.endswith(("[0]", "[1]")) for each in keys
    )


def _is_split_off(part: Value, data: Value) -> bool:
    """It is what `train_test_split` left of the data."""
    return _is_result(part) and any(each is data for each in made_of(part))


def _is_result(value: Value) -> bool:
    """Of `train_test_split`."""
    return isinstance(value, Unknown) and value.key.startswith("split<")


def _root(value: Value) -> Value | None:
    """The order, or the pair of parts, that an array of indices was taken from."""
    parts = [*made_of(value)]
    return parts[0] if parts else None


def bounds_of(index: Value | None) -> tuple[str, str] | None:
    """Where a slice along the first axis begins and ends, as texts; None for anything else."""
    if isinstance(index, Sequence) and index.kind == "tuple" and index.values:
        index = index.values[0]
    if isinstance(index, Sequence) and index.kind == "slice":
        lower, upper, step = (_text(part) for part in index.values)
    elif isinstance(index, Constant) and isinstance(index.value, slice):
        found = index.value
        lower, upper, step = (
            "" if part is None else str(part) for part in (found.start, found.stop, found.step)
        )
    else:
        return None
    return None if step or lower == upper else (lower, upper)


def _text(value: Value) -> str:
    if isinstance(value, Constant):
        return "" if value.value is None else str(value.value)
    return value.key if isinstance(value, (Unknown, OpaqueObject)) else str(id(value))
