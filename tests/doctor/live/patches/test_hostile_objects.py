"""What a program passes around is asked for its type, never for what it would answer.

Each program here is run alone and watched, and writes down whatever is asked of its objects: the
two journals are the same, and so is what it computes.
"""

from __future__ import annotations

import io
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler

from trueloop.doctor.live.watcher import Watcher

Journal = list[Any]
Program = Callable[[Journal], Any]
PROGRAMS: list[Program] = []
_SPECIAL = (
    "len iter bool eq ne hash float int index getitem contains call repr str fspath next enter "
    "array complex format lt gt sizeof reversed length_hint dir instancecheck"
).split()


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


def touchy(journal: Journal, *, raises: bool = True) -> Any:
    """An object that writes down whatever it is asked, and raises."""

    def method(name: str) -> Any:
        def asked(self: Any, *args: Any) -> Any:
            journal.append(name)
            raise RuntimeError(f"{name} of a touchy object")

        return asked

    def attribute(self: Any, name: str) -> Any:
        journal.append(f"attribute {name}")
        if raises:
            raise RuntimeError(f"{name} of a touchy object")
        return touchy(journal, raises=False)

    body = {f"__{name}__": method(name) for name in _SPECIAL}
    return type("Touchy", (), {**body, "__getattribute__": attribute})()


def train(model: nn.Module, call: Callable[[Tensor], Any], updates: int = 60, **given: Any) -> str:
    """A plain loop; as long as it takes to be looked at, timed, and left alone."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, **given)
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros(())
    for _ in range(updates):
        loss = call(torch.randn(4, 3, generator=generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item().hex()


class Passes(nn.Module):
    """Takes anything, and gives it back beside its output."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 1)

    def forward(self, x: Tensor, *more: Any, **named: Any) -> Any:
        return self.inner(x), more, named


Pair = namedtuple("Pair", "first second")


@dataclass
class Held:
    first: Any
    second: Any = None

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("a data class is not gone through")


class Tuple(tuple):  # type: ignore[type-arg]
    journal: Journal

    def __getitem__(self, key: Any) -> Any:
        self.journal.append(("tuple", str(key)))
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self.journal.append("iter")
        return super().__iter__()

    def __len__(self) -> int:
        self.journal.append("len")
        return super().__len__()


class Mapping(OrderedDict):  # type: ignore[type-arg]
    journal: Journal

    def values(self) -> Any:
        self.journal.append("values")
        return super().values()

    def items(self) -> Any:
        self.journal.append("items")
        return super().items()

    def __iter__(self) -> Iterator[Any]:
        self.journal.append("iter")
        return super().__iter__()


@program
def touchy_arguments(journal: Journal) -> Any:
    model = Passes()
    odd = touchy(journal)
    return train(model, lambda x: model(x, odd, [odd, (odd,)], a={"b": odd})[0].square().mean())


@program
def attributes_on_demand(journal: Journal) -> Any:
    model = Passes()
    odd = touchy(journal, raises=False)
    return train(model, lambda x: model(x, odd, [odd], a={"b": odd})[0].square().mean())


@program
def mocks(journal: Journal) -> Any:
    model, mock, magic = Passes(), Mock(name="mock"), MagicMock(spec=Tensor)
    loss = train(model, lambda x: model(x, mock, [magic], a=magic)[0].square().mean())
    return loss, mock.mock_calls, magic.mock_calls, sorted(vars(mock)["_mock_children"])


@program
def containers(journal: Journal) -> Any:
    model = Passes()

    def call(x: Tensor) -> Tensor:
        held = Tuple((x, x))
        mapping = Mapping(a=x)
        held.journal = mapping.journal = journal
        data = Held(x, second=touchy(journal))
        return model(x, Pair(x, held), mapping, data=data)[0].square().mean()  # type: ignore[no-any-return]

    return train(model, call)


@program
def touchy_data(journal: Journal) -> Any:
    class Data(Dataset[Any]):
        def __init__(self) -> None:
            self.odd, self.rows = touchy(journal), torch.arange(24.0).reshape(8, 3)

        def __len__(self) -> int:
            journal.append("length of the data")
            return 8

        def __getitem__(self, index: int) -> Any:
            return self.rows[index], self.odd

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("__"):
                journal.append(f"data: {name}")
            raise AttributeError(name)

    class Order(Sampler[int]):
        def __init__(self) -> None:
            self.odd = touchy(journal)

        def __iter__(self) -> Iterator[int]:
            return iter([3, 1, 2, 5])

        def __len__(self) -> int:
            journal.append("length of the sampler")
            return 4

    model = Passes()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def collate(samples: Any) -> Any:
        return torch.stack([x for x, _ in samples]), [odd for _, odd in samples]

    for sampler in (None, Order()):
        loader: Any = DataLoader(Data(), 2, sampler=sampler, collate_fn=collate)
        for _ in range(8):
            for x, odd in loader:
                loss = model(x, odd)[0].square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return loss.item().hex()


@program
def a_stream_that_is_wrong_about_its_length(journal: Journal) -> Any:
    class Stream(IterableDataset[Any]):
        def __len__(self) -> int:
            journal.append("length")
            return 2

        def __iter__(self) -> Iterator[Any]:
            return iter(torch.ones(6, 3))

    model = Passes()
    for x in DataLoader(Stream(), 1):
        model(x)[0].sum().backward()


@program
def touchy_settings(journal: Journal) -> Any:
    class Rate(float):
        def __float__(self) -> float:
            journal.append("float")
            return 0.5

        def __mul__(self, other: Any) -> Any:
            journal.append("mul")
            return 0.5 * other

    model = Passes()
    parameters = list(model.parameters())
    groups = [{"params": parameters, "note": touchy(journal)}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    made = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    made.odd = touchy(journal)  # type: ignore[attr-defined]
    for _ in range(20):
        loss = model(torch.ones(1, 3))[0].square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_((each for each in parameters), Rate(1.0))
        torch.nn.utils.clip_grad_norm_(filter(None.__ne__, parameters), torch.tensor(1.0))
        torch.nn.utils.clip_grad_value_(Tuples(journal, parameters), 1.0)
        optimizer.step()
        plateau.step(Rate(1.0))
        made.step()
    return loss.item().hex()


class Tuples:
    """Gone through once."""

    def __init__(self, journal: Journal, parts: list[Any]) -> None:
        self.journal, self.parts = journal, parts

    def __iter__(self) -> Iterator[Any]:
        self.journal.append("gone through")
        return iter(self.parts)


@program
def files(journal: Journal) -> Any:
    class File(io.BytesIO):
        def __getattribute__(self, name: str) -> Any:
            if name in ("name", "__fspath__"):
                journal.append(name)
            return super().__getattribute__(name)

    model, file = Passes(), File()
    torch.save({"model": model.state_dict(), "more": Held(1)}, file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    model.load_state_dict(found["model"])
    torch.manual_seed(numpy_like())
    return sorted(found["model"])


def numpy_like() -> Any:
    import numpy as np

    return np.int64(3)


@program
def modules_that_answer_anything(journal: Journal) -> Any:
    class Answers(Passes):
        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                journal.append(name)
                return 0.5

        @property
        def p(self) -> float:
            journal.append("p")
            return 0.5

    model = Answers()
    model.train()
    return train(model, lambda x: model(x)[0].square().mean())


class Logged(Tensor):
    """Writes down the functions that it is given to."""

    journal: Journal = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.journal.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


@program
def a_subclass_with_functions_of_its_own(journal: Journal) -> Any:
    Logged.journal = journal
    model = Passes()
    target = torch.zeros(4, 1).as_subclass(Logged)
    loss = train(model, lambda x: F.mse_loss(model(x.as_subclass(Logged))[0], target))
    model.inner.weight = nn.Parameter(torch.ones(1, 3).as_subclass(Logged))
    return loss, train(model, lambda x: F.mse_loss(model(x)[0], target), momentum=0.9)


class Wrapped(Tensor):
    """Holds a tensor, and writes down the operations below autograd."""

    journal: Journal = []  # noqa: RUF012
    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        made = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.journal.append(str(func))
        plain = torch.utils._pytree.tree_map(
            lambda each: each.inner if isinstance(each, Wrapped) else each, (args, kwargs or {})
        )
        made = func(*plain[0], **plain[1])
        return torch.utils._pytree.tree_map(
            lambda each: Wrapped(each) if isinstance(each, Tensor) else each, made
        )


@program
def a_subclass_that_wraps(journal: Journal) -> Any:
    Wrapped.journal = journal
    model = Passes()
    found = []
    for _ in range(60):
        out = model(Wrapped(torch.ones(4, 3)))[0]
        loss = F.mse_loss(out, Wrapped(torch.zeros(4, 1)))
        loss.backward()
        found.append(type(model.inner.weight.grad).__name__)
        model.zero_grad()
    return found


class Functions(TorchFunctionMode):
    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self.journal = journal

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.journal.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self.journal = journal

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.journal.append(str(func))
        return func(*args, **(kwargs or {}))


@program
def a_mode_of_functions(journal: Journal) -> Any:
    model = Passes()
    with Functions(journal):
        return train(model, lambda x: F.mse_loss(model(x)[0], torch.zeros(4, 1)))


@program
def a_mode_of_operations(journal: Journal) -> Any:
    model = Passes()
    with Operations(journal):
        return train(model, lambda x: F.mse_loss(model(x)[0], torch.zeros(4, 1)))


@program
def hooks_on_what_is_saved(journal: Journal) -> Any:
    model = Passes()

    def pack(tensor: Tensor) -> Tensor:
        journal.append(("pack", tuple(tensor.shape)))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        return train(model, lambda x: F.mse_loss(model(x)[0], torch.zeros(4, 1)))


@program
def traced_by_fx(journal: Journal) -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1), nn.Softmax(dim=1))

        def forward(self, x: Any, *, mask: Any = None) -> Any:
            return F.mse_loss(F.dropout(self.layers(x), 0.5), F.log_softmax(x, dim=1))

    class Deep(torch.fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return False

    model = Net()
    shallow = torch.fx.symbolic_trace(model)
    deep = Deep().trace(model)
    rewritten = torch.fx.GraphModule(model, deep)
    proxy = torch.fx.Proxy(torch.fx.Graph().placeholder("x"))
    direct = str(nn.Identity()(proxy).node)
    model.eval()
    return shallow.code, str(deep), rewritten(torch.ones(2, 3)).shape, direct


@program
def traced_by_others(journal: Journal) -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    x = torch.ones(2, 3)
    made = make_fx(lambda x: F.mse_loss(model(x), x[:, :1]))(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script, trace = torch.jit.script(model), torch.jit.trace(model, x)
    exported = torch.export.export(model, (x,))
    return made.code, script.code, trace.code, str(exported.graph)


@program
def transformed(journal: Journal) -> Any:
    model = nn.Sequential(nn.Linear(3, 3), nn.Softmax(dim=-1), nn.Linear(3, 1))
    x, parameters = torch.ones(4, 3), dict(model.named_parameters())

    def loss(parameters: Any, x: Tensor) -> Tensor:
        return F.mse_loss(torch.func.functional_call(model, parameters, (x,)), x[..., :1])

    grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    jacobian = torch.func.jacrev(lambda x: model(x).sum())(x)
    return [each.sum().item() for each in grads.values()], jacobian.sum().item()


@program
def without_values(journal: Journal) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    model = nn.Linear(3, 1, device="meta")
    shapes = [F.mse_loss(model(torch.ones(2, 3, device="meta")), torch.ones(2, 1, device="meta"))]
    with FakeTensorMode() as mode:
        fake = nn.Linear(3, 1)
        out = fake(torch.ones(2, 3))
        out.sum().backward()
        shapes.append(out)
    shapes.append(
        F.mse_loss(mode.from_tensor(torch.ones(2, 1)), mode.from_tensor(torch.ones(2, 1)))
    )
    return [str(each) for each in shapes]


@program
def lazy_layers(journal: Journal) -> Any:
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    with torch.no_grad():
        model(torch.ones(2, 3))
    loss = model(torch.randn(8, 3)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item().hex()


@program
def several_losses_at_once(journal: Journal) -> Any:
    model = Passes()
    x = torch.ones(4, 3, requires_grad=True)
    for _ in range(60):
        out = model(x)[0]
        torch.autograd.backward([out.sum(), out.square().sum()], inputs=(*model.parameters(),))
        torch.autograd.grad((model(x)[0].sum(),), (x,), create_graph=True)
        model(x)[0].backward(gradient=torch.ones(4, 1), retain_graph=True)
    return model.inner.weight.grad.sum().item()  # type: ignore[union-attr]


@pytest.mark.parametrize("act", PROGRAMS, ids=lambda act: act.__name__)
def test_nothing_is_asked_that_the_program_does_not_ask(act: Program) -> None:
    def once() -> tuple[Any, Journal, list[str]]:
        torch.manual_seed(0)
        journal: Journal = []
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = act(journal)
        return result, journal, [f"{each.lineno} {each.message}" for each in warned]

    once()  # what torch does and says for the first time alone
    alone = once()
    watcher = Watcher()
    watcher.nonfinite.bundles = ""
    watcher.start()
    try:
        seen = once()
    finally:
        watcher.stop()
    assert seen == alone
    watcher.findings()
    assert watcher.hub.errors == []
