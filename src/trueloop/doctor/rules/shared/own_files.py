"""Files that a program loads and that it has itself written."""

from __future__ import annotations

from trueloop.doctor.model.events import FileDownloaded, FileLoaded, FileSaved
from trueloop.doctor.model.file_origins import checkpoint_of
from trueloop.doctor.model.file_paths import FilePath
from trueloop.doctor.model.known_values import DictValue
from trueloop.doctor.model.things import Checkpoint

IN_MEMORY = "<memory>"


class OwnFiles:
    """The files that one run saves and loads."""

    def __init__(self) -> None:
        self.saved: list[FileSaved] = []
        self.loaded: list[FileLoaded] = []
        self.downloads: list[FilePath] = []

    def add(self, event: FileSaved | FileLoaded | FileDownloaded) -> None:
        if isinstance(event, FileSaved):
            self.saved.append(event)
        elif isinstance(event, FileLoaded):
            self.loaded.append(event)
        else:
            self.downloads.append(event.path)

    def load_of(self, checkpoint: Checkpoint) -> FileLoaded | None:
        """The `torch.load` that a checkpoint, or an entry of one, comes from."""
        while checkpoint.inside is not None:
            checkpoint = checkpoint.inside
        return next((each for each in self.loaded if each.value is checkpoint), None)

    def is_download(self, event: FileLoaded) -> bool:
        path = event.path
        return path.source == "download" or any(path.may_equal(each) for each in self.downloads)

    def is_own(self, event: FileLoaded) -> bool:
        """The program writes this file, or files of just this format."""
        if self.is_download(event):
            return False
        if event.path.saved_here:
            return True
        if any(_same_file(each, event) for each in self.saved):
            return True
        if any(checkpoint_of(each.value) is event.value for each in self.saved):
            return True  # it is changed and written again
        read = _keys_read(event)
        alike = [each for each in self.loaded if self._has_own_format(each)]
        return bool(read) and any(read <= _keys_read(each) for each in alike)

    def is_saved(self, load: FileLoaded) -> bool:
        """The program saves a file at just the path that this one was loaded from."""
        return bool(load.path.key) and any(each.path.key == load.path.key for each in self.saved)

    def reads(self, load: FileLoaded, saved: FileSaved) -> bool:
        """The load reads this file: by its path, or by keys that the file has."""
        read = _keys_read(load)
        return load.path.may_equal(saved.path) or bool(read and read <= _keys_saved(saved))

    def reads_of(self, saved: FileSaved, entry: str) -> list[FileLoaded]:
        """The loads of this file that read an entry, and refuse what is more than tensors."""
        return [
            load
            for load in self.loaded
            if load.weights_only is not False
            and self.reads(load, saved)
            and (repr(entry) in _keys_read(load) or load.path.may_equal(saved.path))
        ]

    def _has_own_format(self, event: FileLoaded) -> bool:
        """The program reads what it writes: several keys, all of one dict that it saves."""
        read = _keys_read(event)
        return len(read) > 1 and any(read <= _keys_saved(each) for each in self.saved)


def _same_file(saved: FileSaved, loaded: FileLoaded) -> bool:
    if saved.file == loaded.file == IN_MEMORY:
        return True
    # A bare name such as `path` may be a different path in each function.
    written_out = not loaded.file.isidentifier() and saved.file == loaded.file
    return saved.path.may_equal(loaded.path) or bool(written_out and loaded.file)


def _keys_read(event: FileLoaded) -> set[str]:
    value = event.value
    return set(value.attributes) if isinstance(value, Checkpoint) else set()


def _keys_saved(event: FileSaved) -> set[str]:
    value = event.value
    return {repr(key) for key in value.entries} if isinstance(value, DictValue) else set()
