"""Objects of the user's own classes, as they are before their `__init__` runs: what kind of thing a
class makes."""

from __future__ import annotations

import ast
import re
from typing import Any

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import (
    RATES_UNTOUCHED,
    Dataset,
    Model,
    Optimizer,
    Scheduler,
)
from trueloop.doctor.static.interpreter.derived_containers import container_for
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.user_samplers import distributed_sampler
from trueloop.doctor.static.interpreter.values import (
    Class,
    Function,
    Instance,
    LibraryName,
    TrainerObject,
    Value,
)

MODULE_BASES = frozenset({"Module", "LightningModule", "PreTrainedModel", "ModelMixin"})
_BARE = re.compile(
    r"^torch\.nn\.|^(transformers|diffusers)\.(.*\.)?(\w*PreTrainedModel|ModelMixin)$"
)
"""Bases that bring no layers along."""
_NAMES_PARAMETERS = "parameters named_parameters _apply state_dict modules children".split()


def _methods(cls: Class) -> set[str]:
    """The names of the methods of a class and of the user's classes above it."""
    members = (kind.namespace.items() for kind in cls.lineage() if isinstance(kind, Class))
    return {name for each in members for name, value in each if isinstance(value, Function)}


def new_object(m: Interpreter, cls: Class, node: ast.AST) -> Value:
    """An object of a class of the user's, before its `__init__`."""
    m.reach.classes_made[id(cls)] = cls
    bases = cls.dotted_bases()
    place = m.place(node)
    shorts = {base.rpartition(".")[2] for base in bases}
    common: dict[str, Any] = {"made": place, "known": True, "cls": cls}
    if any(base.startswith("torch.optim.lr_scheduler.") for base in bases):
        kind = next(base.rpartition(".")[2] for base in bases if "lr_scheduler" in base)
        return Scheduler(kind=kind, own_step=not _methods(cls) <= RATES_UNTOUCHED, **common)
    if any(base.startswith("torch.optim.") for base in bases):
        return Optimizer(kind=cls.name, **common)
    if shorts & {"Dataset", "IterableDataset", "TensorDataset", "ImageFolder"} or any(
        base.startswith("torchvision.datasets.") for base in bases
    ):
        return Dataset(kind=cls.name, **common)
    sampler = distributed_sampler(cls, bases)
    if sampler is not None:
        sampler.made = place
        return sampler
    is_module = bool(shorts & MODULE_BASES) or any(
        base.startswith(("torch.nn.", "torchvision.models.")) or _PRETRAINED.search(base)
        for base in bases
    )
    looks_like_one = cls.lookup("forward") is not None and cls.lookup("backward") is None
    if is_module or (bases and looks_like_one):
        complete = any(map(_BARE.search, bases))
        names = any(cls.lookup(name) is not None for name in _NAMES_PARAMETERS)
        names = names or _replaces_its_attributes(cls.node)
        return Model(kind=cls.name, complete=complete, names_parameters=names, **common)
    is_trainer = bases and bases[-1].endswith("Trainer")
    found = (TrainerObject if is_trainer else Instance)(cls, key=f"{cls.name}()@{place.line}")
    found.turns = m.turns_begun
    if bases:
        container_for(m, found)
    return found


_PRETRAINED = re.compile(r"PreTrainedModel$|^\w*transformers\..*([a-z]Model|For[A-Z]\w+)$")
"""Modules of transformers, whose subclasses may leave `forward` to them."""


def is_loss_module(model: Model) -> bool:
    """A module of the user's that computes a loss rather than being trained; one that learns to
    predict a loss is trained."""
    kind = model.kind.rpartition(".")[2].lower()
    return ("loss" in kind or "criterion" in kind) and not _PREDICTS_LOSS.search(kind)


_PREDICTS_LOSS = re.compile(r"loss_?(net$|pred|guess|estim|regress)|(pred|estim|regress)\w*loss$")


_ON_PURPOSE = frozenset(
    "no_grad inference_mode detach deepcopy requires_grad requires_grad_ data eval parameters"
    " named_parameters state_dict __getattr__ register_module add_module".split()
)


@once
def _replaces_its_attributes(node: ast.AST) -> bool:
    """`for name in self.__dict__: setattr(self, name, nn.Sequential(*getattr(self, name)))`."""
    calls = (each for each in walk(node) if isinstance(each, ast.Call))
    sets = [
        each for each in calls if getattr(each.func, "id", "") == "setattr" and len(each.args) == 3
    ]
    by_name = [each for each in sets if not isinstance(each.args[1], ast.Constant)]
    return bool(by_name) and any(getattr(each, "attr", "") == "__dict__" for each in walk(node))


_PLAIN_BASES = frozenset({"object", "ABC", "Protocol", "Generic"})


def is_plain_helper(cls: Class) -> bool:
    """Its objects are certainly no modules, and nothing says that it keeps layers on purpose. A
    class of a library may be a module: `class Encoder(torchvision.models.ResNet)`."""
    foreign = (kind for kind in cls.lineage() if not isinstance(kind, Class))
    known = all(
        isinstance(kind, LibraryName) and kind.name.rpartition(".")[2] in _PLAIN_BASES
        for kind in foreign
    )
    return known and not _keeps_layers_on_purpose(cls.node)


@once
def _keeps_layers_on_purpose(node: ast.AST) -> bool:
    """A class names what one needs for a teacher or an average of weights, which no optimizer
    should have, or for handing its parameters out itself."""
    names = {getattr(each, "attr", getattr(each, "id", "")) for each in walk(node)}
    names |= {each.name for each in walk(node) if isinstance(each, ast.FunctionDef)}
    return not names.isdisjoint(_ON_PURPOSE)
