"""torch's distributed checkpoint (DCP) as checkpoints use it: boxes of tensors in one file per
rank, every byte hashed on its way, and an index (`.metadata`) that is looked at before it is used.

The index is a pickle. It is read by an unpickler that knows only a handful of plain classes, and
each of its numbers is checked against the files before anything is allocated or read by it.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, cast

import torch
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from trueloop.checkpoint.tensor_shards import Shard

INDEX = ".metadata"

_CLASSES = {
    "torch.distributed.checkpoint.metadata": (
        "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
        "TensorStorageMetadata", "_MEM_FORMAT_ENCODING",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo",),
    "torch.serialization": ("_get_layout",),
    "torch": ("Size",),
}  # fmt: skip


class ShardWriter(FileSystemWriter):
    """Writes a rank's boxes into one file of `folder`; `files` says size and SHA-256 of each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, single_file_per_rank=True, sync_files=True)
        hashed = _HashedFileSystem()
        self.fs = hashed
        self.files = hashed.files

    def storage_meta(self) -> None:
        """Nothing: it would contain the temporary folder's path."""


class ShardPlanner(DefaultSavePlanner):
    """Plans to write boxes: `state_dict` is a dict of `Shard` by the tensor's key."""

    def __init__(self) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)

    def create_local_plan(self) -> SavePlan:
        self.plan = SavePlan([_write_item(key, shard) for key, shard in self.state_dict.items()])
        return self.plan

    def lookup_object(self, index: MetadataIndex) -> torch.Tensor:
        return cast(Shard, self.state_dict[index.fqn]).tensor


def _write_item(key: str, shard: Shard) -> WriteItem:
    return WriteItem(
        index=MetadataIndex(key, shard.offsets),
        type=WriteItemType.SHARD,
        tensor_data=TensorWriteData(
            chunk=ChunkStorageMetadata(offsets=shard.offsets, sizes=shard.tensor.shape),
            properties=TensorProperties(dtype=shard.tensor.dtype),
            size=shard.size,
        ),
    )


class _HashedFileSystem(FileSystem):
    """Files whose bytes are hashed as they are written: reading them again costs as much."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}

    @contextmanager
    def create_stream(
        self, path: str | os.PathLike[str], mode: str
    ) -> Generator[io.IOBase, None, None]:
        assert mode == "wb", mode
        with open(path, "wb") as file:
            stream = _HashedStream(file)
            yield cast(io.IOBase, stream)
            self.files[Path(path).name] = {"size": stream.size, "sha256": stream.hash.hexdigest()}

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        os.rename(path, new_path)
        self.files[Path(new_path).name] = self.files.pop(Path(path).name)


class _HashedStream:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        self.hash.update(data)
        count = self._file.write(data)
        self.size += count
        return count

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        # Whoever asks for it flushes the disk next.
        self._file.flush()
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


class _BoxPlanner(DefaultLoadPlanner):
    """Plans to read boxes, wherever the files have parts of them."""

    def __init__(self, wanted: Mapping[str, Shard], index: Metadata) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self._wanted = wanted
        self.metadata = index

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        items: list[ReadItem] = []
        for key, shard in self._wanted.items():
            box = ChunkStorageMetadata(offsets=shard.offsets, sizes=shard.tensor.shape)
            saved = self.metadata.state_dict_metadata[key]
            assert isinstance(saved, TensorStorageMetadata)
            if shard.tensor.numel():
                items += create_read_items_for_chunk_list(key, saved, [box])
        return LoadPlan(items)

    def lookup_tensor(self, index: MetadataIndex) -> torch.Tensor:
        return self._wanted[index.fqn].tensor


def fill(folder: Path, index: Metadata, wanted: Mapping[str, Shard]) -> None:
    """Read into each box of `wanted`, by the tensor's key, what the files of `folder` have there.

    Needs no other rank. `index` is one that `read_index` gave.
    """
    reader = FileSystemReader(folder)
    reader.set_up_storage_reader(index, True)
    planner = _BoxPlanner(wanted, index)
    reader.read_data(planner.create_local_plan(), planner).wait()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _CLASSES.get(module, ()):
            return super().find_class(module, name)
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no index needs")


def read_index(content: bytes, sizes: Mapping[str, int]) -> Metadata:
    """The index in these bytes; `sizes` are those of the files beside it, in bytes, by name.

    Raises `ValueError` (or whatever wrong bytes make the unpickler raise) unless every box is
    within its tensor and within its file, and the boxes of a tensor are as large as the tensor.
    """
    index = _Unpickler(io.BytesIO(content)).load()
    if type(index) is not Metadata or type(index.state_dict_metadata) is not dict:
        raise ValueError("it is not an index of tensors")
    if type(index.storage_data) is not dict:
        raise ValueError("it does not contain the positions of the tensors")
    for key, tensor in index.state_dict_metadata.items():
        if type(key) is not str or type(tensor) is not TensorStorageMetadata:
            raise ValueError(f"{str(key)[:60]!r} is not a tensor")
        if problem := _misplaced(key, tensor, index.storage_data, sizes):
            raise ValueError(f"{key[:60]!r} {problem}")
    return index


def _misplaced(
    key: str, tensor: TensorStorageMetadata, places: Mapping[Any, Any], sizes: Mapping[str, int]
) -> str | None:
    """The fault in the place that the index gives a tensor."""
    dtype, size = tensor.properties.dtype, tensor.size
    if type(dtype) is not torch.dtype or not _are_counts(size):
        return "has no dtype or shape"
    volume = 0
    for box in tensor.chunks:
        if not (_are_counts(box.offsets) and _are_counts(box.sizes)):
            return "has a box without a place"
        if not len(box.offsets) == len(box.sizes) == len(size):
            return "has a box with a different number of dimensions"
        if any(o + n > whole for o, n, whole in zip(box.offsets, box.sizes, size, strict=True)):
            return "has a box that is larger than itself"
        volume += prod(box.sizes)
        place: Any = places.get(MetadataIndex(key, box.offsets))
        file = getattr(place, "relative_path", None)
        if type(file) is not str or file not in sizes or file == INDEX:
            return "is not in one of the files"
        offset, length = place.offset, place.length
        if type(offset) is not int or type(length) is not int or offset < 0 or length < 0:
            return "has no place in its file"
        if offset + length > sizes[file] or prod(box.sizes) * dtype.itemsize > length:
            return "is larger than its file"
        if getattr(place, "transform_descriptors", None):
            return "was transformed by an extension"
    return None if volume == prod(size) else "is incomplete"


def _are_counts(value: Any) -> bool:
    return type(value) is torch.Size and all(type(n) is int and n >= 0 for n in value)
