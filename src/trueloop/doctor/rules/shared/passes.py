"""Passes over data: which forwards train, which validate, and whom the mode matters to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from trueloop.doctor.model.events import Backward, Event, GradTaken, ModelForward, ModeSet
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Loop, Model, Optimizer, Tensor, Turn
from trueloop.doctor.model.vocabulary import MODE_DEPENDENT_LAYERS

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_VALIDATION = frozenset(
    "val valid validate validation validating validator dev devset test tests tester testing"
    " testset eval evaluate evaluation evaluator evaluating".split()
)
_TRAINING = frozenset("train trains training trainer trainloader trainset fit finetune".split())
_RUN_TOGETHER = re.compile(
    r"^(val|valid|validation|dev|test|eval)_?(loader|dataloader|iter|set|dl|gen|data|batches|ds)$"
)
_HELD_OUT = re.compile(r"held_?out|hold_?out", re.I)
_ALWAYS_SWITCHES = re.compile(
    r"^torchvision\.models\.(?!.*(vit_|swin_|maxvit|convnext))"
    r"|^segmentation_models_pytorch\.|^efficientnet_pytorch\.|^pytorch_fid\.inception\.InceptionV3"
    r"|^transformers\.(Albert|Bart|Bert|BigBird|Deberta|DistilBert|Electra|GPT2|Hubert|Longformer|MBart"
    r"|Marian|MT5|OPT|Pegasus|Roberta|T5|Wav2Vec2|XLMRoberta|XLNet)"
)
"""Networks of libraries that are known to have batch norm or dropout, whatever their arguments."""


_PACKAGES = frozenset(
    "clip detectron2 dgl diffusers espnet2 fairseq kornia lightning mmcv mmdet mmseg monai nemo"
    " open_clip pytorch_forecasting speechbrain timm torch_geometric torchaudio torchvision"
    " transformers ultralytics vit_pytorch x_transformers".split()
)
_STEPS_OF_A_LOOP = ("training_step", "validation_step", "test_step", "predict_step")
_BY_NAME = re.compile(r"create_model|get_model|load|Auto[A-Z]|peft\.|sentence_transformers\.")
"""Functions that build, or wrap, whichever network an option names."""


def words(name: str) -> set[str]:
    """`val_loader`, `valLoader` and `self.val["loader"]` all speak of `val`."""
    return {word.lower() for word in _WORD.findall(name)}


@lru_cache(maxsize=4096)
def names_validation(name: str) -> bool:
    """A name says that this is validation, and not training as well."""
    found = words(name)
    if found & _TRAINING:
        return False
    named = bool(found & _VALIDATION) or _HELD_OUT.search(name) is not None
    return named or any(_RUN_TOGETHER.match(word) for word in found)


def pass_of(event: Event) -> Turn | None:
    """The turn of the pass over data that an event belongs to.

    A loop without a loader (`for k in range(eval_iters)`) counts where it or its function is named
    for validation, and no loop over batches contains it in that function; there, one over something
    that is named for validation (`for x, y in batches_of(val_data)`).
    """
    turn = event.turn
    for last in reversed(event.turns):
        if last is turn or last.loop.kind != "other":
            break
        over = str(last.loop.over)
        if turn is not None and turn.loop.place.function == last.loop.place.function:
            return turn if last.loop.counted or not names_validation(over) else last
        names = [over, *_parts(last.loop.place.function)]
        if any(names_validation(name) for name in names if name):
            return last
        # A method of a model may go over its parts.
        of_parts = isinstance(event, ModelForward) and is_method_of_whole(
            last.loop.place.function, event.model
        )
        if last.loop.counted or not of_parts:
            return turn
    return turn


def is_method_of_whole(function: str, part: Model) -> bool:
    """The function is a method of what a module belongs to."""
    holder = function.partition(".")[0]
    return any(holder == each.kind.rpartition(".")[2] for each in wholes(part))


def wholes(model: Model) -> list[Model]:
    """The module that a part belongs to, the one that this belongs to, and so on."""
    found: list[Model] = [*model.parents[:1]]
    while found and found[-1].parents and len(found) < 8:
        found.append(found[-1].parents[0])
    return found


def named_validation(event: Event) -> bool:
    """The loader, the loop or the function around an event says that it is validation."""
    turn = pass_of(event)
    functions = [event.place.function, *(place.function for place in event.stack[1:])]
    names = [name for function in functions for name in _parts(function)]
    if turn is not None:
        names.append(str(turn.loop.over))
        loader = turn.loop.loader
        if loader is not None:
            names += [loader.name, loader.dataset.name if loader.dataset is not None else ""]
    return any(names_validation(name) for name in names if name)


@lru_cache(maxsize=4096)
def _parts(function: str) -> tuple[str, ...]:
    """The method's own name counts whatever the class is called: `Trainer.validate`."""
    holder, _, name = function.rpartition(".")
    return (name,) if words(name) & _TRAINING else (name, holder)


def may_switch(model: Model) -> bool:
    """This module itself, its parts aside, may behave differently in the two modes."""
    if model.asks_mode:
        return True
    if model.same_in_both_modes:
        return False
    if model.kind.rpartition(".")[2] in MODE_DEPENDENT_LAYERS:
        return True
    return not (model.complete or model.samples)


def switches(model: Model) -> bool | None:
    """A model has parts that behave differently in the two modes; None if unknown."""
    family = model.family()
    if any(_ALWAYS_SWITCHES.search(each.kind) and not each.same_in_both_modes for each in family):
        return True
    return model.mode_dependent


def is_of_library(model: Model) -> bool:
    """All that is not known of it is inside one class of an installed package."""
    unknown = [each for each in model.family() if not (each.complete or each.samples)]
    return bool(unknown) and all(
        member.kind.partition(".")[0] in _PACKAGES and member.cls is None
        and _BY_NAME.search(member.kind) is None
        for member in unknown
    )  # fmt: skip


def sleeps_alone(event: ModelForward) -> bool:
    """`model.training = False` does not reach the layers inside: those that heed it are awake."""
    parts = [each for each in event.model.family() if each is not event.model and may_switch(each)]
    return event.training is False and bool(parts) and all(each.training for each in parts)


def called_at_once(event: ModelForward, turn: Turn | None) -> Location | None:
    """One call without gradients on something that is named for validation, `model(x_val)`, or in a
    function that is, though no loop over batches contains it there. The place of the call, or of
    the one in that function that led to it."""
    if event.grad or not event.grad_known or not event.result_used or not event.given:
        return None
    frames = (*event.stack, event.place)
    if any(each.function.endswith(_STEPS_OF_A_LOOP) for each in frames):
        return None  # the loop, which may be a library's, learns from the batch, or sets the mode
    if turn is None and any(names_validation(each) for each in event.given):
        return event.place
    functions = [each.function for each in frames]
    around = turn.loop.place.function if turn is not None else None
    inside = len(functions) - functions[::-1].index(around) if around in functions else 0
    if turn is not None and not inside:
        return None
    named = (each for each in frames[inside:] if names_validation(each.function.rpartition(".")[2]))
    return next(named, None)


def severity_of(model: Model) -> Literal["advice"] | None:
    """Advice where nothing shows that a network has dropout or batch norm: it was handed in by a
    caller that is not read, or comes from a package that is not known for its networks."""
    if switches(model):
        return None
    unknown = [each for each in model.family() if not (each.complete or each.samples)]
    known = any(each.asks_mode or each.kind.partition(".")[0] in _PACKAGES for each in unknown)
    return None if known or not unknown else "advice"


def may_train(optimizer: Optimizer, model: Model) -> bool:
    """An optimizer has parameters of a model, or may have them for all that is known."""
    if optimizer.trains(model):
        return True
    return not (optimizer.complete or optimizer.models or optimizer.tensors)


def takes_back(event: ModeSet, before: ModeSet | None) -> bool:
    """Two switches of one model in one function, the second of which takes the first one back:
    nobody means both."""
    return (
        before is not None
        and event.model is before.model
        and {event.training, before.training} == {True, False}
        and not (event.guards or before.guards)
        and event.stack == before.stack
        and event.place.function == before.place.function
        and event.turns[: len(before.turns)] == before.turns
    )


def overrides(event: ModeSet, before: ModeSet) -> bool:
    """A function has set eval mode, and what it calls next sets train mode."""
    return (
        event.model is before.model
        and before.training is False
        and event.training is True
        and not (event.guards or before.guards)
        and len(event.stack) > len(before.stack)
        and event.stack[: len(before.stack)] == before.stack
    )


def called(event: ModelForward) -> str:
    """The user's name for the module that a forward goes through."""
    return event.spelled or event.model.name or "the model"


class Forwards:
    """The forwards of a run so far, and which of them a gradient was taken of."""

    def __init__(self) -> None:
        self.by_serial: dict[int, ModelForward] = {}
        self.used: set[int] = set()

    def add(self, event: ModelForward) -> None:
        self.by_serial[event.serial] = event

    def through(self, event: Backward | GradTaken) -> set[int]:
        """Serial numbers of the forwards that a gradient goes through, which are used from now on.

        Where the loss has no history, those of the same turn are taken to be.
        """
        loss: Tensor | None = event.loss if isinstance(event, Backward) else event.outputs
        found = set(loss.forwards) if loss is not None else set()
        if not found:
            found = {serial for serial, each in self.by_serial.items() if _near(each, event)}
        self.used |= found
        return {serial for serial in found if serial in self.by_serial}

    def unused(self, serials: Iterable[int]) -> Iterator[ModelForward]:
        for serial in serials:
            if serial not in self.used and serial in self.by_serial:
                yield self.by_serial[serial]


def _near(forward: ModelForward, event: Event) -> bool:
    """A forward of the turn that an event happens in, or of a loop within that turn."""
    return forward.grad and forward.turns[: len(event.turns)] == event.turns


def loops_of(event: Event) -> Iterator[Loop]:
    """The loops that may be passes over data and that an event happens in."""
    return (turn.loop for turn in event.turns if turn.loop.kind != "epochs")
