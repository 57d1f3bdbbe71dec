"""One shard as the index describes it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Blocks:
    """The blocks of one shard, in the order of the file: what is read in one go."""

    samples: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Offset of each block's first byte."""
    stops: list[int] = field(default_factory=list)
    """Offset after each block's last byte."""
    sizes: list[int] = field(default_factory=list)
    """Bytes that each block takes in memory, not decoded."""
    fields: dict[str, str] = field(default_factory=dict)
    """The type of each field or column, in words."""
    missing: dict[str, int] = field(default_factory=dict)
    """Samples that lack a field."""

    def add(self, samples: int, start: int, stop: int, size: int | None = None) -> None:
        """Append a block; `size` is what it takes in memory, where that is not its length."""
        self.samples.append(samples)
        self.starts.append(start)
        self.stops.append(stop)
        self.sizes.append(stop - start if size is None else size)
