"""One checkpoint written by all ranks of a group: each its own part, and rank 0 makes it one.

It runs in a thread beside the training, with a separate group, so that its messages never meet the
training's collectives. Three rounds, each "all to rank 0, and its answer back": rank 0 makes the
folder; the ranks send what they could write, and get back which of it; the ranks have written, and
rank 0 commits. A failure on any rank is a failure on all of them, in the same round.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import torch
import torch.distributed as dist

from trueloop import ranks
from trueloop.atomic import cannot_write
from trueloop.checkpoint import store
from trueloop.checkpoint.tensor_shards import (
    Divided,
    Hole,
    Shard,
    as_tree,
    mapped,
    own_key,
)
from trueloop.errors import RunError, TrueloopError
from trueloop.ranks.together import failure_of


class LostRankError(RunError):
    """Another rank ended while a checkpoint was being written."""


class GroupWriter:
    """Writes checkpoints with all ranks. Every rank makes one, at the same place of its work."""

    def __init__(self) -> None:
        # On CPU tensors, whatever the training's backend is.
        self._group = dist.new_group(backend="gloo")

    def write(
        self,
        path: Path,
        parts: Divided,
        facts: Mapping[str, Any],
        *,
        begin: Callable[[], object],
        end: Callable[[], object],
    ) -> None:
        """Write the checkpoint `path`, of which this rank has `parts`; every byte is read again.

        Rank 0 calls `begin()` before it makes the folder, and `end()` when the checkpoint is there.
        Raises `RunError` on all ranks when one of them cannot write, `LostRankError` when one is
        gone. Nothing of the checkpoint is left then.
        """
        writing = _Writing(path, parts, facts)

        def begun(_: list[Any]) -> Any:
            begin()
            return writing.begun()

        def ended(written: list[Any]) -> None:
            writing.commit(written)
            end()

        try:
            temporary, digests = self._round(path, lambda: None, begun)
            writing.temporary = temporary
            mine = self._round(path, lambda: writing.plan(digests), writing.plan_for_all, each=True)
            store.reached("planned")
            self._round(path, lambda: writing.write(mine), ended)
        finally:
            if writing.temporary is not None and ranks.is_main():
                shutil.rmtree(writing.temporary, ignore_errors=True)

    def _round(
        self,
        path: Path,
        mine: Callable[[], Any],
        answer: Callable[[list[Any]], Any],
        each: bool = False,
    ) -> Any:
        """Rank 0's answer to the messages of all ranks: one answer, or one for `each`."""
        received: list[Any] = [None]
        said = _tried(path, mine)
        heard: list[Any] = [None] * ranks.world_size()
        try:
            dist.gather_object(said, heard if ranks.is_main() else None, dst=0, group=self._group)
            found: Any
            found, failure = _answered(path, heard, answer) if ranks.is_main() else (None, None)
            if each:
                rows = [None] * len(heard) if found is None else found
                listed = [(row, failure) for row in rows] if ranks.is_main() else None
                dist.scatter_object_list(received, listed, src=0, group=self._group)
            else:
                received = [(found, failure)]
                dist.broadcast_object_list(received, src=0, group=self._group)
        except RuntimeError as error:  # of the transport
            why = str(error).strip().splitlines()[0][:120]
            raise LostRankError(
                f"cannot write {path}, since a different rank has ended ({why}): see its message"
            ) from None
        found, failure = received[0]
        if failure is not None:
            raise failure
        return found


def _tried(path: Path, work: Callable[[], Any]) -> tuple[Any, TrueloopError | None]:
    """The result of `work()`, and its error."""
    try:
        return work(), None
    except OSError as error:
        if not ranks.is_main():  # whose disk is maybe not that of rank 0
            error.strerror = f"{error.strerror or error}, on rank {ranks.rank()}"
        return None, cannot_write(path, error)
    except Exception as error:  # every rank has to learn of it
        return None, failure_of(error)


def _answered(
    path: Path, heard: list[Any], answer: Callable[[list[Any]], Any]
) -> tuple[Any, TrueloopError | None]:
    failure = next((failure for _, failure in heard if failure is not None), None)
    if failure is not None:
        return None, failure
    return _tried(path, lambda: answer([value for value, _ in heard]))


class _Writing:
    """One checkpoint on its way: what this rank does for it, and what rank 0 does for all."""

    def __init__(self, path: Path, parts: Divided, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.parts = parts
        self.facts = facts
        self.temporary: Path | None = None
        self._index: Any = None

    def begun(self) -> tuple[Path, dict[Any, str]]:
        """On rank 0: the folder to write into, and digests of what may differ from rank to rank."""
        self.temporary = store.temporary_of(self.path)
        store.make(self.temporary)
        return self.temporary, {place: _digest(part) for place, part in self.parts.own().items()}

    def plan(self, digests: Mapping[Any, str]) -> Any:
        """The part that this rank would write: its boxes, and the state that differs from rank
        0's."""
        from trueloop.checkpoint.dcp import ShardPlanner, ShardWriter

        assert self.temporary is not None
        self._planner, self._writer = ShardPlanner(), ShardWriter(self.temporary)
        shards = self.parts.shards | ({} if ranks.is_main() else self._own_shard(digests))
        self._planner.set_up_planner(shards, is_coordinator=ranks.is_main())
        self._writer.set_up_storage_writer(ranks.is_main())
        return self._writer.prepare_local_plan(self._planner.create_local_plan())

    def plan_for_all(self, plans: list[Any]) -> list[Any]:
        """On rank 0: what each of them writes."""
        planned, self._index = self._planner.create_global_plan(plans)
        return self._writer.prepare_global_plan(planned)

    def write(self, plan: Any) -> Any:
        """Write it, onto the disk, and read it again."""
        assert self.temporary is not None
        results = self._writer.write_data(self._planner.finish_plan(plan), self._planner).value()
        store.reached("shards written")
        for name, said in self._writer.files.items():
            store.verify_file(self.temporary / name, said)
        return results, self._writer.files

    def commit(self, written: list[Any]) -> None:
        """On rank 0: write what makes a checkpoint of it, and rename."""
        assert self.temporary is not None
        files = {name: said for _, names in written for name, said in names.items()}
        _check_shared(self.temporary, files)
        self._writer.finish(self._index, [results for results, _ in written])
        files |= self._writer.files
        files[store.STATE] = store.write_state(self.temporary, _stored(self.parts.rest))
        store.verify_file(self.temporary / store.STATE, files[store.STATE])
        facts = {"format": store.FORMAT, "ranks": ranks.world_size(), **self.facts}
        store.commit(self.temporary, self.path, files, facts)

    def _own_shard(self, digests: Mapping[Any, str]) -> dict[str, Shard]:
        """This rank's state that differs from rank 0's, as a tensor of bytes."""
        own = {
            place: part
            for place, part in self.parts.own().items()
            if _digest(part) != digests.get(place)
        }
        content = io.BytesIO()
        torch.save(_stored(as_tree(own)), content)
        tensor = torch.frombuffer(content.getbuffer(), dtype=torch.uint8)
        return {own_key(ranks.rank()): Shard(tensor, tensor.shape, torch.Size([0]))}


def _digest(value: Any) -> str:
    hashed = store.Hashed(cast(BinaryIO, _Nowhere()))
    hashed.save({"": _stored(value)})
    return hashed.digest()


class _Nowhere(io.RawIOBase):
    """A file whose content is not kept."""

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


def _stored(tree: Any) -> Any:
    """`tree` with a tensor of no values, of the same shape and dtype, for each hole."""

    def change(_: Any, leaf: Any) -> Any:
        is_hole = isinstance(leaf, Hole)
        return torch.empty(leaf.size, dtype=leaf.dtype, device="meta") if is_hole else leaf

    return mapped(tree, change)


def _check_shared(temporary: Path, files: dict[str, dict[str, Any]]) -> None:
    """Raise `RunError` if rank 0 does not see what the others have written."""
    for name, said in files.items():
        file = temporary / name
        if not file.is_file() or file.stat().st_size != said["size"]:
            raise RunError(
                f"rank 0 does not see {file}, which a different rank has written: use a run "
                "directory that all hosts share"
            )
