"""Wrong calls of `Feed`, and data that cannot be fed."""

from __future__ import annotations

import functools
import multiprocessing
import pathlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset
from wrong_calls import Wrong, check

from trueloop import Feed
from trueloop.errors import ConfigError, DataError, DeviceError

X = torch.arange(12.0).reshape(6, 2)


class Made(Dataset[Any]):
    """Six samples, each made by a function of its index."""

    def __init__(self, make: Callable[[int], Any], size: Any = 6) -> None:
        self.make = make
        self.size = size

    def __len__(self) -> Any:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


class Stream(IterableDataset[Any]):
    def __init__(self, opened: Callable[[], Any]) -> None:
        self.opened = opened

    def __iter__(self) -> Iterator[Any]:
        return self.opened()  # type: ignore[no-any-return]


class NoLength:
    def __getitem__(self, index: int) -> int:
        return index


class Broken(Made):
    def __len__(self) -> int:
        raise RuntimeError("planted\nin two lines")


class Thing:
    """Nothing that torch knows."""


def fails(*_: Any) -> Any:
    raise RuntimeError("planted\nin two lines")


def pandas(kind: str, **members: Any) -> Any:
    """An object of a class that says it is pandas'."""
    return type(
        kind, (), {"__module__": "pandas.core.frame", "__len__": lambda self: 3, **members}
    )()


def scipy_matrix() -> Any:
    """An object of a class that says it is scipy's."""
    return type("csr_matrix", (), {"__module__": "scipy.sparse._csr", "__getitem__": fails})()


def read(feed: Feed) -> list[Any]:
    return list(feed.epoch(0))


def of(make: Callable[[int], Any], **options: Any) -> Callable[[], Any]:
    """Reading samples that a function makes."""
    return lambda: read(Feed(Made(make), 3, **options))


def given(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: Feed(*args, **options)


KINDS: dict[str, Wrong] = {
    "None": Wrong(given(None, 2), DataError, "None", "give tensors"),
    "a number": Wrong(given(5, 2), DataError, "an int", "give tensors"),
    "a function": Wrong(given(fails, 2), DataError, "a function", "give tensors"),
    "a model": Wrong(given(nn.Linear(1, 1), 2), DataError, "a Linear", "give tensors"),
    "a class": Wrong(given(Made, 2), DataError, "the class Made", "write Made(...)"),
    "a file's name": Wrong(given("data.csv", 2), DataError, "'data.csv'", "read it first"),
    "a path": Wrong(given(pathlib.Path("x"), 2), DataError, "Path", "read it first"),
    "bytes": Wrong(given(b"x", 2), DataError, "b'x'", "read it first"),
    "a generator": Wrong(lambda: Feed((x for x in X), 2), DataError, "one-shot generator", "list"),
    "a zip": Wrong(lambda: Feed(zip(X, X, strict=True), 2), DataError, "one-shot zip", "list"),
    "a loader's iterator": Wrong(
        lambda: Feed(iter(DataLoader(X, 2))), DataError, "one-shot", "the DataLoader itself"
    ),
    "an enumerated loader": Wrong(
        lambda: Feed(enumerate(DataLoader(X, 2)), 2), DataError, "one-shot enumerate", "DataLoader"
    ),
    "a feed": Wrong(lambda: Feed(Feed(X, 2), 2), DataError, "a Feed already", "use it itself"),
    "a feed alone": Wrong(lambda: Feed(Feed(X, 2)), DataError, "a Feed already", "use it"),
    "a set": Wrong(given({1, 2, 3}, 2), DataError, "a set", "sorted(data)"),
    "loaders": Wrong(
        lambda: Feed([DataLoader(X, 2)] * 2, 2), DataError, "list of DataLoaders", "ConcatDataset"
    ),
    "polars frame": Wrong(
        given(polars.DataFrame({"a": [1]}), 2), DataError, "polars DataFrame", ".to_numpy()"
    ),
    "polars lazy frame": Wrong(
        given(polars.LazyFrame({"a": [1]}), 2), DataError, "polars LazyFrame", ".to_numpy()"
    ),
    "polars series": Wrong(
        given(polars.Series([1, 2]), 2), DataError, "polars Series", "series.to_numpy()"
    ),
    "frame in a tuple": Wrong(
        given((polars.DataFrame({"a": [1]}), X), 2), DataError, "data[0] is a polars", ".to_numpy()"
    ),
    "pandas frame": Wrong(
        given(pandas("DataFrame", columns=["a"], __getitem__=fails), 2),
        DataError, "pandas DataFrame", "frame[inputs].to_numpy()",
    ),
    "pandas series": Wrong(
        given(pandas("Series", __getitem__=fails), 2), DataError, "pandas Series", "to_numpy()"
    ),
    "scipy matrix": Wrong(
        given(scipy_matrix(), 2),
        DataError, "scipy csr_matrix", ".toarray()",
    ),
    "no __len__": Wrong(given(NoLength(), 2), DataError, "no __len__", "define __len__"),
    "torch's bare Dataset": Wrong(given(Dataset(), 2), DataError, "no __len__", "define __len__"),
    "an empty list": Wrong(given([], 2), DataError, "no samples", "check where"),
    "an empty tuple": Wrong(given((), 2), DataError, "empty tuple", "give tensors"),
    "an empty dict": Wrong(given({}, 2), DataError, "empty dict", "give tensors"),
    "an empty tensor": Wrong(given(torch.empty(0, 2), 2), DataError, "no samples", "check where"),
    "an empty TensorDataset": Wrong(given(TensorDataset(), 2), DataError, "empty tuple", "give"),
    "an empty Subset": Wrong(
        given(Subset(TensorDataset(X), []), 2), DataError, "no samples", "check where"
    ),
    "an empty loader": Wrong(
        lambda: Feed(DataLoader(TensorDataset(X[:0]), 2)), DataError, "no samples", "check where"
    ),
}  # fmt: skip

ARRAYS: dict[str, Wrong] = {
    "parts differ in length": Wrong(
        given((X, X[:3]), 2), DataError, "data[0] has 6 samples, data[1] has 3", "give parts"
    ),
    "lists of numbers": Wrong(
        given(([1, 2], [3, 4]), 2), DataError, "data[0] is a list of numbers", "torch.tensor"
    ),
    "a dict of lists": Wrong(
        given({"x": [1, 2]}, 2), DataError, "data['x'] is a list of numbers", "torch.tensor"
    ),
    "text in a tuple": Wrong(given((X, "y"), 2), DataError, "data[1] is a str", "convert it"),
    "None in a tuple": Wrong(given((X, None), 2), DataError, "data[1] is None", "convert it"),
    "samples taken for parts": Wrong(
        given([X[0]] * 5, 2), DataError, "a list of 5 arrays of 2 rows", "torch.stack(data)"
    ),
    "array samples taken for parts": Wrong(
        given([np.zeros(2)] * 5, 2), DataError, "a list of 5 arrays", "numpy.stack(data)"
    ),
    "ragged samples": Wrong(
        given([torch.ones(3), torch.ones(4)], 2), DataError, "differ in length", "wrap a list"
    ),
    "a number": Wrong(given(torch.tensor(1.0), 2), DataError, "a single number", "must count"),
    "0-d in a tuple": Wrong(given((X, torch.tensor(1.0)), 2), DataError, "data[1]", "must count"),
    "sparse": Wrong(lambda: Feed(X.to_sparse(), 2), DataError, "sparse_coo", "to_dense()"),
    "sparse rows": Wrong(lambda: Feed(X.to_sparse_csr(), 2), DataError, "sparse_csr", "to_dense()"),
    "nested": Wrong(
        lambda: Feed(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), 2),
        DataError, "nested tensor", "to_padded_tensor",
    ),
    "quantized": Wrong(
        lambda: Feed(torch.quantize_per_tensor(X, 1.0, 0, torch.qint8), 2),
        DataError, "quantized", "dequantize()",
    ),
    "meta": Wrong(lambda: Feed(X.to("meta"), 2), DataError, "device meta", "on the CPU"),
    "objects": Wrong(
        given(np.array([Thing(), None], dtype=object), 2), DataError, "dtype object", "astype"
    ),
    "texts": Wrong(given(np.array(["a", "b"]), 2), DataError, "dtype <U1", "astype"),
    "dates": Wrong(
        given(np.array(["2020-01-01"], dtype="datetime64[D]"), 2), DataError, "datetime64", "astype"
    ),
    "records": Wrong(given(np.zeros(3, dtype=[("a", "f4")]), 2), DataError, "dtype", "astype"),
    "long doubles": Wrong(given(np.zeros(3, dtype=np.longdouble), 2), DataError, "dtype", "astype"),
    "subset beyond": Wrong(
        given(Subset(TensorDataset(X), [0, 99]), 2), DataError, "index 99", "from 0 to 5"
    ),
    "subset by a mask": Wrong(
        given(Subset(TensorDataset(X), X[:, 0] > 3), 2), DataError, "a mask", "nonzero()"
    ),
    "map-style subset by a mask": Wrong(
        given(Subset(Made(int), [True, False]), 2), DataError, "a mask", "nonzero()"
    ),
    "subset by shares": Wrong(
        given(Subset(TensorDataset(X), [0.5]), 2), DataError, "float64 numbers", "give integers"
    ),
}  # fmt: skip

NAN = float("nan")
OPTIONS: dict[str, Wrong] = {
    "no batch_size": Wrong(given(X), ConfigError, "batch_size=None", "batch_size=32"),
    "batch_size=0": Wrong(given(X, 0), ConfigError, "batch_size=0", "batch_size=32"),
    "batch_size=-1": Wrong(given(X, -1), ConfigError, "batch_size=-1", "batch_size=32"),
    "batch_size=2.0": Wrong(given(X, 2.0), ConfigError, "batch_size=2.0", "batch_size=32"),
    "batch_size=True": Wrong(given(X, True), ConfigError, "batch_size=True", "batch_size=32"),
    "batch_size='2'": Wrong(given(X, "2"), ConfigError, "batch_size='2'", "batch_size=32"),
    "batch_size=nan": Wrong(given(X, NAN), ConfigError, "batch_size=nan", "batch_size=32"),
    "batch_size=1e30": Wrong(given(X, 10**30), ConfigError, "batch_size=1", "batch_size=32"),
    "targets as batch_size": Wrong(
        given(X, torch.ones(6)), ConfigError, "batch_size=a Tensor", "batch_size=32"
    ),
    "shuffle='yes'": Wrong(given(X, 2, shuffle="yes"), ConfigError, "shuffle='yes'", "=True"),
    "shuffle=1": Wrong(given(X, 2, shuffle=1), ConfigError, "shuffle=1", "shuffle=True"),
    "shuffle=None": Wrong(given(X, 2, shuffle=None), ConfigError, "shuffle=None", "shuffle=False"),
    "seed=-1": Wrong(given(X, 2, seed=-1), ConfigError, "seed=-1", "seed=0"),
    "seed=1.5": Wrong(given(X, 2, seed=1.5), ConfigError, "seed=1.5", "seed=0"),
    "seed=None": Wrong(given(X, 2, seed=None), ConfigError, "seed=None", "seed=0"),
    "a generator as seed": Wrong(
        given(X, 2, seed=torch.Generator()), ConfigError, "seed=a Generator", "seed=0"
    ),
    "workers=-1": Wrong(given(X, 2, workers=-1), ConfigError, "workers=-1", "workers=0"),
    "workers=1.5": Wrong(given(X, 2, workers=1.5), ConfigError, "workers=1.5", "workers=0"),
    "workers=None": Wrong(given(X, 2, workers=None), ConfigError, "workers=None", "workers=0"),
    "workers=True": Wrong(given(X, 2, workers=True), ConfigError, "workers=True", "workers=0"),
    "drop_last=None": Wrong(given(X, 2, drop_last=None), ConfigError, "drop_last=None", "=True"),
    "drop_last of all": Wrong(
        given(X, 20, drop_last=True), ConfigError, "drop_last leaves no batch", "smaller batch_size"
    ),
    "device='gpu'": Wrong(given(X, 2, device="gpu"), DeviceError, "'gpu'", "cuda"),
    "device=0": Wrong(given(X, 2, device=0), DeviceError, "'0'", "cuda:N"),
    "device='meta'": Wrong(given(X, 2, device="meta"), DeviceError, "'meta'", "auto, cpu"),
    "device=True": Wrong(given(X, 2, device=True), DeviceError, "'True'", "auto, cpu"),
    "collate_fn of arrays": Wrong(
        given(X, 2, collate_fn=list), ConfigError, "collate_fn is for", "transform=..."
    ),
    "collate_fn='x'": Wrong(
        given(Made(int), 2, collate_fn="x"), ConfigError, "collate_fn='x'", "lambda samples"
    ),
    "collate_fn of nothing": Wrong(
        given(Made(int), 2, collate_fn=lambda: 0), ConfigError, "(samples)", "lambda samples"
    ),
    "collate_fn of two": Wrong(
        given(Made(int), 2, collate_fn=lambda a, b: 0), ConfigError, "(samples)", "lambda samples"
    ),
    "prefetch_factor=0": Wrong(
        given(X, 2, prefetch_factor=0), ConfigError, "prefetch_factor=0", "prefetch_factor=2"
    ),
    "persistent_workers='x'": Wrong(
        given(X, 2, persistent_workers="x"), ConfigError, "persistent_workers", "=True"
    ),
    "transform=3": Wrong(given(X, 2, transform=3), ConfigError, "transform=3", "lambda batch,"),
    "transform of nothing": Wrong(
        given(X, 2, transform=lambda: 0), ConfigError, "(batch, draws)", "lambda batch, draws"
    ),
    "transform of a batch": Wrong(
        given(X, 2, transform=lambda batch: batch), ConfigError, "(batch, draws)", "lambda batch"
    ),
    "transform of three": Wrong(
        given(X, 2, transform=lambda a, b, c: a), ConfigError, "(batch, draws)", "lambda batch"
    ),
    "a module as transform": Wrong(
        given(X, 2, transform=nn.Flatten()), ConfigError, "Flatten does not take", "lambda batch"
    ),
    "a class as transform": Wrong(
        given(X, 2, transform=Thing), ConfigError, "the class Thing", "transform=Thing(...)"
    ),
    "shuffled stream": Wrong(
        given(Stream(lambda: iter(())), 2, shuffle=True), ConfigError, "shuffle=True", "__getitem__"
    ),
    "stream in many workers": Wrong(
        given(Stream(lambda: iter(())), 2, workers=2), ConfigError, "workers=2", "workers=1"
    ),
    "transformed stream": Wrong(
        given(Stream(lambda: iter(())), 2, transform=lambda batch, draws: batch),
        ConfigError, "transform needs", "inside it",
    ),
    "loader and batch_size": Wrong(
        given(DataLoader(X, 2), 2), ConfigError, "takes no batch_size", "Feed(loader.dataset, ...)"
    ),
    "loader and shuffle": Wrong(
        given(DataLoader(X, 2), shuffle=True), ConfigError, "takes no shuffle", "in the loader"
    ),
    "epoch('1')": Wrong(lambda: Feed(X, 2).epoch("1"), ConfigError, "epoch='1'", "epoch=0"),
    "epoch(-1)": Wrong(lambda: Feed(X, 2).epoch(-1), ConfigError, "epoch=-1", "epoch=0"),
    "epoch(1.0)": Wrong(lambda: Feed(X, 2).epoch(1.0), ConfigError, "epoch=1.0", "epoch=0"),
    "epoch(None)": Wrong(lambda: Feed(X, 2).epoch(None), ConfigError, "epoch=None", "epoch=0"),
    "epoch(True)": Wrong(lambda: Feed(X, 2).epoch(True), ConfigError, "epoch=True", "epoch=0"),
    "start beyond": Wrong(lambda: Feed(X, 2).epoch(0, 9), ConfigError, "start=9", "from 0 to 3"),
    "start=1.5": Wrong(lambda: Feed(X, 2).epoch(0, 1.5), ConfigError, "start=1.5", "start=0"),
    "no length": Wrong(
        lambda: len(Feed(Stream(lambda: iter(())), 2)), DataError, "not known", "__len__"
    ),
}  # fmt: skip

SAMPLES: dict[str, Wrong] = {
    "ragged": Wrong(
        of(lambda k: torch.ones(k + 1)),
        DataError, "sample 0 has the shape (1,) and sample 1 has (2,)", "pad_sequence(samples",
    ),
    "ragged arrays": Wrong(of(lambda k: np.ones(k + 1)), DataError, "shape (1,)", "collate_fn"),
    "ragged in pairs": Wrong(
        of(lambda k: (torch.ones(k + 1), k)), DataError, "sample 0[0] has the shape", "pads this"
    ),
    "ragged in dicts": Wrong(
        of(lambda k: {"x": torch.ones(k + 1)}), DataError, "sample 1['x']", "pads this part"
    ),
    "ragged lists": Wrong(
        of(lambda k: [1] * (k + 1)), DataError, "sample 1 has 2", "pad_sequence(samples"
    ),
    "tuples of two lengths": Wrong(
        of(lambda k: ("a", X[k]) if k else ("a",)), DataError, "the length 1", "collate_fn"
    ),
    "different keys": Wrong(
        of(lambda k: {"a": 1} if k else {"b": 1}), DataError, "the keys 'b'", "the same keys"
    ),
    "a key that is missing": Wrong(
        of(lambda k: {"a": 1} if k == 1 else {"a": 1, "b": 2}), DataError, "1 has 'a'", "keys"
    ),
    "None": Wrong(of(lambda k: None), DataError, "sample 0 is None", "let __getitem__ return"),
    "one None": Wrong(
        of(lambda k: None if k == 2 else X[k]), DataError, "sample 2 is None", "collate_fn"
    ),
    "None in a pair": Wrong(
        of(lambda k: (X[k], None)), DataError, "sample 0[1] is None", "collate_fn"
    ),
    "None in a shuffled epoch": Wrong(
        lambda: read(Feed(Made(lambda k: None if k == 5 else X[k]), 6, shuffle=True)),
        DataError, "sample 5 is None", "let __getitem__ return",
    ),
    "text and numbers": Wrong(
        of(lambda k: "a" if k else 1), DataError, "sample 1 is a str", "the same structure"
    ),
    "tensors and numbers": Wrong(
        of(lambda k: X[k] if k else 1.0), DataError, "sample 1 is a Tensor", "the same structure"
    ),
    "objects": Wrong(of(lambda k: Thing()), DataError, "sample 0 is a Thing", "collate_fn"),
    "objects in pairs": Wrong(
        of(lambda k: (X[k], Thing())), DataError, "sample 0[1] is a Thing", "collate_fn"
    ),
    "pictures": Wrong(
        of(lambda k: Image.new("RGB", (2, 2))), DataError, "an Image", "functional.to_tensor"
    ),
    "sparse": Wrong(of(lambda k: X[k].to_sparse()), DataError, "sparse_coo", "to_dense()"),
    "arrays of objects": Wrong(
        of(lambda k: np.array([Thing()], dtype=object)), DataError, "dtype object", "astype"
    ),
    "arrays of text": Wrong(of(lambda k: np.array(["a"])), DataError, "dtype <U1", "astype"),
    "huge integers": Wrong(of(lambda k: 2**70), DataError, "sample 0 is an int", "a tensor of it"),
    "complex numbers": Wrong(of(lambda k: 1j), DataError, "a complex", "a tensor of it"),
    "sets": Wrong(of(lambda k: {1, 2}), DataError, "sample 0 is a set", "collate_fn"),
    "functions": Wrong(of(lambda k: fails), DataError, "sample 0 is a function", "collate_fn"),
    "__getitem__ raises": Wrong(
        of(fails), DataError, "sample 0 of epoch 1 cannot be fetched, RuntimeError", "fix the"
    ),
    "__getitem__ raises KeyError": Wrong(of(lambda k: {}["x"]), DataError, "KeyError: 'x'", "fix"),
    "__getitem__ takes nothing": Wrong(
        lambda: read(Feed(type("Bad", (Made,), {"__getitem__": lambda self: 1})(int), 3)),
        DataError, "sample 0 of epoch 1 cannot be fetched, TypeError", "fix the sample",
    ),
    "IndexError before its length": Wrong(
        of(lambda k: [0, 0, 0, 0][k]), DataError, "sample 4 of epoch 1", "fix the sample"
    ),
    "StopIteration": Wrong(
        of(lambda k: next(iter(()))), DataError, "cannot be fetched, StopIteration", "fix"
    ),
    "subset of a data set beyond": Wrong(
        lambda: read(Feed(Subset(Made(X.__getitem__), [99]), 2)), DataError, "index 99", "fix"
    ),
    "__len__ below 0": Wrong(given(Made(int, -1), 2), DataError, "__len__ of Made", "at least 0"),
    "__len__ of 2.5": Wrong(given(Made(int, 2.5), 2), DataError, "__len__ of Made", "an integer"),
    "__len__ of '6'": Wrong(given(Made(int, "6"), 2), DataError, "__len__ of Made", "an integer"),
    "__len__ of None": Wrong(given(Made(int, None), 2), DataError, "__len__ of Made", "an integer"),
    "__len__ of 0": Wrong(given(Made(int, 0), 2), DataError, "no samples", "check where"),
    "__len__ of 1e30": Wrong(given(Made(int, 10**30), 2), DataError, "__len__ of Made", "integer"),
    "__len__ raises": Wrong(given(Broken(int), 2), DataError, "planted in two lines", "let it"),
    "collate_fn returns None": Wrong(
        of(lambda k: k, collate_fn=lambda samples: None), DataError, "returned None", "return batch"
    ),
    "collate_fn returns a generator": Wrong(
        of(lambda k: k, collate_fn=lambda samples: (s for s in samples)),
        DataError, "returned a generator", "return a list",
    ),
    "collate_fn raises": Wrong(
        of(lambda k: k, collate_fn=fails), DataError, "sample 0 to sample 2", "fix it"
    ),
    "transform returns None": Wrong(
        lambda: read(Feed(X, 2, transform=lambda batch, draws: None)),
        ConfigError, "transform returned None", "return batch",
    ),
    "transform raises": Wrong(
        lambda: read(Feed(X, 2, transform=fails)), DataError, "sample 0 to sample 1", "fix it"
    ),
    "iter returns a number": Wrong(
        lambda: read(Feed(Stream(lambda: 5), 2)), DataError, "non-iterator of type 'int'", "fix"
    ),
    "iter returns None": Wrong(
        lambda: read(Feed(Stream(lambda: None), 2)), DataError, "'NoneType'", "fix"
    ),
    "iter raises": Wrong(lambda: read(Feed(Stream(fails), 2)), DataError, "planted", "fix"),
    "a stream of nothing": Wrong(
        lambda: read(Feed(Stream(lambda: iter(())), 2)), DataError, "no batch at all", "yields"
    ),
    "a stream of None": Wrong(
        lambda: read(Feed(Stream(lambda: iter([None])), 2)),
        DataError, "sample 0 of the batch is None", "collate_fn",
    ),
    "a ragged stream": Wrong(
        lambda: read(Feed(Stream(lambda: iter([X[0], X])), 2)), DataError, "shape (2,)", "pad"
    ),
    "a ragged loader": Wrong(
        lambda: read(Feed(DataLoader(Made(lambda k: torch.ones(k + 1)), 2))),
        DataError, "stack expects each tensor to be equal size", "what the loader was given",
    ),
    "a loader that raises": Wrong(
        lambda: read(Feed(DataLoader(Made(fails), 2))), DataError, "planted in two lines", "fix"
    ),
    "a loader of None": Wrong(
        lambda: read(Feed(DataLoader(Made(int), 2, collate_fn=lambda samples: None))),
        DataError, "None as a batch", "return batch",
    ),
}  # fmt: skip

TABLE = {
    f"{table}: {name}": row
    for table, rows in (
        ("data", KINDS), ("arrays", ARRAYS), ("options", OPTIONS), ("samples", SAMPLES)
    )
    for name, row in rows.items()
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_call_is_answered_in_one_line(name: str) -> None:
    check(TABLE[name])


# -- what works, and is documented ---------------------------------------------------------------


def test_what_looks_odd_and_works_as_documented() -> None:
    assert read(Feed(range(3), 2))[0].tolist() == [0, 1], "a sequence of samples"
    assert read(Feed(X.to(torch.complex64), 6))[0].dtype == torch.complex64
    assert read(Feed(Made(lambda k: "ab"[k % 2]), 6)) == [["a", "b"] * 3], "texts stay a list"
    last = Subset(TensorDataset(X), [0, -1])
    assert read(Feed(last, 2))[0][0].tolist() == [[0.0, 1.0], [10.0, 11.0]], "as TensorDataset[-1]"
    (batch,) = read(Feed(X.clone().requires_grad_(), 6))
    assert not batch.requires_grad, "no gradient flows back into the data"
    assert len(read(Feed(X, 10**9))) == 1, "one batch of all samples"


@pytest.mark.parametrize(
    ("option", "value"), [("num_workers", 2), ("batchsize", 2), ("pin_memory", True)]
)
def test_an_unknown_option_is_pythons_own_error_that_names_it(option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        Feed(X, 2, **{option: value})


# -- workers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "held",
    [lambda: 0, threading.Lock(), open(sys.executable, "rb"), (x for x in ()), types],  # noqa: SIM115
    ids=["lambda", "lock", "open file", "generator", "module"],
)
def test_a_data_set_that_cannot_be_sent_to_workers(held: Any) -> None:
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("spawn", force=True)
    try:
        data = Made(functools.partial(lambda held, k: k, held))
        check(
            Wrong(
                lambda: read(Feed(data, 3, workers=1)),
                DataError,
                "cannot be sent to worker processes",
                "workers=0",
            )
        )
    finally:
        multiprocessing.set_start_method(before, force=True)


def graph(index: int) -> Any:
    return X.clone().requires_grad_()[index] * 2


def function(index: int) -> Any:
    return lambda: index


@pytest.mark.parametrize(
    ("make", "options", "cause"),
    [
        (graph, {}, "with a graph"),
        (function, {"collate_fn": tuple}, "the batch[0] is a function"),
        (fails, {}, "planted in two lines"),
        (lambda k: torch.ones(k + 1), {}, "sample 1 has (2,)"),
        (lambda k: k, {"collate_fn": fails}, "sample 0 to sample 2"),
    ],
    ids=["graph", "function", "raises", "ragged", "collate_fn raises"],
)
def test_what_a_worker_cannot_send_or_make_ends_the_epoch_in_one_line(
    make: Callable[[int], Any], options: dict[str, Any], cause: str
) -> None:
    """Torch itself would wait for a batch that cannot be pickled for ever."""
    feed = Feed(Made(make), 3, workers=1, **options)
    check(Wrong(lambda: read(feed), DataError, cause, ""))
