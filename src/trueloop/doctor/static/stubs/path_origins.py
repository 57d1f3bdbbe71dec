"""Where the path of a file comes from: the program's text, its command line, a download."""

from __future__ import annotations

import ast
import re

from trueloop.doctor.model.events import FileDownloaded
from trueloop.doctor.model.file_paths import FilePath, name_of
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.values import (
    Constant,
    LibraryMethod,
    LibraryName,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
)

FEW = 6
"""Parts of a value that are looked at, on each level."""
_DEPTH = 6
_MODE = re.compile(r"[rwabxt+]{1,3}")
"""The mode of `open`."""
_DOWNLOAD = "download<"
_UPLOADS = ("flask.request.files", "flask.request.data")
_OUTSIDE = ("sys.argv", "os.environ")


def file_path(m: Interpreter, value: Value) -> FilePath:
    """The path that is given to `torch.save` or `torch.load`, as far as it is known."""
    name = _name(value)
    saved = bool(name) and name in _saved_names(m.modules[-1].tree)
    parts = list(_parts(value))
    if any(map(_is_from_network, parts)):
        return FilePath(m.key(value), name, "download", saved)
    if any(map(_is_outside, parts)):
        return FilePath(m.key(value), name, "outside", saved)
    if all(isinstance(part, Constant) for part in parts if not _is_composed(part)):
        return FilePath(m.key(value), name, "literal", saved)
    return FilePath(m.key(value), name, "", saved)


def _is_composed(part: Value) -> bool:
    return bool(_of(part))


def _of(value: Value) -> list[Value]:
    """The values that a path was put together from."""
    if isinstance(value, Unknown):
        return list(value.of[:FEW])
    if isinstance(value, OpaqueObject):
        return [*value.arguments.values()][:FEW]
    if isinstance(value, Sequence):
        return value.values[:FEW]
    return [value.receiver] if isinstance(value, LibraryMethod) else []


def _parts(value: Value, depth: int = _DEPTH) -> list[Value]:
    """The value with all that it was put together from."""
    found = [value]
    for part in _of(value) if depth else ():
        found += _parts(part, depth - 1)
    return found


def _is_from_network(part: Value) -> bool:
    if isinstance(part, LibraryName):
        return part.name.startswith(_UPLOADS)
    return isinstance(part, Unknown) and part.key.startswith((_DOWNLOAD, *_UPLOADS))


def _is_outside(part: Value) -> bool:
    if isinstance(part, LibraryName):
        return part.name.startswith(_OUTSIDE)
    if isinstance(part, OpaqueObject):
        return part.kind.endswith("ArgumentParser")
    return isinstance(part, Unknown) and part.key.startswith((*_OUTSIDE, "input<"))


def _name(value: Value, depth: int = _DEPTH) -> str:
    """The last part of a path, where it is written out."""
    if isinstance(value, Constant):
        return name_of(value.value) if isinstance(value.value, str) else ""
    if isinstance(value, Unknown) and value.key.endswith("]"):
        return ""  # an entry: its key is not a path
    parts = [
        part
        for part in _of(value)
        if not (
            isinstance(part, Constant)
            and isinstance(part.value, str)
            and _MODE.fullmatch(part.value)
        )
    ]
    return _name(parts[-1], depth - 1) if parts and depth else ""


@once
def _saved_names(tree: ast.Module) -> frozenset[str]:
    """The names of files that are written out in calls of `torch.save`."""
    found: set[str] = set()
    for node in nodes_of(tree, ast.Call):
        if last_name(node.func) == "save":
            for argument in [*node.args[1:], *(each.value for each in node.keywords)]:
                for part in walk(argument):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        found.add(name_of(part.value))
    return frozenset(found - {""})


# ------------------------------------------------------------------------------- downloads


@calls("huggingface_hub.hf_hub_download", "huggingface_hub.snapshot_download",
       "huggingface_hub.cached_download", "wget.download", "gdown.download",
       "gdown.cached_download",
       "kagglehub.model_download", "pooch.retrieve", "timm.models.hub.download_cached_file",
       "transformers.utils.cached_file", "cached_path.cached_path")  # fmt: skip
def _download(call: LibraryCall) -> Value:
    """The result is the path of the file."""
    out = call.arg(1, "output") if call.name.startswith("gdown") else call.arg(-1, "out")
    if out is not None:
        call.emit(FileDownloaded, path=file_path(call.machine, out))
    return Unknown(f"{_DOWNLOAD}{call.place.line}>", tuple(call.args))


@calls("urllib.request.urlretrieve", "torch.hub.download_url_to_file",
       "torchvision.datasets.utils.download_url")  # fmt: skip
def _download_to(call: LibraryCall) -> Value:
    """The second argument says where the file is put."""
    target = call.arg(1, "", call.arg(-1, "dst", call.arg(-1, "filename", call.unknown())))
    call.emit(FileDownloaded, path=file_path(call.machine, target))
    return Sequence(
        "tuple", [Unknown(f"{_DOWNLOAD}{call.place.line}>", tuple(call.args)), call.unknown()]
    )


@calls("requests.get", "requests.post", "urllib.request.urlopen", "httpx.get", "httpx.post")
def _response(call: LibraryCall) -> Value:
    return Unknown(f"{_DOWNLOAD}{call.place.line}>", tuple(call.args))


@calls("builtins.input")
def _input(call: LibraryCall) -> Value:
    return Unknown(f"input<{call.place.line}>")
