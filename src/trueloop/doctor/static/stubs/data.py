"""Data sets, samplers, loaders and splits."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from trueloop.doctor.model.events import Made, Used
from trueloop.doctor.model.table_events import Preprocessed, SamplesSplit, Sliced
from trueloop.doctor.model.things import Dataset, Loader, Sampler, Size, Tensor, Thing
from trueloop.doctor.static.interpreter.calls import HARMLESS
from trueloop.doctor.static.interpreter.counters import by_default
from trueloop.doctor.static.interpreter.list_lengths import count_of
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.syntax import once, written
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    Function,
    Instance,
    LibraryName,
    Method,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
    constant,
)
from trueloop.doctor.static.stubs import tensor_shapes as shapes
from trueloop.doctor.static.stubs.collation import padding_of
from trueloop.doctor.static.stubs.dict_batches import gives_dicts
from trueloop.doctor.static.stubs.label_order import (
    one_label_each,
    sorted_by_label,
    sorted_in_class,
)
from trueloop.doctor.static.stubs.random_draws import aside, drawn_by, seeds_of, touches_dataset
from trueloop.doctor.static.stubs.ranks import asks_for_rank, names_rank, shares_by_hand


def _made(call: LibraryCall, thing: Thing) -> Thing:
    call.emit(Made, thing=thing)
    return thing


# ------------------------------------------------------------------------------- data sets


def _common(call: LibraryCall) -> dict[str, Any]:
    by_rank = any(names_rank(call.machine, each) for each in (*call.args, *call.kwargs.values()))
    return {"made": call.place, "known": True, "by_rank": by_rank}


@calls("torch.utils.data.TensorDataset")
def _tensors(call: LibraryCall) -> Value:
    found = Dataset(kind=call.name, **_common(call))
    sizes = (count_of(each) for each in call.args)  # they are equal, as torch requires
    found.size = next((each for each in sizes if each is not None), None)
    if not call.open:
        found.sorted_by_label = sorted_by_label(call.machine, call.args)
    found.tensors = list(call.args)
    return _made(call, found)


_BY_CLASS = frozenset("ImageFolder DatasetFolder Caltech101 Caltech256 Imagenette ImageNet".split())


@calls("torchvision.datasets.*")
def _vision(call: LibraryCall) -> Value:
    short = call.name.rpartition(".")[2]
    if not short[:1].isupper():
        return call.unknown(*call.args)
    found = Dataset(kind=call.name, **_common(call))
    found.sorted_by_label = call.place if short in _BY_CLASS else None
    split = call.arg(-1, "split")
    is_train = call.arg(1, "train")
    found.is_test = constant(split) == "test" or (
        short not in _BY_CLASS and constant(is_train) is False
    )
    found.attributes["transform"] = call.arg(1 if short in _BY_CLASS else 2, "transform", NONE)
    if short == "FakeData":
        found.size = call.machine.size(call.arg(0, "size", Constant(1000)))
    return _made(call, found)


def as_dataset(value: Value | None) -> Dataset | None:
    """The argument of a loader, as a data set: an object of any class will do."""
    if isinstance(value, Dataset):
        return value
    if isinstance(value, Instance):
        found = value.attributes.get("<dataset>")
        if not isinstance(found, Dataset):
            found = Dataset(kind=value.cls.name, cls=value.cls, attributes=value.attributes)
            value.attributes["<dataset>"] = found
        return found
    if isinstance(value, Tensor):
        size = value.shape[0] if value.shape else None
        return Dataset(kind="torch.Tensor", made=value.made, size=size, known=True)
    if isinstance(value, Loader):
        return value.dataset
    return None


def _sized_dataset(call: LibraryCall, value: Value | None) -> Dataset | None:
    """A data set, with its size where its own `__len__` shows it."""
    dataset = as_dataset(value)
    cls = dataset.cls if dataset is not None else None
    length = cls.lookup("__len__") if isinstance(cls, Class) else None
    if dataset is not None and dataset.size is None and isinstance(length, Function):
        m = call.machine
        with aside(m):
            size = m.size(m.call_value(Method(dataset, length), [], node=call.node))
        dataset.size = size if isinstance(size, int) else None
    return dataset


@calls("torch.utils.data.Subset")
def _subset(call: LibraryCall) -> Value:
    parent, indices = _sized_dataset(call, call.arg(0, "dataset")), call.arg(1, "indices")
    found = Dataset(kind=call.name, parent=parent, **_common(call))
    found.split_at = call.place
    found.size = count_of(indices)
    if parent is not None and indices is not None:
        call.emit(Sliced, data=parent, index=indices, result=found)
    return _made(call, found)


@calls("torch.utils.data.random_split")
def _random_split(call: LibraryCall) -> Value:
    parent, lengths = _sized_dataset(call, call.arg(0, "dataset")), call.arg(1, "lengths")
    generator = call.arg(2, "generator")
    call.emit(
        SamplesSplit,
        function=call.name,
        data=[parent],
        seeded=generator is not None and constant(generator, 0) is not None,
    )
    count = len(lengths.values) if isinstance(lengths, Sequence) and not lengths.open else 2
    sizes = _split_sizes(parent, lengths)
    parts: list[Value] = []
    for position in range(count):
        part = Dataset(kind=call.name, parent=parent, **_common(call))
        part.split_at = call.place
        part.size = sizes[position] if position < len(sizes) else None
        parts.append(_made(call, part))
    return Sequence("list", parts, turns=call.machine.turns_begun)


def _split_sizes(parent: Dataset | None, lengths: Value | None) -> list[int | None]:
    """The lengths as they are written, or as they follow from fractions."""
    values = [constant(each) for each in lengths.values] if isinstance(lengths, Sequence) else []
    whole = parent.size if parent is not None else None
    is_share = (
        any(isinstance(each, float) for each in values)
        and sum(each for each in values if isinstance(each, (int, float))) <= 1 + 1e-9
    )
    if not is_share:
        return [each if type(each) is int else None for each in values]
    if not isinstance(whole, int) or not all(isinstance(each, float) for each in values):
        return [None for _ in values]
    sizes = [math.floor(whole * each) for each in values]
    for position in range(whole - sum(sizes)):
        sizes[position % len(sizes)] += 1
    return [*sizes]


@calls("torch.utils.data.ConcatDataset", "torch.utils.data.ChainDataset")
def _chained(call: LibraryCall) -> Value:
    parts = call.arg(0)
    found = Dataset(kind=call.name, **_common(call))
    if isinstance(parts, Sequence):
        sized = [_sized_dataset(call, each) for each in parts.values]
        chained = [each for each in sized if each is not None]
        found.chained = chained
        found.size = _total(chained) if len(chained) == len(parts.values) else None
        found.size = None if parts.length != len(parts.values) else found.size
        whole = len(chained) == len(parts.values)
        if whole and call.name.endswith(".ConcatDataset") and one_label_each(chained):
            found.sorted_by_label = call.place
    return _made(call, found)


def _total(parts: list[Dataset]) -> int | None:
    sizes = [each.size for each in parts if isinstance(each.size, int)]
    return sum(sizes) if len(sizes) == len(parts) else None


@methods(Dataset, "__add__")
def _added(call: LibraryCall) -> Value:
    both = (_sized_dataset(call, call.receiver), _sized_dataset(call, call.arg(0)))
    parts = [each for each in both if each is not None]
    size = _total(parts) if len(parts) == 2 else None
    return Dataset(kind="torch.utils.data.ConcatDataset", chained=[call.receiver], size=size)


# ------------------------------------------------------------------------------- samplers


_SAMPLERS = {
    "RandomSampler": True,
    "WeightedRandomSampler": True,
    "SubsetRandomSampler": True,
    "SequentialSampler": False,
    "BatchSampler": None,
}


@calls(*(f"torch.utils.data.{name}" for name in _SAMPLERS))
def _sampler(call: LibraryCall) -> Value:
    short = call.name.rpartition(".")[2]
    found = Sampler(kind=call.name, shuffle=_SAMPLERS[short], made=call.place, known=True)
    if short == "BatchSampler":
        inner = call.arg(0, "sampler")
        found.attributes["sampler"] = inner
        found.shuffle = getattr(inner, "shuffle", None)
    return _made(call, found)


@calls("torch.utils.data.DistributedSampler")
def _distributed(call: LibraryCall) -> Value:
    found = Sampler(
        kind=call.name,
        shuffle=call.const(3, "shuffle", default=True),
        dataset=as_dataset(call.arg(0, "dataset")),
        made=call.place,
        known=True,
    )
    return _made(call, found)


@methods(Sampler, "__init__")
def _super_init(call: LibraryCall) -> Value:
    """A sampler of the user's own hands its arguments up."""
    call.receiver.shuffle = call.const(3, "shuffle", default=True)
    return NONE


@methods(Sampler, "set_epoch")
def _set_epoch(call: LibraryCall) -> Value:
    call.emit(Used, what="torch.utils.data.DistributedSampler.set_epoch", subject=call.receiver)
    inner = call.receiver.attributes.get("sampler")
    if isinstance(inner, Sampler):
        call.emit(Used, what="torch.utils.data.DistributedSampler.set_epoch", subject=inner)
    return NONE


def _as_sampler(value: Value | None) -> Thing | None:
    """A sampler given to a loader; one of the user's own class is some sampler all the same."""
    if isinstance(value, Thing):
        return value
    if value is None or (isinstance(value, Constant) and value.value is None):
        return None
    kind = value.cls.name if isinstance(value, Instance) else ""
    return Sampler(kind=kind, shuffle=None)


def _is_told_its_epoch(call: LibraryCall, sampler: Thing | None) -> bool:
    """`set_epoch` is called somewhere on a sampler that goes by one of these names."""
    names = {"sampler", "batch_sampler"}
    if sampler is not None:
        names.add(sampler.name.rpartition(".")[2])
    surveys = [scope.module.survey for scope in call.machine.namespaces.values()]
    surveys += [module.survey for module in call.machine.modules]
    return any("set_epoch" in survey.uses.get(name, ()) for survey in surveys for name in names)


# ------------------------------------------------------------------------------- loaders


@calls("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
def _loader(call: LibraryCall) -> Value:
    given = call.arg(0, "dataset")
    dataset = _sized_dataset(call, given)
    batch_sampler = call.arg(4, "batch_sampler")
    sampler = _as_sampler(call.arg(3, "sampler")) or _as_sampler(batch_sampler)
    shuffle = call.const(2, "shuffle", default=False)
    found = Loader(
        made=call.place,
        known=True,
        dataset=dataset,
        batch_size=_size(call, 1, "batch_size", 1),
        shuffle=False if shuffle is None and _is_none(call.arg(2, "shuffle")) else shuffle,
        drop_last=call.const(8, "drop_last", default=False),
        workers=_workers(call),
        sampler=sampler,
    )
    if not _is_none(batch_sampler) and batch_sampler is not None:
        found.batch_size = None
    found.length = _length(found, found.batch_size)
    found.length_by_default = _length(found, by_default(call.machine, found.batch_size))
    found.attributes.update({"dataset": given or NONE})
    found.samples = _samples(call, found)
    if sampler is not None:
        found.attributes["batch_sampler" if batch_sampler is not None else "sampler"] = sampler
        inner = sampler.attributes.get("sampler")
        if isinstance(inner, Thing):
            found.attributes["sampler"] = inner
    samplers = ((3, "sampler"), (4, "batch_sampler"))
    found.sampler_given = any(_may_be_given(call, *each) for each in samplers)
    found.epoch_set = _is_told_its_epoch(call, sampler)
    found.persistent = call.const(-1, "persistent_workers", default=False)
    found.open = call.open
    found.dict_batches = gives_dicts(call, dataset)
    found.padding = padding_of(call)
    found.shared_by_hand = shares_by_hand(call.machine) or asks_for_rank(call)
    _look_at_workers(call, found)
    if dataset is not None:
        _look_at_dataset(call, dataset)
    return _made(call, found)


def _is_none(value: object) -> bool:
    return isinstance(value, Constant) and value.value is None


def _may_be_given(call: LibraryCall, position: int, name: str) -> bool:
    """An argument was written, even if it is None in this run."""
    return call.given(position, name) is not False


def _workers(call: LibraryCall) -> Size:
    """How many processes read: those of a run without options."""
    size = _size(call, 5, "num_workers", 0)
    default = by_default(call.machine, size) if isinstance(size, str) else None
    return size if default is None else default


def _size(call: LibraryCall, position: int, name: str, default: int) -> Size:
    value = call.arg(position, name)
    if value is None:
        return None if call.open else default
    return call.machine.size(value)


def _length(loader: Loader, batch: Size) -> int | None:
    size = loader.dataset.size if loader.dataset is not None else None
    if not (isinstance(size, int) and isinstance(batch, int) and batch > 0):
        return None
    if loader.sampler is not None or loader.drop_last is None:
        return None
    return size // batch if loader.drop_last else -(-size // batch)


def _samples(call: LibraryCall, loader: Loader) -> Size:
    """The length of its data set, where that is not the number of batches."""
    m, given = call.machine, call.arg(0, "dataset")
    several = (by_default(m, loader.batch_size) or 0) > 1
    if given is None or not several or loader.sampler is not None or call.open:
        return None
    with aside(m):
        return m.size(m.call_value(LibraryName("builtins.len"), [given], node=call.node))


def _look_at_workers(call: LibraryCall, loader: Loader) -> None:
    function = call.arg(10, "worker_init_fn")
    if function is None or _is_none(function):
        loader.worker_seeds, loader.reseeds = None if call.open else [], call.open
        return
    loader.worker_seeds = seeds_of(call.machine, function, call.node)
    loader.reseeds = touches_dataset(function)


def _look_at_dataset(call: LibraryCall, dataset: Dataset) -> None:
    """The random draws of reading a sample: looked at when a loader takes the data set, in its
    state then."""
    m = call.machine
    dataset.draws = drawn_by(m, dataset, call.node)
    cls = dataset.cls
    if isinstance(cls, Class):
        shorts = {base.rpartition(".")[2] for base in cls.dotted_bases()}
        dataset.iterable = "IterableDataset" in shorts
        rank_held = any(names_rank(m, each) for each in dataset.attributes.values())
        dataset.by_rank = rank_held or _speaks_of_rank(cls)
        if dataset.sorted_by_label is None:
            dataset.sorted_by_label = sorted_in_class(m, cls)


def _speaks_of_rank(cls: Class) -> bool:
    return any(_names_rank(kind.node) for kind in cls.lineage() if isinstance(kind, Class))


@once
def _names_rank(cls: ast.AST) -> bool:
    return bool(re.search(r"rank|world_size|num_replicas|shard", written(cls)))


@calls("torchvision.transforms.*", "torchaudio.transforms.*", "torch_audiomentations.*",
       "kornia.augmentation.*", "kornia.color.*", "kornia.enhance.*")  # fmt: skip
def _transform(call: LibraryCall) -> Value:
    short = call.name.rpartition(".")[2]
    named = {str(i): arg for i, arg in enumerate(call.args)} | call.kwargs
    if not short[:1].isupper():
        return call.unknown(*call.args)
    return OpaqueObject(call.name, named, made=call.place, key=f"{short}()@{call.place.line}")


# ------------------------------------------------------------------------------- scikit-learn

_FITTED = {
    "sklearn.preprocessing": "StandardScaler MinMaxScaler RobustScaler MaxAbsScaler Normalizer"
    " PowerTransformer QuantileTransformer TargetEncoder",
    "sklearn.decomposition": "PCA TruncatedSVD FastICA NMF",
    "sklearn.impute": "SimpleImputer KNNImputer IterativeImputer",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis",
    "sklearn.cross_decomposition": "PLSRegression PLSCanonical CCA",
    "sklearn.neighbors": "NeighborhoodComponentsAnalysis",
    "category_encoders": "TargetEncoder CatBoostEncoder LeaveOneOutEncoder JamesSteinEncoder"
    " MEstimateEncoder WOEEncoder",
    "sklearn.feature_selection": "SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe"
    " SelectFromModel SequentialFeatureSelector RFE RFECV",
}
_PREPROCESSORS = frozenset(
    f"{package}.{name}" for package, names in _FITTED.items() for name in names.split()
) - {"sklearn.preprocessing.Normalizer"}


@methods(OpaqueObject, "fit", "fit_transform", "transform", "fit_resample")
def _preprocess(call: LibraryCall) -> Value:
    """A scaler, encoder, imputer or selector learns from data, or is applied to it."""
    receiver = call.receiver
    result = call.unknown(receiver, *call.args, *call.kwargs.values())
    if receiver.kind in _PREPROCESSORS:
        call.emit(
            Preprocessed,
            method=call.name,
            preprocessor=receiver,
            data=call.arg(0, "X"),
            result=result,
        )
        return receiver if call.name == "fit" else result
    if receiver.kind.partition(".")[0] not in HARMLESS:
        call.expose(*call.args, *call.kwargs.values())
    return receiver if call.name == "fit" else result


@calls("sklearn.model_selection.train_test_split")
def _train_test_split(call: LibraryCall) -> Value:
    call.emit(SamplesSplit, function=call.name, data=list(call.args))
    parts: list[Value] = []
    for data in call.args:
        for position, size in enumerate(_train_test_sizes(call, data)):
            part = Unknown(
                f"split<{call.place.line}.{position}>({call.machine.key(data)})", (data,)
            )
            shape = shapes.shape_of(data)
            part.shape = (size, *shape[1:]) if shape else None
            parts.append(part)
    return Sequence("list", parts, call.open, turns=call.machine.turns_begun)


def _train_test_sizes(call: LibraryCall, data: Value) -> list[int | None]:
    """The numbers of samples of the two parts."""
    whole = count_of(data)
    test = call.const(-1, "test_size", 0.25)
    if whole is None or call.open or "train_size" in call.kwargs:
        return [None, None]
    size = math.ceil(whole * test) if isinstance(test, float) and test < 1 else test
    return [whole - size, size] if type(size) is int else [None, None]
