"""The vocabulary: what a training program does.

*Things* (`things`) are what a program has; *events* are what it does to them, in the order in which
it does it. Reading source yields the events of the runs that the source can make, one run at a
time; watching yields those of the current run. A rule sees only events: it is written once.

Whatever is not known for certain is `None` (or a symbolic `Size`). A rule that meets it is silent.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from trueloop.doctor.model.file_paths import NO_PATH, FilePath
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Unknown, Value
from trueloop.doctor.model.things import (
    NOWHERE,
    AccumulationWindow,
    Criterion,
    Loader,
    Loop,
    Model,
    Optimizer,
    Scaler,
    Scheduler,
    StateDict,
    Tensor,
    Thing,
    Turn,
)


@dataclass(eq=False, kw_only=True)
class Event:
    """Something that happened."""

    place: Location = NOWHERE
    """The user's line."""
    turns: tuple[Turn, ...] = ()
    """The loops that it happened in, outermost first."""
    guards: frozenset[str] = frozenset()
    """Open conditions that it depends on: a run may or may not get here. Empty when live, empty
    where the condition was decided (constants, `i % n == 0`)."""
    stack: tuple[Location, ...] = ()
    """The calls that led here, outermost first, without `place` itself."""
    grad: bool = True
    """Autograd was recording (no `no_grad`, no `inference_mode`)."""
    autocast: str | None = None
    """`float16`, `bfloat16`, `unknown` inside an enabled autocast block; else None."""
    serial: int = 0
    """Counts events of a run; larger is later."""
    windows: tuple[AccumulationWindow, ...] = ()
    """It is in a branch that such windows open and close: a step of every n-th micro-batch."""

    @property
    def turn(self) -> Turn | None:
        """The innermost turn of a loop over batches that it happened in; None outside of any."""
        for turn in reversed(self.turns):
            if turn.loop.kind == "batches":
                return turn
        return None


@dataclass(eq=False, kw_only=True)
class Made(Event):
    """A thing came into being: a model, optimizer, scheduler, scaler, loader, criterion, ..."""

    thing: Thing
    dropped: bool = False
    """A layer that is only called where it is made: nothing keeps it (in source)."""


@dataclass(eq=False, kw_only=True)
class Used(Event):
    """A function or class of a library was called that rules of one area ask about.

    `what` is its canonical dotted name (`torch.distributed.all_reduce`,
    `torch.optim.swa_utils.update_bn`), `subject` the thing it was called on or with first.
    """

    what: str
    subject: Any = None
    result_used: bool = True
    ranks: int = 0
    """Processes of the group; 0 where unknown."""
    mesh: bool = False
    """It was given a mesh of devices (in source)."""


@dataclass(eq=False, kw_only=True)
class FunctionalDropout(Event):
    """`torch.nn.functional.dropout` or a function like it was called."""

    function: str
    p: Any
    """None where unknown."""
    training: bool | None
    """Its argument `training` was given; None where unknown."""
    module: Model | None = None
    """The module whose method it was called in."""
    asks_mode: bool = False
    """That method has a condition on the mode."""
    last_argument: Location | None = None
    receiver: str = ""
    """The method's name of its module: `self` (in source)."""


@dataclass(eq=False, kw_only=True)
class ZeroGrad(Event):
    """Gradients were cleared: `zero_grad()`, or by hand (`p.grad = None`, `p.grad.zero_()`)."""

    target: Optimizer | Model | Tensor | None
    """None: some parameters, by hand, that could not be traced."""
    by_hand: bool = False
    accumulating: bool = False  # of the model of `with accelerator.accumulate(model)` (in source)


@dataclass(eq=False, kw_only=True)
class ModelForward(Event):
    """A model was called from outside of any other model."""

    model: Model
    training: bool | None
    inputs: tuple[Any, ...] = ()
    output: Any = None
    on_models: bool = False  # a module is one of its arguments (in source)
    direct: bool = False  # as `model.forward(x)`, and not from inside of a module
    callee: Location = NOWHERE  # of the expression `self.model`, or `self.model.forward`
    spelled: str = ""
    """How the module is written in the call: `self.model`."""
    given: tuple[str, ...] = ()  # how its positional arguments are written (in source)
    result_used: bool = True
    functional: bool = False  # through `torch.func.functional_call`
    grad_known: bool = True
    """Nobody asked for a graph in so many words, and it is in no context that cannot be read and
    has the model (in source)."""
    flags: frozenset[tuple[str, bool]] = frozenset()  # arguments by name, `True` or `False`
    fetched: int = 0  # the turn in which its inputs were fetched; 0: not seen
    switched_on: tuple[Model, ...] = ()  # batch norm, dropout called in train mode (in source)
    heeds_mode: bool = True  # what depends on the mode may have been called (False only when live)
    fed_by: frozenset[int] = frozenset()  # of its inputs (in source)
    fed_with: frozenset[int] = frozenset()  # the forwards whose outputs are its inputs (in source)
    learning: int | None = None  # layers that learn: 0, 1 linear one, or 2 for more (live)


@dataclass(eq=False, kw_only=True)
class Loss(Event):
    """A loss function was called."""

    criterion: Criterion
    input: Any
    target: Any
    output: Tensor


@dataclass(eq=False, kw_only=True)
class Backward(Event):
    """Gradients were computed and added to `.grad`."""

    loss: Tensor | None
    create_graph: bool | None = False
    retain_graph: bool | None = None
    """The graph keeps what it has stored; None where that is not known."""
    by: Literal["tensor", "scaler", "foreign"] = "tensor"
    """`foreign`: through `accelerator.backward`, `fabric.backward`, apex, ... which may do more."""
    undivided: bool = False
    """`foreign`, and known not to divide the loss by the micro-batches of an update (in source)."""
    members: tuple[int, frozenset[Model], frozenset[Model]] | None = field(default=None, repr=False)
    """Kept by `step_order.members_of`."""


@dataclass(eq=False, kw_only=True)
class GradTaken(Event):
    """`torch.autograd.grad`: gradients were returned; nothing was added to `.grad`."""

    outputs: Tensor | None
    of_parameters: bool = True  # or may be; False for other tensors (in source)


@dataclass(eq=False, kw_only=True)
class GradEdited(Event):
    """`.grad` was changed by hand: divided, clamped, replaced, averaged over ranks."""

    target: Optimizer | Tensor | None = None
    """The parameter, or what holds it (live)."""
    how: Literal["set", "scaled", "clipped", "reduced"] = "set"
    """Multiplied in place; `clipped`: by a number made of gradients, or cut to a range; `reduced`:
    added up or averaged over ranks by `all_reduce`."""


@dataclass(eq=False, kw_only=True)
class GradRead(Event):
    """`.grad` was looked at by hand: gathered, measured, or about to be edited."""

    target: Tensor | Unknown
    logged: bool = False  # in the arguments of a call that writes a log: nothing is done with it
    measured: bool = False  # its norm is taken, or whether there is one is asked
    asked: bool = False  # whether there is one is all that is asked


@dataclass(eq=False, kw_only=True)
class Unscale(Event):
    scaler: Scaler
    optimizer: Optimizer | None


@dataclass(eq=False, kw_only=True)
class Clip(Event):
    """`clip_grad_norm_` or `clip_grad_value_`."""

    models: list[Model]
    """The modules whose gradients are clipped."""
    complete: bool
    """All that is clipped was traced to `models` or `optimizer`."""
    optimizer: Optimizer | None = None  # whose parameter groups are clipped
    by: Literal["norm", "value"] = "norm"
    limit: Any = None
    """`max_norm`: a number where known; None otherwise."""
    times_scale: bool = False  # the limit was multiplied by the loss scale
    result_used: bool = False


@dataclass(eq=False, kw_only=True)
class OptimizerStep(Event):
    """An optimizer was asked to update its parameters."""

    optimizer: Optimizer
    scaler: Scaler | None = None
    """Through `scaler.step(optimizer)`."""
    closure: bool = False
    """With a closure, whose events came before this one."""
    spelled: str = ""
    """The name of the optimizer in the source: `self.optimizer`; empty without one."""
    scaler_spelled: str = ""
    """The name of the scaler, for a step through one."""
    conditional: bool = False
    """It is inside an `if` (live; in source, `guards` and `windows` show it)."""
    applied: frozenset[int] | None = None
    """Identities of its parameters that had a gradient (live)."""


@dataclass(eq=False, kw_only=True)
class ManualUpdate(Event):
    """Parameters were changed by hand: `p -= lr * p.grad`, `p.data.copy_(...)`, EMA."""

    target: Optimizer | Tensor | None = None
    """The parameter, or what holds it (live)."""

    @property
    def models(self) -> Collection[Model]:
        """The modules whose parameters were changed, as far as known."""
        return self.target.models if self.target is not None else ()


@dataclass(eq=False, kw_only=True)
class ScalerUpdate(Event):
    scaler: Scaler


@dataclass(eq=False, kw_only=True)
class SchedulerStep(Event):
    """`scheduler.step(...)`."""

    scheduler: Scheduler
    metric: Any = None
    """The argument, if there was one: a metric (plateau) or an epoch number."""
    metric_name: str = ""  # how the argument is written: `val_loss`, `scores["accuracy"]`
    metric_origins: tuple[str, ...] = ()  # what its name was given before that: `val_acc`


@dataclass(eq=False, kw_only=True)
class ModeSet(Event):
    """`model.train()` / `model.eval()`."""

    model: Model
    training: bool | None


@dataclass(eq=False, kw_only=True)
class FlagsSet(Event):
    """`requires_grad` of a whole module's parameters was switched."""

    model: Model
    requires_grad: bool | None
    whole: bool = False  # certainly of all its parameters: `model.requires_grad_(...)`
    thawed_later: bool = False  # the file may thaw it in turns that are not read (in source)
    by_name: bool = False  # a loop has chosen the parameters by their names (in source)


@dataclass(eq=False, kw_only=True)
class Replaced(Event):
    """A module of a model was replaced by a new one, or a model's parameters were."""

    model: Model
    attribute: str
    old: Any
    new: Any
    how: str = "assigned"
    """`assigned`, `to_empty`, `assign` (load_state_dict), `parametrized`."""


@dataclass(eq=False, kw_only=True)
class AttributeSet(Event):
    """`self.x = value` on a module, at construction or later."""

    model: Model
    attribute: str
    value: Value
    what: Location = NOWHERE
    """The expression of the value."""
    nn: str = ""
    """How the file writes `torch.nn`: `nn`; empty if it does not import it."""
    read: bool | None = None
    """A method of its class, other than `__init__`, reads the attribute (only of containers)."""
    trailing_comma: bool = False  # the value is a tuple only because a comma ends it
    helper: str = ""  # the class of the value, an object that is not a module (in source)
    helper_attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False, kw_only=True)
class HookSet(Event):
    """Calls of a module run a hook from now on, which a direct call of `forward` skips; or it was
    removed again (in source)."""

    model: Model | None
    """None: any module."""
    by: str = ""
    """The function that set it: `register_forward_hook`, `fully_shard`, `weight_norm`, ..."""
    removed: bool = False


@dataclass(eq=False, kw_only=True)
class LoopEntered(Event):
    loop: Loop


@dataclass(eq=False, kw_only=True)
class LoopLeft(Event):
    loop: Loop
    unread_backward: bool = False
    """The reader has not executed every `backward` in the code of the run so far."""
    returned: Location = NOWHERE
    """The `return` under no condition that ends its first turn with a sum of turns (in source)."""


@dataclass(eq=False, kw_only=True)
class BatchFetched(Event):
    """A turn of a loop over batches begins."""

    loop: Loop
    loader: Loader | None
    batch: Any = None


@dataclass(eq=False, kw_only=True)
class TensorRetained(Event):
    """A tensor was added up, appended or stored in something that outlives the turn."""

    tensor: Tensor
    how: Literal["sum", "append", "store"]
    holder: str
    """How the code names its owner: `total_loss`, `history["loss"]`."""
    container: Any = None
    """The value that contains it now (for `sum`: the new total)."""
    what: Location = NOWHERE  # the expression that is kept: `loss` in `total += loss`
    since: int | None = None
    """Distinguishes the lives of a holder: a new number each time it is emptied."""
    let_go: bool = False  # a loop around it empties or shortens the holder (in source)


@dataclass(eq=False, kw_only=True)
class Moved(Event):
    """`.to(...)`, `.cuda()`, `.half()`, ... of a model."""

    model: Model
    how: str  # `device`, `dtype` or `both`
    to: str = ""  # the target of the cast: `half`, `float16`, ...; empty where unknown
    device: str = ""  # that it goes to: a name, or the program's expression (in source)


@dataclass(eq=False, kw_only=True)
class StateDictCreated(Event):
    """`thing.state_dict()` was called."""

    state: StateDict


@dataclass(eq=False, kw_only=True)
class FileSaved(Event):
    """`torch.save(value, file)`."""

    value: Value | None
    file: str = ""
    """How the file is written in the source, or its path."""
    path: FilePath = NO_PATH
    by_rank: bool | None = None
    """The file's name depends on the rank, or only some ranks get here; None: not known."""
    what: Location = NOWHERE
    """Where `value` is written."""
    world_of_one: bool = False  # a guard on the world size lets only one rank get here (in source)


@dataclass(eq=False, kw_only=True)
class FileLoaded(Event):
    """`torch.load(file)`."""

    file: str
    path: FilePath = NO_PATH
    weights_only: bool | None
    """None where it was not given."""
    value: Any = None
    option: Location = NOWHERE
    """Where the value of `weights_only` is written."""


@dataclass(eq=False, kw_only=True)
class FileDownloaded(Event):
    """A file is downloaded (in source)."""

    path: FilePath
    """Where it is put."""


@dataclass(eq=False, kw_only=True)
class StateDictLoaded(Event):
    """`thing.load_state_dict(state)`."""

    thing: Thing
    state: Value | None
    strict: bool | None = True
    assign: bool | None = False
    result_used: bool = False
    missing: tuple[str, ...] = ()
    """Keys that the state lacked (live)."""
    unexpected: tuple[str, ...] = ()
    """Keys that the thing lacked (live)."""


@dataclass(eq=False, kw_only=True)
class Seeded(Event):
    """A global generator was seeded."""

    library: str
    """`torch`, `numpy`, `random`, `all`."""
    value: Value | int | float | str | None
    """The seed; a plain number or text when live."""
    depends: bool | None = False
    """It changes with the loops around it; None where unknown."""
    forked: bool = False  # inside `fork_rng`, or restored afterwards
    by_rank: bool = False  # it depends on the rank
    drawn: bool = False  # the seed itself, at random or off a clock (in source)
    for_data: bool = False  # in a function that draws samples and returns them (in source)


@dataclass(eq=False, kw_only=True)
class EscapedToUnknown(Event):
    """Things were handed to code that cannot be read."""

    things: list[Thing]
    callee: str


@dataclass(eq=False, kw_only=True)
class GraphEscaped(Event):
    """A tensor with a graph, or a call of a model's own method, went to code that cannot be read;
    once in a run for each `callee` and the same models (in source)."""

    callee: str
    models: frozenset[Model] = frozenset()  # that the graph leads to; empty: not known


@dataclass(eq=False, kw_only=True)
class NotCalled(Event):
    """A statement is the name of a method, without brackets: `loss.backward` (in source)."""

    method: str


@dataclass(eq=False, kw_only=True)
class SamplingGap(Event):
    """From here to the next event the program ran on without being looked at (live)."""

    modes_switched: bool = False  # by which call, of which module, is not known


@dataclass(eq=False, kw_only=True)
class Ended(Event):
    """The run is over (or all of it that could be read)."""

    whole_program: bool = True  # read from its top, not a function on its own
    switched: frozenset[str] = frozenset()  # names whose `eval`, `train` they call (in source)
    stepped: frozenset[str] = frozenset()  # whose `step` they or comments name (in source)
    stepped_entries: frozenset[str] = frozenset()  # of these, entries: `parts["scheduler"].step()`
    never_stepped: dict[str, Location] = field(default_factory=dict)  # each under a false test
    handed_on: tuple[Value, ...] = ()  # the result of the first function, its object's attributes
    unread_backward: bool = False  # see `LoopLeft`
    updates: int | None = None  # of all optimizers (live)
