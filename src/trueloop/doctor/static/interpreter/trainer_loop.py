"""The loop of transformers' Trainer around the methods of a subclass.

`compute_loss`, `training_step`, `prediction_step`, `create_optimizer` and `create_scheduler` are
called by code that is not there to be read. Here the same calls are made, in the order of
transformers 5; what a class leaves as it is does here what the Trainer does.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from trueloop.doctor.model.events import (
    Backward,
    BatchFetched,
    OptimizerStep,
    ScalerUpdate,
    SchedulerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import (
    AccumulationWindow,
    Loop,
    Model,
    Optimizer,
    Scaler,
    Scheduler,
    Tensor,
)
from trueloop.doctor.static.interpreter.calls import start
from trueloop.doctor.static.interpreter.framework_loops import (
    TURNS,
    Looping,
    method,
    most_arguments,
    turns,
)
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    Function,
    Instance,
    LibraryName,
    OpaqueObject,
    Sequence,
    TrainerObject,
    Unknown,
    Value,
)
from trueloop.doctor.static.stubs.tensors import as_tensor, derive

BY = "Trainer"
_TRAINER = re.compile(r"transformers\.(trainer\.|trainer_seq2seq\.)?(Seq2Seq)?Trainer")
_OWN_LOOP = frozenset("train _inner_training_loop evaluation_loop get_batch_samples".split())
_METHODS = frozenset(
    "compute_loss training_step prediction_step create_optimizer create_scheduler"
    " create_optimizer_and_scheduler".split()
)
_CAUSAL = re.compile(
    r"transformers\.(.*\.)?(Auto)?\w*ForCausalLM(\.from_pretrained|\.from_config)?"
)


@dataclass
class Training:
    """One training of one Trainer."""

    trainer: TrainerObject
    model: Model
    optimizer: Optimizer
    schedule: Scheduler | None
    window: Value | None
    """`gradient_accumulation_steps`, where it is more than one; None for one, or not known."""
    evaluates: bool
    """It is known to evaluate between updates."""
    node: ast.AST


def is_trainer(cls: Class) -> bool:
    """A subclass of transformers' Trainer that changes some of its methods, and not its loop."""
    bases = cls.dotted_bases()
    unknown = [each for each in cls.lineage() if not isinstance(each, (Class, LibraryName))]
    return (
        not unknown
        and any(_TRAINER.fullmatch(base) for base in bases)
        and all(_TRAINER.fullmatch(base) or base in ("abc.ABC", "object") for base in bases)
        and not any(cls.lookup(name) for name in _OWN_LOOP)
    )


def train(m: Interpreter, trainer: TrainerObject, node: ast.AST) -> None:
    """`trainer.train()`."""
    if trainer.running or not is_trainer(trainer.cls):
        return
    trainer.running, trainer.runs = True, trainer.runs + 1
    found = _prepare(m, trainer, node)
    if found is not None:
        _loops(m, found)
        for each in found.model.family():
            each.training = None  # it may have been evaluated last
    trainer.running = False


def _prepare(m: Interpreter, trainer: TrainerObject, node: ast.AST) -> Training | None:
    """The Trainer's parts when the loop begins; None where they are not known well enough."""
    model = trainer.attributes.get("model")
    if not isinstance(model, Model):
        model = trainer.attributes["model"] = Model(name="model", complete=False, training=None)
    optimizer = _made_by(m, trainer, "optimizer", 0, ("create_optimizer",))
    if optimizer is None:
        optimizer = Optimizer(name="self.optimizer", kind="torch.optim.AdamW", known=True)
        optimizer.models, optimizer.made = [model], m.place(node)
        trainer.attributes["optimizer"] = optimizer
    makers = ("create_scheduler", "create_optimizer_and_scheduler")
    schedule = _made_by(m, trainer, "lr_scheduler", 1, makers)
    if not isinstance(optimizer, Optimizer):
        return None
    if isinstance(schedule, Scheduler):
        schedule.stepped_by = BY
    else:
        schedule = None
    window = _option(trainer, "gradient_accumulation_steps")
    if isinstance(window, Constant) and window.value in (None, 1):
        window = None
    return Training(trainer, model, optimizer, schedule, window, _evaluates(trainer), node)


def _made_by(
    m: Interpreter, trainer: TrainerObject, name: str, position: int, makers: tuple[str, ...]
) -> Value | None:
    """The optimizer or schedule that `optimizers=(...)` or a method gives; None for neither."""
    given = trainer.attributes.get("optimizers")
    if isinstance(given, Sequence) and len(given.values) == 2:
        found = given.values[position]
        if not (isinstance(found, Constant) and found.value is None):
            trainer.attributes[name] = found
            return found
    for maker in makers:
        function = trainer.cls.lookup(maker)
        if isinstance(function, Function):
            steps: list[Value] = [Unknown("num_training_steps")]
            if "scheduler" in maker:
                steps.append(trainer.attributes.get("optimizer", Constant(None)))
            most = most_arguments(function, True)
            found = start(m, function, [trainer, *steps[:most]], {}, function.node)
            return trainer.attributes.get(name, found)
    return None


def _option(trainer: TrainerObject, name: str) -> Value | None:
    """A field of the `TrainingArguments`; None where it is not given, or they are not known."""
    args = trainer.attributes.get("args")
    return args.arguments.get(name) if isinstance(args, OpaqueObject) else None


def _evaluates(trainer: TrainerObject) -> bool:
    strategy = _option(trainer, "eval_strategy") or _option(trainer, "evaluation_strategy")
    if strategy is not None:
        return isinstance(strategy, Constant) and strategy.value in ("steps", "epoch")
    return trainer.cls.lookup("prediction_step") is not None


def _loops(m: Interpreter, run: Training) -> None:
    """A few epochs of a few batches, with an update after each or after some of them."""
    node = run.node
    epochs = Loop(place=m.place(node), kind="epochs", simulated=TURNS, framework=BY)
    epochs.turns = _size_of(m, run, "num_train_epochs")
    with Looping(m, epochs, node):
        for _ in turns(m, epochs):
            loader = "train_dataloader"
            count = 2 * (TURNS - 1) if run.window is not None else TURNS
            batches = Loop(place=m.place(node), kind="batches", simulated=count, framework=BY)
            batches.over, batches.turns = loader, f"len({loader})"
            with Looping(m, batches, node):
                for index in turns(m, batches):
                    batch = Tensor(role="batch", graph=False, made=m.place(node))
                    m.emit(BatchFetched, node, loop=batches, loader=None, batch=batch)
                    _micro_batch(m, run, batch)
                    if run.window is None:
                        _update(m, run)
                    elif index % 2:
                        window = AccumulationWindow(m.size(run.window), None)
                        with m.guarded([], [window]):
                            _update(m, run)
            if run.evaluates:
                evaluate(m, run.trainer, node)


def _size_of(m: Interpreter, run: Training, name: str) -> str | int | None:
    value = _option(run.trainer, name)
    return m.size(value) if value is not None else None


def _micro_batch(m: Interpreter, run: Training, batch: Tensor) -> None:
    own = run.trainer.cls.lookup("training_step")
    count = Unknown("num_items_in_batch")
    if isinstance(own, Function):
        args: list[Value] = [run.trainer, run.model, batch, count]
        most = most_arguments(own, True)
        start(m, own, args if most is None else args[: most + 1], {}, own.node)
    else:
        training_step(m, run.trainer, run.model, batch, run.node)


def training_step(
    m: Interpreter, trainer: TrainerObject, model: Value, batch: Value, node: ast.AST
) -> Value:
    """The Trainer's own: train mode, the loss, its backward."""
    method(m, model, "train", node)
    value = compute_loss(m, trainer, model, batch, node)
    if isinstance(value, Sequence) and value.values:
        value = value.values[0]
    if not isinstance(value, Tensor):
        m.emit(Backward, node, loss=None, create_graph=None, by="foreign")
        return value
    loss, divides = value, _divides(trainer)
    if divides:
        loss = derive(m, node, value, keeps_loss=True)
        loss.reduced, loss.divided = value.reduced, True
    at: Location | ast.AST = value.made if value.made.line else node
    m.emit(Backward, at, loss=loss, create_graph=None, by="tensor")
    found = derive(m, node, value, keeps_loss=True)
    found.graph = False
    return found


def compute_loss(
    m: Interpreter,
    trainer: TrainerObject,
    model: Value,
    batch: Value,
    node: ast.AST,
    *,
    outputs: bool = False,
) -> Value:
    """The class's own, or the Trainer's: the model computes its loss itself."""
    own = trainer.cls.lookup("compute_loss")
    if isinstance(own, Function):
        args: list[Value] = [
            trainer,
            model,
            batch,
            Constant(outputs),
            Unknown("num_items_in_batch"),
        ]
        most = most_arguments(own, True)
        return start(m, own, args if most is None else args[: most + 1], {}, own.node)
    return default_loss(m, trainer, model, batch, node)


def default_loss(
    m: Interpreter, trainer: TrainerObject, model: Value, batch: Value, node: ast.AST
) -> Value:
    """The Trainer's own `compute_loss`."""
    found = m.call_value(model, [batch], {}, node)
    function = trainer.attributes.get("compute_loss_func")
    if isinstance(function, Function):
        labels = as_tensor(m, batch, node)
        args = [found, derive(m, node, labels), Unknown("num_items_in_batch")]
        most = most_arguments(function, False)
        return start(m, function, args[:most], {}, function.node)
    loss = as_tensor(m, found, node)
    made = derive(m, node, loss, keeps_loss=True)
    made.divided = True  # by the number of items, or of micro-batches
    return made


def _update(m: Interpreter, run: Training) -> None:
    """Optimizer, schedule and clearing of the gradients. A fault of this order is the fault of a
    `training_step` of the class's own: it is where the update is taken to be."""
    own = run.trainer.cls.lookup("training_step")
    node = own.node if isinstance(own, Function) else run.node
    scaler = _own_scaler(run.trainer)
    m.emit(OptimizerStep, node, optimizer=run.optimizer, scaler=scaler)
    if scaler is not None:
        m.emit(ScalerUpdate, node, scaler=scaler)
    if run.schedule is not None and run.schedule.kind != "ReduceLROnPlateau":
        m.emit(SchedulerStep, run.schedule.made, scheduler=run.schedule)
    m.emit(ZeroGrad, run.node, target=run.optimizer)


def _own_scaler(trainer: TrainerObject) -> Scaler | None:
    """The `scaler` of the Trainer (before transformers 4.31) or of its accelerator, which steps
    through it; not one that the class has made itself: neither knows of it."""
    accelerator = trainer.attributes.get("accelerator")
    for holder in (trainer, accelerator):
        found = holder.attributes.get("scaler") if isinstance(holder, (Instance, Unknown)) else None
        if isinstance(found, Scaler) and not found.known:
            return found
    return None


def evaluate(m: Interpreter, trainer: TrainerObject, node: ast.AST) -> None:
    """`trainer.evaluate()`: a loop over batches in eval mode. That nothing is recorded is
    `prediction_step`'s own doing."""
    model = trainer.attributes.get("model")
    own = trainer.cls.lookup("prediction_step")
    if model is None:
        return
    method(m, model, "eval", node)
    loop = Loop(place=m.place(node), kind="batches", simulated=TURNS - 1, framework=BY)
    loop.over = "eval_dataloader"
    with Looping(m, loop, node):
        for _ in turns(m, loop):
            batch = Tensor(role="batch", graph=False, made=m.place(node))
            m.emit(BatchFetched, node, loop=loop, loader=None, batch=batch)
            if isinstance(own, Function):
                args: list[Value] = [trainer, model, batch, Constant(False), Constant(None)]
                most = most_arguments(own, True)
                start(m, own, args if most is None else args[: most + 1], {}, own.node)
            else:
                prediction_step(m, trainer, model, batch, node)


def prediction_step(
    m: Interpreter, trainer: TrainerObject, model: Value, batch: Value, node: ast.AST
) -> Value:
    """The Trainer's own."""
    m.grad.append(False)
    try:
        return compute_loss(m, trainer, model, batch, node, outputs=True)
    finally:
        m.grad.pop()


# ------------------------------------------------------------------------------- the division


def _divides(trainer: TrainerObject) -> bool:
    """The Trainer divides the loss by the micro-batches of an update, or the loss is normalised
    over all of them. It does not where the model takes `num_items_in_batch`, or where there is a
    `compute_loss_func`: then the user's function must use that number."""
    if _says_so(trainer):
        return True
    own = trainer.cls.lookup("compute_loss")
    function = trainer.attributes.get("compute_loss_func")
    if isinstance(own, Function):
        if not _has_labels(own) or _uses_count(own, 5):
            return True
        return not _accepts_count(trainer.attributes.get("model"))
    return not isinstance(function, Function) or _uses_count(function, 3)


_FLAGS = ("loss_is_scaled_for_ga", "model_accepts_loss_kwargs")


def _says_so(trainer: TrainerObject) -> bool:
    """The class sets what decides on the division itself."""
    for kind in trainer.cls.lineage():
        if isinstance(kind, Class) and not _names_set(kind.node).isdisjoint(_FLAGS):
            return True
    return any(name in trainer.attributes for name in _FLAGS)


@once
def _names_set(node: ast.AST) -> frozenset[str]:
    """The names and attributes that a class's text assigns to."""
    return frozenset(
        getattr(each, "id", getattr(each, "attr", ""))
        for each in walk(node)
        if isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Store)
    )


@once
def _words(node: ast.AST) -> frozenset[str]:
    """The texts, the names that are read and the attributes of a function."""
    found: set[str] = set()
    for each in walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.add(each.value)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
    return frozenset(found)


def _has_labels(function: Function) -> bool:
    return "labels" in _words(function.node)


def _uses_count(function: Function, position: int) -> bool:
    """It reads `num_items_in_batch`, or hands on what may contain it."""
    spec, words = function.node.args, _words(function.node)
    stars = {each.arg for each in (spec.vararg, spec.kwarg) if each is not None}
    named = [each.arg for each in (*spec.posonlyargs, *spec.args)][position - 1 : position]
    counts = {*named, "num_items_in_batch", *stars}
    return not words.isdisjoint(counts) or "super" in words


def _accepts_count(model: Value | None) -> bool:
    """The model's `forward` takes any keyword, so the Trainer hands it the number of items and
    takes the loss to be normalised by it. False where that is not known."""
    if not isinstance(model, Model):
        return False
    forward = model.cls.lookup("forward") if isinstance(model.cls, Class) else None
    if isinstance(forward, Function):
        return forward.node.args.kwarg is not None
    return model.cls is None and _CAUSAL.fullmatch(model.kind) is not None


def methods_of(node: ast.ClassDef) -> list[ast.stmt]:
    """The methods by which a class changes how the Trainer trains; none for other classes."""
    if not any(last_name(base).endswith("Trainer") for base in node.bases):
        return []
    return [each for each in node.body if getattr(each, "name", "") in _METHODS]
