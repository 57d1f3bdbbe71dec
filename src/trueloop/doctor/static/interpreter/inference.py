"""The probable kind of an unknown value: by its name, its annotation, and its uses in the file.

A function's parameter `optimizer` on which `zero_grad()` and `step()` are called is taken for an
optimizer. What is guessed is never `known`: rules weigh that.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from trueloop.doctor.model.things import (
    Criterion,
    Loader,
    Model,
    Optimizer,
    Scaler,
    Scheduler,
    Tensor,
)
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import find_method
from trueloop.doctor.static.interpreter.syntax import written
from trueloop.doctor.static.interpreter.values import (
    KEY,
    Function,
    Module,
    OpaqueObject,
    Parameters,
    Unknown,
    Value,
    things_in,
)
from trueloop.errors import cut

_OPTIMIZER = re.compile(
    r"(^|_)(opt|optim|optimi[sz]er|optimG|optimD)(_|\d|[A-Z]|$)|optimi[sz]er", re.I
)
_SCHEDULER = re.compile(r"sched|lr_decay|lr_policy", re.I)
_SCALER = re.compile(r"scaler", re.I)
_MODEL = re.compile(
    r"(^|_)(model|net|network|module|encoder|decoder|generator|discriminator|backbone|classifier"
    r"|policy|critic|actor|student|teacher|cnn|rnn|lstm|gru|mlp|resnet|vgg|unet|vae|gan|bert|gpt"
    r"|transformer|autoencoder|agent|head|netG|netD|netg|netd|models?\d*|net\d+)(_|\d|$)"
    r"|model$|net$|^(G|D|gen|disc)$|Model$|Net$",
    re.I,
)
_MAKER = re.compile(r"[A-Z][a-z]|(get|create|build|make|load|init|setup|define)_?")
"""`GeneratorResNet`, `create_model`: what makes a model rather than being one."""
_CRITERION = re.compile(
    r"criterion|criteria$|loss_?f(n|unc|unction)|(^|_)loss(es)?_?(fn|func|layer)$|^(bce|mse|ce|l1|nll)"
    r"(_?loss)?$|(^|_)(objective|adversarial_loss|gan_loss|cross_entropy|mse_loss|bce_loss|ce_loss)$",
    re.I,
)
_LOADER = re.compile(
    r"loader|dataloader|(^|_)(dl|iterator|iter|batches|train_data|val_data|test_data|dataset_iter"
    r"|data|dataset)$|_(gen|generator)$",
    re.I,
)


def guess(m: Interpreter, name: str, value: Unknown | OpaqueObject, module: Module) -> Value:
    """A thing in place of an unknown value, if its name and use say what it is."""
    uses = module.survey.uses.get(name)
    if uses is None or not _may_be_thing(module, name, uses):
        return value
    found = _guessed(name, value, module, uses)
    for word, each in [*value.attributes.items()]:
        if found is not value and isinstance(each, Unknown) and find_method(found, word):
            del value.attributes[word]  # it was read off before anybody knew of the method
    return found


def _guessed(name: str, value: Unknown | OpaqueObject, module: Module, uses: set[str]) -> Value:
    common: dict[str, Any] = {"name": name, "attributes": value.attributes}
    names_model = _MODEL.search(name) and uses & {"()", "parameters", "train", "eval"}
    if "zero_grad" in uses and "step" in uses and not names_model:
        return _optimizer(value, common)  # `critic_steps`
    if _SCHEDULER.search(name) and "step" in uses:
        return Scheduler(**common)
    if _OPTIMIZER.search(name) and uses & {"step", "zero_grad", "step()"}:
        return _optimizer(value, common)
    if _SCALER.search(name) and uses & {"scale", "unscale_"}:
        return Scaler(enabled=None, **common)
    if _is_model(name, uses):
        return Model(
            kind=value.kind if isinstance(value, OpaqueObject) else "",
            training=True if isinstance(value, OpaqueObject) else None,
            complete=False,
            known=False,
            **common,
        )
    if _CRITERION.search(name) and "()" in uses and not isinstance(value, OpaqueObject):
        return Criterion(reduction=None, **common)
    if (
        isinstance(value, Unknown)
        and _LOADER.search(name)
        and "iter" in uses
        and not value.loop_variant
    ):
        return Loader(**common)
    return value


def _may_be_thing(module: Module, name: str, uses: set[str]) -> bool:
    """Some value of this name is taken for a thing; asked once for each name of a file."""
    known = module.survey.may_be_thing
    found = known.get(name)
    if found is None:
        found = known[name] = bool(
            {"step", "zero_grad", "step()", "scale", "unscale_"} & uses
            or _is_model(name, uses)
            or ("()" in uses and _CRITERION.search(name))
            or ("iter" in uses and _LOADER.search(name))
        )
    return found


_NO_TENSORS = frozenset("zero_grad load_state_dict named_parameters parameters children".split())


def is_no_tensor(name: str, value: Tensor, module: Module) -> bool:
    """The result of a call is used as a module: the call made it, of a class that is not known
    (`encoder = classes[kind][1]; self.encoder = encoder(config)`)."""
    uses = module.survey.uses.get(name) or set()
    return not value.is_loss and bool(uses & _NO_TENSORS) and _is_model(name, uses)


def _optimizer(value: Unknown | OpaqueObject, common: dict[str, Any]) -> Optimizer:
    """An optimizer, with the models that it was made from where they can be seen."""
    parts = list(value.of) if isinstance(value, Unknown) else list(value.arguments.values())
    models = [thing for part in parts for thing in things_in(part) if isinstance(thing, Model)]
    for part in parts:
        if isinstance(part, Parameters):
            models += [each for each in part.models if each not in models]
    kind = value.kind if isinstance(value, OpaqueObject) else ""
    return Optimizer(models=models, complete=False, kind=kind, **common)


def _is_model(name: str, uses: set[str]) -> bool:
    if "backward" in uses or "append" in uses:
        return False
    sure = {"zero_grad", "load_state_dict", "named_parameters", "named_modules", "requires_grad_"}
    if uses & sure:
        return bool(_MODEL.search(name) or "parameters" in uses or {"train", "eval"} <= uses)
    if {"train", "eval"} <= uses and "()" in uses:
        return True
    used = uses & {"()", "train", "eval", "parameters", "state_dict", "forward"}
    if used == {"()"} and _MAKER.match(name):
        return False
    return bool(_MODEL.search(name) and used and not uses & {"fit", "items", "keys"})


_ANNOTATED = (
    ("Optimizer", Optimizer),
    ("LRScheduler", Scheduler),
    ("_LRScheduler", Scheduler),
    ("GradScaler", Scaler),
    ("DataLoader", Loader),
    ("Module", Model),
)


def parameter(m: Interpreter, name: str, annotation: ast.expr | None, function: Function) -> Value:
    """The possible values of a parameter, for a function without a known caller."""
    key = f"{function.name}.{name}" if name in ("x", "input", "inputs", "y") else name
    value = Unknown(key)
    if annotation is not None:
        text = cut(written(annotation), KEY)
        for word, kind in _ANNOTATED:
            many = re.search(r"[Ll]ist|[Dd]ict|Tuple", text)
            if re.search(rf"\b{word}\b", text) and not many:
                if kind is Model:
                    return Model(name=name, training=None, complete=False)
                return (
                    Optimizer(name=name, complete=False) if kind is Optimizer else kind(name=name)
                )
        if re.search(r"\b(int|float|str|bool)\b", text):
            return value
        if re.fullmatch(r"(torch\.)?Tensor", text):
            return value
    if name in ("self", "cls"):
        return value
    return guess(m, name, value, function.module)
