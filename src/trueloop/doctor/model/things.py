"""Things: what a training program has.

Models, optimizers, schedules, scalers, loaders, tensors, and the loops that go through them.
Reading source makes them out of expressions, watching out of the objects themselves; rules see only
these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import Value, births
from trueloop.doctor.model.submodules import Nested, Submodules
from trueloop.doctor.model.vocabulary import MODE_DEPENDENT_LAYERS

NOWHERE = Location("", 0)

Size = int | str | None
"""A number as far as it is known: the number, a symbolic text that is equal for equal quantities
(`args.epochs`, `len(train_loader)`), or None."""


@dataclass(eq=False, kw_only=True)
class Thing(Value):
    """Anything that events speak of; compared by identity."""

    name: str = ""
    """Its name in the user's code: `model`, `self.optimizer`; empty without one."""
    made: Location = NOWHERE  # where, if that was seen
    known: bool = False
    """It was seen being made from a class that is understood. Otherwise its kind is inferred from
    how it is used, and it may be something else in disguise."""
    exposed: bool = False
    """It was handed to code that cannot be read: anything may have happened to it since."""
    attributes: dict[str, Any] = field(default_factory=dict, repr=False)  # (in source)
    cls: Any = field(default=None, repr=False)
    """The user's own class, where it is one (in source)."""


class PositionalEps(NamedTuple):
    """The second argument of a batch norm, given without its name, and without a momentum."""

    value: float
    place: Location


@dataclass(eq=False, kw_only=True)
class Model(Nested, Thing):
    """A module with (or without) parameters."""

    kind: str = ""
    """Dotted class name: `torch.nn.Linear`, or the user's own class."""
    training: bool | None = True
    """Its mode now; None where unknown (a function's parameter)."""
    complete: bool = True
    """All its children are known; False for a model made by foreign code."""
    samples: bool = False  # its children stand for a longer list of layers like them (in source)
    parents: list[Model] = field(default_factory=list)
    wrapper: str = ""  # `ddp`, `dp`, `compile`, `fsdp`, `ema`, ...; empty for none
    asks_mode: bool = False  # its own code asks whether it trains
    pretrained: bool = False  # a library makes it with weights that are trained (in source)
    names_parameters: bool = False
    """Its class overrides `parameters()`, `modules()` or the like (in source)."""
    parameters_of: list[Model] | None = field(default_factory=list, repr=False)
    """Other modules whose parameters a `ParameterList` was given (in source); None: unknown."""
    sharded: bool | None = None  # its parameters are, among the ranks that share the data
    device_ids: bool = False  # a wrapper was given devices
    ranks: int = 0  # processes in its wrapper's group; 0 where unknown
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    """Those of its constructor that are constants, by the names that torch gives them."""
    guards: frozenset[str] = frozenset()
    """Open conditions that it was made under; see `Event.guards`."""

    copy_of: Model | None = field(default=None, repr=False)  # what it was copied from (in source)
    eps: PositionalEps | None = None
    born: int = field(default_factory=births.__next__, repr=False)  # see `births`

    @property
    def same_in_both_modes(self) -> bool:
        """Dropout of rate 0, in a layer or a transformer, or batch norm without running means."""
        asked = self.arguments
        return asked.get("p") in (0, 0.0) or asked.get("track_running_stats") is False

    @property
    def mode_dependent(self) -> bool | None:
        """It has layers that differ between the modes (dropout, batch norm); None if unknown."""
        found: bool | None = False
        for member in self.family():
            if member.asks_mode:
                return True
            head, _, short = member.kind.rpartition(".")  # of an own Transformer the parts decide
            if short in MODE_DEPENDENT_LAYERS and (head[:5] == "torch" or short[:5] != "Trans"):
                if member.arguments.get("p", 1) is None and member.guards:
                    found = None  # `if rate > 0: layers.append(nn.Dropout(rate))`
                elif not member.same_in_both_modes:
                    return True
            elif not (member.complete or member.samples or member.same_in_both_modes):
                found = None
        return found


@dataclass(eq=False, kw_only=True)
class Optimizer(Thing):
    """Something that updates parameters."""

    kind: str = ""
    """Dotted class name: `torch.optim.Adam`; empty if unknown."""
    models: list[Model] = field(default_factory=list)
    """The modules whose parameters it has."""
    complete: bool = True
    """`models` is complete; False if it has parameters that could not be traced."""
    tensors: list[Tensor] = field(default_factory=list)
    """Its single tensors (inputs that are optimised, `log_alpha`, ...)."""
    partial: bool = False
    """Of some of its `models` it may hold only some parameters (in source)."""
    groups: list[list[Model]] | None = None
    """The modules of each parameter group, none for one that is not known whole (in source)."""
    frozen_groups: frozenset[int] | None = None
    """Numbers of the groups without a parameter that can be trained (live)."""
    own_step: bool = False  # its class has a `step` of the user's own
    step_hooks: list[Any] = field(default_factory=list, repr=False)  # run after `step` (in source)
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    """Those of its constructor that are plain values, by the names that torch gives them."""
    prepared: str = ""
    """The library object that has wrapped it."""
    all_matrices_of: list[Model] = field(default_factory=list)
    """Modules of which it has every matrix."""
    signature: Any = field(default=None, repr=False)
    """Identifies its parameters at the time when `models` was found (live)."""
    has_stepped: bool | None = None  # False until it steps, if seen from its start (live)
    fusible: bool | None = None
    """It could be fused and is not; None where not looked at (live)."""
    fused_ratio: float | None = None  # a fused step's time relative to its own
    _members: tuple[int, list[Model], frozenset[Model]] | None = field(default=None, repr=False)

    def members(self) -> frozenset[Model]:
        """Its `models` with everything inside them."""
        known, now = self._members, Submodules.changes
        if known is None or known[0] != now or known[1] != self.models:
            found = frozenset[Model]().union(*(each.members() for each in self.models))
            known = self._members = now, [*self.models], found
        return known[2]

    def trains(self, model: Model) -> bool:
        """It has parameters of `model`, as far as is known."""
        return model in self.members() or not model.members().isdisjoint(self.models)


@dataclass(eq=False, kw_only=True)
class Scheduler(Thing):
    """A learning-rate schedule."""

    kind: str = ""  # only the class name: `CosineAnnealingLR`, `OneCycleLR`, ...
    optimizer: Optimizer | None = None
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    """Those of its constructor, by the names that torch (or transformers) gives them. Lengths are
    of the kind `Size`; `milestones` is a list of such, None if not all of it is known; `lr_lambda`
    is the function's length (in source)."""
    written: dict[str, str] = field(default_factory=dict, repr=False)
    """How each argument is written in the source."""
    option_defaults: dict[str, Any] = field(default_factory=dict, repr=False)
    """Argument -> the default of the command-line option that it is, if it is one (in source)."""
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    """All command-line options of the program with their defaults (in source)."""
    decay: float | None = None
    """The `b` of a `LambdaLR` with `lambda epoch: b**epoch`."""
    schedules: list[Scheduler] = field(default_factory=list)
    """Those inside of a `SequentialLR` or `ChainedScheduler`."""
    stepped_names: frozenset[str] = frozenset()  # on which the file calls `step` (in source)
    stepped_by: str = ""
    """The framework that steps it: `Lightning`, `Ignite`, `Trainer` (in source)."""
    steps_are_seen: bool = False  # whatever its name: the program runs
    read_by_hand: bool = False  # with `get_lr()`: the program may apply its values itself
    only_drawn: bool = False  # its rates are all that the function wants that steps it
    first_count: int | None = None
    """Its `last_epoch` before the first `step()` that was seen; 0 in source, if nothing sets it."""
    calls_between_samples: int = 0  # of `step()` (live)
    sampled_calls: int = 0
    rates: list[tuple[int, float]] = field(default_factory=list, repr=False)  # by position (live)
    own_step: bool = False  # its class has methods of the user's own that may set learning rates
    read_counts: frozenset[int] = frozenset()  # numbers that a `LambdaLR`'s function reads (live)


RATES_UNTOUCHED = frozenset(
    "__init__ get_lr _get_closed_form_lr get_last_lr print_lr state_dict load_state_dict __repr__"
    " __str__".split()
)
"""Methods of a schedule that change no learning rate by themselves."""


@dataclass(eq=False, kw_only=True)
class Scaler(Thing):
    """A gradient scaler for float16."""

    enabled: bool | None = True  # None where it depends on an option
    switch: Any = field(default=None, repr=False)  # what it was given for `enabled` (in source)
    updated_by_name: bool | None = None
    """The file calls `update` of something with its name; None in source."""
    never_unscales: bool = False
    """The class that steps with it calls `scale` and never `unscale_` (in source)."""


@dataclass(eq=False, kw_only=True)
class Dataset(Thing):
    """A data set, or a part of one."""

    kind: str = ""
    """Dotted class name: `torch.utils.data.TensorDataset`, the user's class, ..."""
    size: Size = None
    parent: Dataset | None = None  # that it is a part of (`Subset`, `random_split`)
    split_at: Location | None = None
    sorted_by_label: Location | None = None
    """The expression that puts its samples in the order of their classes."""
    is_test: bool = False
    tensors: list[Any] = field(default_factory=list, repr=False)
    chained: list[Any] = field(default_factory=list, repr=False)
    """The data sets that it puts together."""
    draws: list[Any] | None = field(default=None, repr=False)
    """Random numbers that reading a sample draws; None where not looked at."""
    iterable: bool = False
    by_rank: bool = False
    """The rank is used where it is made or read."""


@dataclass(eq=False, kw_only=True)
class Loader(Thing):
    """A DataLoader, or what is used as one (a function's parameter `loader`)."""

    dataset: Dataset | None = None
    batch_size: Size = None
    shuffle: bool | None = None
    drop_last: bool | None = None
    workers: Size = None
    length: Size = None
    """Batches in an epoch."""
    length_by_default: int | None = None  # in a run without options (in source)
    sampler: Thing | None = None
    sampler_default: bool = False
    """It is one that a loader makes itself (live)."""
    sampler_given: bool = False
    """One may be given, under some option."""
    epoch_set: bool = False
    shared_by_hand: bool = False  # the program shares the samples out among ranks itself
    open: bool = False  # some of its arguments are unknown
    samples: Size = None  # in an epoch; only where a batch has several
    dict_batches: bool = False
    """Its batches are plain dicts (in source)."""
    iterable: bool = False
    """Of an `IterableDataset`."""
    one_by_one: bool | None = None
    """It fetches samples one by one out of tensors in memory; None where not looked at."""
    persistent: bool | None = None
    reseeds: bool | None = None
    """Its `worker_init_fn` changes the data set's generators; None where unknown."""
    padding: frozenset[float] = frozenset()  # with which its `collate_fn` fills up (in source)
    worker_seeds: list[Any] | None = None  # the generators that it seeds; None where unknown


@dataclass(eq=False, kw_only=True)
class Sampler(Thing):
    """The source of the order of a loader's samples."""

    kind: str = ""
    """Dotted class name: `torch.utils.data.DistributedSampler`, the user's class, ..."""
    shuffle: bool | None = None
    """It draws the order at random."""
    dataset: Dataset | None = None  # (in source)
    epoch_set: bool = False
    """Its epoch was set by hand; live, also by `set_epoch`."""
    epoch: int | None = None
    """When it was gone through last (live)."""


@dataclass(eq=False, kw_only=True)
class Checkpoint(Thing):
    """The result of `torch.load`."""

    file: str = ""
    inside: Checkpoint | None = None
    """The contents that this is an entry of."""
    edited: bool = False
    keys: Any = field(default=None, repr=False)
    counts: Any = field(default=(), repr=False)
    numbers: dict[str, int] = field(default_factory=dict, repr=False)  # by their keys (live)
    optimizer_restored: frozenset[str] | None = None
    """The names of the optimizers that load a state somewhere in the source."""
    saved_in_part: bool = False
    """The program saves parts of state dicts."""


@dataclass(eq=False, kw_only=True)
class Criterion(Thing):
    """A loss function, as a module or as a function of `torch.nn.functional`."""

    kind: str = ""
    """Only the class name: `CrossEntropyLoss`, `BCEWithLogitsLoss`, `NLLLoss`, `KLDivLoss`, ..."""
    reduction: str | None = "mean"
    """`mean`, `sum`, `none`, `batchmean`; None where unknown."""
    reduction_written: bool = True
    arguments: dict[str, Any] = field(default_factory=dict, repr=False)
    """Those that are constants, by the names that torch gives them."""


class Activation(NamedTuple):
    """The last thing that was done to a tensor's values, if it bears on losses.

    Shape-only operations (view, reshape, squeeze, permute, `.to`, `.float()`) keep it; any other
    arithmetic removes it.
    """

    kind: str
    """`softmax`, `log_softmax`, `sigmoid`, `logsigmoid`, `log`, `argmax`, or `linear` (straight out
    of a linear or convolution layer: certainly logits)."""
    dim: int | None
    """Dimension that it runs over; None where unknown or meaningless."""
    place: Location
    guards: frozenset[str] = frozenset()  # conditions that it depended on; see `Event.guards`
    layer: Any = None  # the layer whose output it is, of a `linear` (in source)


class ParameterCopy(NamedTuple):
    """The result of a parameter's method in its place: a plain tensor."""

    parameter: Tensor
    method: str
    place: Location
    rewritten: str
    """The expression with the conversion inside of `nn.Parameter(...)`; empty if unknown."""


class ConstantGradient(NamedTuple):
    """The result of `autograd.grad` without `create_graph=True`: a constant to the next backward.
    Only while reading source."""

    place: Location
    option: Location
    """The value that is written for `create_graph`; `NOWHERE` without one."""
    last_argument: Location
    forwards: frozenset[int]
    """Of the output that it is the gradient of."""
    inputs: frozenset[Thing] = frozenset()
    """The tensors that the derivative was taken with respect to, as far as they are known."""
    of_parameters: bool = False
    residual: bool = False
    """It was added to what the same forward gave."""


@dataclass(eq=False, kw_only=True)
class Tensor(Thing):
    """A tensor, as far as its history matters. Operations make new ones."""

    graph: bool | None = False
    """It carries an autograd graph; None where unknown."""
    models: frozenset[Model] = frozenset()
    """The modules whose parameters its graph leads to, as they were called."""
    inputs: frozenset[Tensor] = frozenset()
    """Leaf tensors with `requires_grad` (not a model's) that its graph leads to."""
    forwards: frozenset[int] = frozenset()
    """Serial numbers of the `ModelForward` events that its graph goes through."""
    criteria: frozenset[Criterion] = frozenset()
    """The loss functions that its value went through: not empty for a loss."""
    is_loss: bool = False
    """It came out of a loss function, perhaps added up, weighted or divided since."""
    reduced: str | None = None
    """`mean` or `sum`: how it was reduced to one number; None where unknown."""
    divided: bool | None = False
    """It was divided (or multiplied by a number) after it was reduced; None where unknown."""
    scaled_by: Scaler | None = None
    activation: Activation | None = None
    role: str = ""
    """`input`, `target` or `batch` when it came from a loader; `parameter` for a leaf; else ''."""
    loader: Loader | None = None
    """The loader whose batch it belongs to, or was computed from."""
    shape: tuple[Size, ...] | None = None
    dtype: str | None = None
    """`float16`, `int64`, ...; None where unknown."""
    values: tuple[float, ...] | None = None  # where they are few and known (class counts)
    position: int | None = None  # in the batch that it is a part of
    # The rest is seldom set: a field that `__init__` leaves out costs nothing.
    requires_grad: bool = field(default=False, init=False)  # the program switched gradients on
    is_parameter: bool = field(default=False, init=False)  # `nn.Parameter(...)` made it (in source)
    entry: str = field(default="", init=False)  # of a layer, which it is: `weight` (in source)
    copy: ParameterCopy | None = field(default=None, init=False)
    fetched: int = field(default=0, init=False)
    """The turn of a loop, counted over the run, in which it was fetched as data (in source)."""
    of_gradients: bool = field(default=False, init=False)  # computed from them: a norm (in source)
    grad_of: Tensor | None = field(default=None, init=False)
    gradient: ConstantGradient | None = field(default=None, init=False)
    """It was computed from this gradient, without a graph."""
    constant_terms: frozenset[ConstantGradient] = field(default=frozenset(), init=False)
    """Gradients that were added to a loss, or to a residual, which it is."""
    of: tuple[Value, ...] = field(default=(), init=False, repr=False)
    """The values that it was computed from, outside of loops (in source)."""
    statistic_of: Value | None = field(default=None, init=False, repr=False)
    """The data whose mean, deviation or range it is, along the samples (in source)."""
    counts: bool = field(default=False, init=False)  # `torch.arange(...)` (in source)
    fill: float | None = field(default=None, init=False)  # the one number in it (in source)
    padding: frozenset[float] = field(default=frozenset(), init=False)  # of its rows (in source)
    data_of: Tensor | None = field(default=None, init=False)  # whose `.data` it is (in source)
    holder: Optimizer | None = field(default=None, init=False)  # its optimizer (in source)
    terms: Any = field(default=None, init=False)  # two summands, or a container of them (in source)
    one_hot_of: tuple[Tensor, Tensor | None] | None = field(default=None, init=False)
    """The labels, as one-hot rows, and what these were multiplied with (in source)."""
    divided_by: Size = field(default=None, init=False)  # the last; of an average, how many it has
    made_from: Sequence[Any] = field(default=(), init=False, repr=False)
    """The argument of a factory function: `torch.tensor(values)` (in source)."""
    rows_of: Tensor | None = field(default=None, init=False)  # what it was picked from (in source)
    rows_index: str = field(default="", init=False)  # the key of that index (in source)
    several_rows: bool = field(default=False, init=False)  # that index is a vector (in source)
    pieces: Any = field(default=None, init=False)  # the shape of each part of a split (in source)
    parts: tuple[Size, Size] | None = field(default=None, init=False)  # of a split; see `Loop`
    volatile: bool = field(default=False, init=False)  # as before torch 0.4 (in source)
    fed_by: frozenset[int] = field(default=frozenset(), init=False)
    """Serial numbers of `ModelForward`s without a graph that it was computed from (in source)."""
    version: int | None = None  # counts the changes in place up to this state (live)
    hidden: bool = False  # it came out of an operation that shows nothing of its kind (live)


@dataclass(eq=False, kw_only=True)
class StateDict(Thing):
    """The result of `state_dict()`."""

    owner: Thing | None = None
    edited: bool = False
    """Its keys were changed by hand."""
    keys: Any = field(default=None, repr=False)
    taken_from: Location | None = None
    """The expression whose state it is."""
    loaded_back: bool = False
    """The program loads into something of that name."""
    prefix_known: bool = False
    """The program handles the prefix of wrapped keys."""
    deepcopy_at_hand: bool = False
    """The file imports `copy`."""
    conditional: bool = False
    """It was taken under an `if` (live)."""
    saved_in_part: bool = False
    copied: bool = False
    """Its tensors were copied (`deepcopy`, `.clone()` one by one); else they are the live ones."""


@dataclass(eq=False, kw_only=True)
class Loop:
    """A loop of the program, entered once."""

    place: Location = NOWHERE
    kind: Literal["batches", "epochs", "other"] = "other"
    """`batches`: one turn is one micro-batch; `epochs`: its turns contain loops over batches."""
    loader: Loader | None = None
    variables: tuple[str, ...] = ()
    """Names that it binds, in source: `i`, `images`, `labels`."""
    turns: Size = None
    """How many turns it makes in a real run."""
    endless: bool = False
    """`while True`, or over `itertools.count()`."""
    counted: bool = False  # it goes through a `range`: its values are plain counts
    takes: bool = False  # the next few of a stream that goes on: `islice(batches, 4)`
    acts: bool = False  # its turns act in an environment: `env.step(action)` (in source)
    over: str = ""
    """The expression that the loop iterates over, as it is written."""
    lines: int = 0
    """Statements in its body."""
    begins_at: int | None = None
    begin_spelled: str = ""
    """The first number of a `range`, and how it is written (live)."""
    counters: dict[str, int] = field(default_factory=dict)  # its turns add to them (live)
    resumed_from: Any = None
    """The file whose count it resumes, or the value that it begins at (in source)."""
    exhausted: bool = False  # it was seen to go to its end (live)
    simulated: int = 0  # turns that the reader goes through; 0 when live
    parts: tuple[Size, Size] | None = None  # turns over what was split; those without options
    cut_at: int | None = None  # a count of its turns ends it after so many; 1 by an option
    framework: str = ""  # the library whose own loop it is: `Lightning`, `Ignite` (in source)
    leaves: bool = False
    """A `break` or `return` in it may end it before all its turns (early stopping)."""
    each_turn: frozenset[int] = frozenset()  # statements of every turn, by identity (in source)
    additions: list[Any] = field(default_factory=list, repr=False)
    """Lists, and how many elements all turns add to them (in source)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a loop."""

    loop: Loop
    index: int
    """From 0, in the run that is simulated: a few turns represent many."""


class AccumulationWindow(NamedTuple):
    """A window of turns that a test like `(i + 1) % n == 0` closes."""

    size: Size
    """The `n`."""
    loop: Loop | None
    """The loop whose own count is tested; None for a counter that runs on across loops."""
    by_default: int | None = None  # of a run without options (in source)
