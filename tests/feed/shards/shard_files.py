"""Shards that tests write."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def write_tar(
    path: Path, samples: Sequence[Mapping[str, bytes]], first: int = 0, **options: Any
) -> None:
    """Each sample as members `NUMBER.FIELD`, numbered from `first`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", **options) as archive:
        for number, sample in enumerate(samples, first):
            for field, content in sample.items():
                member = tarfile.TarInfo(f"part/{number:06d}.{field}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def rows(first: int, count: int) -> pa.Table:
    """Columns of several types, each a function of the row's number."""
    numbers = np.arange(first, first + count)
    pairs = np.stack((numbers, numbers * 0.5), axis=1).astype(np.float32).ravel()
    return pa.table(
        {
            "x": pa.array(numbers),
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(pairs), 2),
            "flag": pa.array(numbers % 3 == 0),
            "small": pa.array((numbers % 200).astype(np.uint8)),
        }
    )


def write_parquet(folder: Path, counts: Sequence[int], group: int = 16) -> int:
    """One shard for each count; the number of all rows."""
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    for number, count in enumerate(counts):
        pq.write_table(rows(first, count), folder / f"{number:03d}.parquet", row_group_size=group)
        first += count
    return first


def write_arrow(folder: Path, counts: Sequence[int], batch: int = 16, **options: Any) -> int:
    """As `write_parquet`, with record batches."""
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    for number, count in enumerate(counts):
        table = rows(first, count)
        settings = pa.ipc.IpcWriteOptions(**options)
        path = str(folder / f"{number:03d}.arrow")
        with pa.ipc.new_file(path, table.schema, options=settings) as writer:
            writer.write_table(table, max_chunksize=batch)
        first += count
    return first
