"""Files on a disk or at any fsspec URL: the list of them, and byte ranges of each."""

from __future__ import annotations

import functools
import glob
import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from trueloop import _options, files
from trueloop.errors import ConfigError, DataError, MissingDependencyError, UserError

_BRACES = re.compile(r"\{([^{}]*)\}")
_COUNTED = re.compile(r"(\d+)\.\.(\d+)")
_FIRST_PAUSE = 0.1
"""Seconds before the first retry; each later pause is four times as long."""
_THREADS = 16
_PASSING = (408, 425, 429)
"""HTTP statuses below 500 after which the same request may succeed."""


@dataclass(frozen=True)
class File:
    """A file as it was listed."""

    path: str
    """The name in messages, and the path by which a local file is opened."""
    size: int
    stamp: str
    """A version that changes with the content: the time of change, or the server's etag."""
    is_remote: bool = False


class Storage:
    """Reads byte ranges; it can be sent to other processes, and each makes its own connections."""

    def __init__(self, options: Mapping[str, Any] | None = None, retries: int = 3) -> None:
        self._options = dict(options or {})
        self._retries = retries
        self._systems: dict[tuple[int, str], tuple[Any, str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_systems": {}}

    def read(self, file: File, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop` - 1 of a file that is as it was listed.

        Raises `DataError` if it is gone, cannot be read, or has changed.
        """
        assert 0 <= start <= stop <= file.size
        if not file.is_remote:
            return _read_local(file, start, stop)
        if start == stop:
            return b""
        content: bytes = self._tried(
            f"read the bytes {start} to {stop - 1} of",
            file.path,
            lambda system, path: bytes(system.cat_file(path, start=start, end=stop)),
        )
        if len(content) > stop - start:
            raise DataError(
                f"the server of {file.path} sends more than the bytes {start} to {stop - 1} that "
                "were asked for: use one that serves ranges, or copy the shards to a disk"
            )
        if len(content) < stop - start:
            _raise_changed(file, start + len(content))
        return content

    def _tried(self, what: str, url: str, call: Callable[[Any, str], Any]) -> Any:
        """`call(file system, path)`, again after a while where it fails for a passing reason."""
        for attempt in itertools.count():
            try:
                return call(*self._system(url))
            except UserError:
                raise
            except Exception as error:
                # fsspec's web client has every failure of a HEAD request as "not found".
                cause = error.__cause__ if isinstance(error, FileNotFoundError) else error
                status = getattr(cause, "status", 500)
                if cause is None or status == 404 or isinstance(cause, PermissionError):
                    _raise_unreadable(url, cast(OSError, error))
                is_final = 400 <= status < 500 and status not in _PASSING
                if is_final or attempt >= self._retries:
                    raise DataError(
                        f"cannot {what} {url}, tried {attempt + 1} times ({_reason(cause)}): check "
                        "the network and the server, and resume the run, or write a larger retries="
                    ) from error
                time.sleep(_FIRST_PAUSE * 4**attempt)
        raise AssertionError("unreachable")

    def _system(self, url: str) -> tuple[Any, str]:
        """The file system of `url`, and its path there. One for each process and server."""
        if "::" in url:  # a chain, whose every part says something of its own
            key = (os.getpid(), url)
            if key not in self._systems:
                self._systems[key] = _opened(url, self._options)
            return self._systems[key]
        head, mark, tail = url.partition("://")
        key = (os.getpid(), head + mark + tail.partition("/")[0])
        if key not in self._systems:
            self._systems[key] = _opened(url, self._options)
        system, _ = self._systems[key]
        return system, str(system._strip_protocol(url))

    def find(self, data: str | os.PathLike[str] | Sequence[Any]) -> list[File]:
        """The files that `data` names, in the order of their names (or as a list gives them).

        Raises `DataError` if there is none.
        """
        given = [data] if isinstance(data, (str, os.PathLike)) else list(data)
        names = [name for each in given for name in _expanded(os.fspath(each))]
        local = [name for name in names if not is_url(name)]
        remote = [name for name in names if is_url(name)]
        if local and remote:
            raise ConfigError("some shards are on a disk and some at URLs: give one of the two")
        found = self._list_remote(remote) if remote else list(_list_local(local))
        if not found:
            shown = _options.shown(str(given[0])) if given else "an empty list"
            raise DataError(f"no shard is in {shown}: check the path")
        return found

    def _list_remote(self, urls: list[str]) -> list[File]:
        with ThreadPoolExecutor(min(_THREADS, len(urls))) as pool:
            lists = list(pool.map(self._list_one, urls))
        return [file for found in lists for file in found]

    def _list_one(self, url: str) -> list[File]:
        entries = self._tried("list", url, functools.partial(_entries, url))
        if "name" in entries:
            return [_remote_file(url, entries)]
        names = sorted(
            name
            for name, info in entries.items()
            if info.get("type") != "directory" and not _is_hidden(name)
        )
        return [self._entry(url, name, entries[name]) for name in names]

    def _entry(self, url: str, name: str, info: Mapping[str, Any]) -> File:
        """The file `name` of the file system that `url` is on."""
        chain = url[: url.rindex("::") + 2] if "::" in url else ""
        if not name.startswith(("http://", "https://")):
            name = url[len(chain) : url.rindex("://") + 3] + name
        if info.get("size") is None:  # a page of links has none
            return self._list_one(chain + name)[0]
        return _remote_file(chain + name, info)


def _entries(url: str, system: Any, path: str) -> Any:
    """The metadata that fsspec has of a file, or of each file that a pattern or a folder
    matches."""
    if glob.has_magic(url) and "?" not in url:
        return system.glob(path, detail=True)
    info = system.info(path)
    return system.find(path, detail=True) if info.get("type") == "directory" else info


def is_url(name: str) -> bool:
    """Whether `name` is for fsspec: `s3://…`, `https://…`, `filecache::https://…`."""
    return "://" in name or "::" in name


def _expanded(name: str) -> list[str]:
    """The names that `part-{000..002}.tar` and `{train,extra}.tar` expand to."""
    found = _BRACES.search(name)
    if found is None:
        return [name]
    counted = _COUNTED.fullmatch(found[1])
    if counted:
        first, last = counted[1], counted[2]
        width = len(first) if first.startswith("0") else 0
        words = [f"{number:0{width}d}" for number in range(int(first), int(last) + 1)]
    elif "," in found[1]:
        words = found[1].split(",")
    else:
        return [name]
    start, stop = found.span()
    return [each for word in words for each in _expanded(name[:start] + word + name[stop:])]


def _list_local(names: list[str]) -> Iterator[File]:
    for name in names:
        path = _options.path("data", name)
        if path.is_dir():
            paths = sorted(_walked(path), key=_parts)
        elif glob.has_magic(str(path)) and not path.exists():
            found = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
            paths = [str(each) for each in found if not each.is_dir()]
        else:
            paths = [str(path)]
        for each in paths:
            try:
                status = os.stat(each)
            except OSError as error:
                raise DataError(files.cannot_read(each, error)) from None
            yield File(each, status.st_size, str(status.st_mtime_ns))


def _parts(path: str) -> list[str]:
    """The key that `Path`s are sorted by; for thousands of names, making a `Path` of each would
    take longer than the rest."""
    return os.path.normcase(path).split(os.sep)


def _walked(folder: Path) -> Iterator[str]:
    def failed(error: OSError) -> NoReturn:
        raise DataError(files.cannot_read(error.filename or folder, error)) from None

    for root, folders, names in os.walk(str(folder), onerror=failed):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        found = (os.path.join(root, name) for name in names if not _is_hidden(name))
        yield from (path.removeprefix(f".{os.sep}") for path in found)  # as `Path` has it


def _is_hidden(name: str) -> bool:
    """Names that programs keep beside data (`_SUCCESS`, `.crc`), as Spark's readers have it."""
    return name.rpartition("/")[2].startswith((".", "_"))


def _read_local(file: File, start: int, stop: int) -> bytes:
    try:
        with files.open_regular(file.path, buffering=0) as handle:
            status = os.fstat(handle.fileno())
            if (status.st_size, str(status.st_mtime_ns)) != (file.size, file.stamp):
                _raise_changed(file, status.st_size)
            handle.seek(start)
            pieces, left = [], stop - start
            while left and (piece := handle.read(left)):
                pieces.append(piece)
                left -= len(piece)
    except OSError as error:
        _raise_unreadable(file.path, error)
    if left:
        _raise_changed(file, stop - left)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _raise_changed(file: File, size: int) -> NoReturn:
    what = f"it has {size:,} bytes and had {file.size:,}" if size != file.size else "its time has"
    raise DataError(
        f"the shard {file.path} has changed since it was indexed ({what}): put the old one back "
        "and resume the run, or start a new run, which indexes it again"
    )


def _raise_unreadable(path: str, error: OSError) -> NoReturn:
    if isinstance(error, FileNotFoundError):
        raise DataError(
            f"the shard {path} is not there: put it back and resume the run, or check the path"
        ) from None
    reason = error.strerror or " ".join(str(error).split())[:200] or type(error).__name__
    raise DataError(f"cannot read the shard {path} ({reason}): check its permissions") from None


def _opened(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url, **options)
    except ImportError as error:
        protocol = url.partition("://")[0]
        remedy = {"http": "aiohttp", "https": "aiohttp", "s3": "s3fs", "gs": "gcsfs", "hf": ""}
        package = remedy.get(protocol) or f"the fsspec package for {protocol}"
        raise MissingDependencyError(
            f"{protocol}:// needs a package that is not installed ({_reason(error)}): type "
            f"pip install {package}"
        ) from None
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"cannot open {url} ({_reason(error)}): check the address and storage_options"
        ) from None
    return system, str(path)


def _remote_file(url: str, info: Mapping[str, Any]) -> File:
    size = info.get("size")
    if size is None:
        raise DataError(
            f"the server of {url} does not report its size: use one that serves ranges, or copy "
            "the shards to a disk"
        )
    names = ("ETag", "etag", "md5Hash", "content_md5", "LastModified", "Last-Modified", "mtime")
    stamp = next((str(info[name]) for name in (*names, "created") if info.get(name)), "")
    return File(url, int(size), stamp, is_remote=True)


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
