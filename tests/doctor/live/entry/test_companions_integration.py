"""What people use beside their loop: each runs under the watcher as without it, and nothing is said
of it."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset

from trueloop.doctor.live.sampling_schedule import FIRST
from trueloop.doctor.live.watcher import Watcher

UPDATES = FIRST + 30
"""So many that it looks away in between, and looks again."""


@contextlib.contextmanager
def watching() -> Iterator[Watcher]:
    """No error of the watcher's, and no finding that is an alarm."""
    watcher = Watcher()
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()
    assert watcher.hub.errors == []
    alarms = [each for each in watcher.findings() if each.severity != "advice"]
    assert alarms == []


def bits(value: Any) -> Any:
    """Tensors as bytes: equal to the bit, or not equal."""
    if isinstance(value, Tensor):
        return bytes(value.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
    if isinstance(value, nn.Module):
        return bits(value.state_dict())
    if isinstance(value, dict):
        return {key: bits(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    return value


def same_watched(program: Callable[[], Any], updates: int | None = UPDATES) -> None:
    """A program gives the same result watched, and so many updates of it are seen."""
    torch.manual_seed(0)
    alone = bits(program()), bits(torch.get_rng_state())
    torch.manual_seed(0)
    with watching() as watcher:
        seen = bits(program()), bits(torch.get_rng_state())
    assert seen == alone
    if updates is not None:
        assert watcher.hub.updates == updates


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))


def loaders() -> tuple[DataLoader[Any], DataLoader[Any]]:
    """Eight batches to train on, two to validate on."""
    inputs = torch.randn(80, 6)
    data = TensorDataset(inputs, inputs[:, :3].argmax(1))
    train, test = torch.utils.data.random_split(data, [64, 16])
    return DataLoader(train, 8, shuffle=True), DataLoader(test, 8)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    update: Callable[[Tensor, Tensor], Any],
    updates: int = UPDATES,
) -> None:
    """Epochs with a validation after each."""
    train_loader, test_loader = loaders()
    for _ in range(updates // len(train_loader)):
        model.train()
        for inputs, targets in train_loader:
            update(inputs, targets)
        model.eval()
        with torch.no_grad():
            for inputs, targets in test_loader:
                F.cross_entropy(model(inputs), targets).item()


def plain_update(
    model: Callable[..., Any], optimizer: torch.optim.Optimizer
) -> Callable[[Tensor, Tensor], None]:
    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return update


# ---------------------------------------------------------------------- the compiler


def dynamo_counts(program: Callable[[], Any]) -> tuple[Any, dict[str, int], int, int]:
    """The result, with how often the compiler has compiled, broken graphs and compiled again."""
    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    result = bits(program())
    breaks, again = (sum(counters[name].values()) for name in ("graph_break", "recompiles"))
    return result, dict(counters["stats"]), breaks, again


def compiled_model() -> nn.Module:
    model = network()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train(compiled, optimizer, plain_update(compiled, optimizer))
    return model


class Net(nn.Module):
    """The compiler leaves the frames of torch's own containers to Python, but not this one's."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, inputs: Tensor) -> Tensor:
        return F.dropout(self.body(inputs), 0.1, self.training)


def model_compiled_in_place() -> nn.Module:
    model = Net()
    model.compile(backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, plain_update(model, optimizer))
    return model


def container_compiled_in_place() -> nn.Module:
    model = network()
    model.compile(backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, plain_update(model, optimizer))
    return model


def breaks_off() -> nn.Module:
    """Between its graphs it runs as Python."""
    model = Broken()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(compiled, optimizer, plain_update(compiled, optimizer))
    return model


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = F.relu(self.first(inputs))
        torch._dynamo.graph_break()
        hidden = F.dropout(hidden, 0.1, self.training)
        torch._dynamo.graph_break()
        return self.last(hidden)


def compiled_loss() -> nn.Module:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @torch.compile(backend="aot_eager")
    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        hidden = F.dropout(model(inputs), 0.1, training=model.training)
        return F.cross_entropy(hidden, targets) + 0.1 * F.softmax(hidden, 1).square().mean()

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        loss_of(inputs, targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    train(model, optimizer, update)
    return model


def compiled_step() -> nn.Module:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.01))
    step = torch.compile(plain_update(model, optimizer), backend="aot_eager")
    train(model, optimizer, step)
    return model


def compiled_optimizer() -> nn.Module:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @torch.compile(backend="aot_eager")
    def step() -> None:
        optimizer.step()

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        step()

    train(model, optimizer, update)
    return model


@pytest.mark.parametrize(
    "program",
    [
        compiled_model,
        model_compiled_in_place,
        container_compiled_in_place,
        breaks_off,
        compiled_loss,
        compiled_step,
        compiled_optimizer,
    ],
    ids=lambda program: program.__name__,
)
def test_compiler_breaks_no_more_graphs(program: Callable[[], Any]) -> None:
    alone = dynamo_counts(program)
    assert alone[1] or program is container_compiled_in_place
    with watching():
        seen = dynamo_counts(program)
    torch._dynamo.reset()
    assert seen == alone


def test_compiled_before_it_is_watched() -> None:
    """What was compiled bare is still good when the hooks are there, and when they are gone."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(network().eval(), backend="aot_eager")
    inputs = torch.randn(4, 6)
    before = compiled(inputs)
    with watching():
        assert bits(compiled(inputs)) == bits(before)
    assert bits(compiled(inputs)) == bits(before)


def test_explanation_is_the_same() -> None:
    model = network()

    def loss_of(inputs: Tensor) -> Tensor:
        return F.cross_entropy(model(inputs), inputs[:, :3].argmax(1))

    def explained() -> tuple[int, int, int]:
        torch._dynamo.reset()
        found = torch._dynamo.explain(loss_of)(torch.randn(8, 6))
        return found.graph_count, found.graph_break_count, found.op_count

    alone = explained()
    with watching():
        seen = explained()
    torch._dynamo.reset()
    assert seen == alone
    assert seen[:2] == (1, 0)


def test_whole_graph_is_asked_for() -> None:
    """`fullgraph=True` raises at the first break."""
    model, loss = network(), nn.CrossEntropyLoss()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return loss(model(inputs), targets)

    torch._dynamo.reset()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching():
        for _ in range(UPDATES):
            optimizer.zero_grad()
            loss_of(torch.randn(8, 6), torch.randint(3, (8,))).backward()
            optimizer.step()
    torch._dynamo.reset()


def test_exported_program_is_the_same() -> None:
    model, inputs = network().eval(), (torch.randn(4, 6),)

    def exported() -> str:
        return str(torch.export.export(model, inputs).graph)

    alone = exported()
    with watching():
        assert exported() == alone


# ---------------------------------------------------------------------- precision, optimizers


def scaled() -> nn.Module:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    # The first updates overflow and are skipped.
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=4)

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    train(model, optimizer, update)
    return model


def in_bfloat16() -> nn.Module:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()

    train(model, optimizer, update)
    return model


@pytest.mark.parametrize("kind", ["fused", "foreach", "capturable off", "amsgrad"])
def test_optimizers_of_all_kinds(kind: str) -> None:
    options: dict[str, Any] = {
        "fused": {"fused": True}, "foreach": {"foreach": True},
        "capturable off": {"foreach": False}, "amsgrad": {"amsgrad": True},
    }[kind]  # fmt: skip

    def program() -> nn.Module:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, **options)
        train(model, optimizer, plain_update(model, optimizer))
        return model

    same_watched(program)


def steps_in_backward() -> nn.Module:
    """Each parameter is updated by a hook as soon as its gradient is there."""
    model = network()
    optimizers = {each: torch.optim.SGD([each], lr=0.05) for each in model.parameters()}

    def step(parameter: Tensor) -> None:
        optimizers[parameter].step()  # type: ignore[index]
        optimizers[parameter].zero_grad()  # type: ignore[index]

    for each in model.parameters():
        each.register_post_accumulate_grad_hook(step)

    def update(inputs: Tensor, targets: Tensor) -> None:
        F.cross_entropy(model(inputs), targets).backward()

    train(model, next(iter(optimizers.values())), update)
    return model


def of_second_order() -> nn.Module:
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def update(inputs: Tensor, targets: Tensor) -> None:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            return loss

        optimizer.step(closure)

    train(model, optimizer, update)
    return model


class Wrapper(torch.optim.Optimizer):
    """Hands on to another optimizer without being one that was made."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self.inner.param_groups

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        return self.inner.defaults

    def step(self, closure: Any = None) -> None:
        self.inner.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.inner.zero_grad(set_to_none)


def wrapped_optimizer() -> nn.Module:
    model = network()
    optimizer = Wrapper(torch.optim.AdamW(model.parameters(), lr=0.01))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 0.99**update)

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        schedule.step()

    train(model, optimizer, update)
    return model


def schedule_applied_by_hand() -> nn.Module:
    """As Ignite does: `get_lr` is asked and its answer is written into the groups."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 8, gamma=0.5)
    read = type(schedule).get_lr

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.param_groups[0]["lr"] = read(schedule)[0]
        schedule.last_epoch += 1
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    train(model, optimizer, update)
    return model


# ---------------------------------------------------------------------- other ways to compute


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first, self.body, self.last = nn.Linear(6, 16), network_of(16), nn.Linear(16, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.first(inputs)
        hidden = checkpoint(self.body, hidden, use_reentrant=self.reentrant)
        hidden = checkpoint_sequential(self.body, 2, hidden, use_reentrant=self.reentrant)
        return self.last(hidden)


def network_of(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width)
    )


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_activations(reentrant: bool) -> None:
    def program() -> nn.Module:
        model = Checkpointed(reentrant)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        train(model, optimizer, plain_update(model, optimizer))
        return model

    same_watched(program)


def averaged_by_hand() -> list[nn.Module]:
    model = network()
    average = copy.deepcopy(model).requires_grad_(False).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def update(inputs: Tensor, targets: Tensor) -> None:
        plain_update(model, optimizer)(inputs, targets)
        with torch.no_grad():
            for mean, each in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(each, 0.1)

    train(model, optimizer, update)
    for inputs, _ in loaders()[1]:
        average(inputs)
    return [model, average, copy.deepcopy(average)]


def averaged_by_torch() -> list[nn.Module]:
    model = network()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def update(inputs: Tensor, targets: Tensor) -> None:
        plain_update(model, optimizer)(inputs, targets)
        average.update_parameters(model)

    train(model, optimizer, update)
    return [model, average]


def called_functionally() -> nn.Module:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        parameters = dict(model.named_parameters())
        logits = torch.func.functional_call(model, parameters, (inputs,))
        F.cross_entropy(logits, targets).backward()
        optimizer.step()

    train(model, optimizer, update)
    return model


def gradients_of_each_sample() -> nn.Module:
    """`vmap(grad(...))`, clipped sample by sample and put into the gradients by hand."""
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of(parameters: dict[str, Tensor], inputs: Tensor, target: Tensor) -> Tensor:
        logits = torch.func.functional_call(model, parameters, (inputs[None],))
        return F.cross_entropy(logits, target[None])

    each_sample = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))

    def update(inputs: Tensor, targets: Tensor) -> None:
        parameters = {name: each.detach() for name, each in model.named_parameters()}
        found = each_sample(parameters, inputs, targets)
        for name, each in model.named_parameters():
            each.grad = found[name].clamp(-1, 1).mean(0)
        optimizer.step()
        optimizer.zero_grad()

    train(model, optimizer, update)
    return model


def trained_without_state() -> dict[str, Tensor]:
    """Nothing but functions: no optimizer, no `backward`."""
    model = network().eval()
    parameters = {name: each.detach() for name, each in model.named_parameters()}

    def loss_of(parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(model, parameters, (inputs,)), targets)

    for _ in range(4):
        for inputs, targets in loaders()[0]:
            found, loss = torch.func.grad_and_value(loss_of)(parameters, inputs, targets)
            assert loss.item() > 0
            parameters = {name: each - 0.1 * found[name] for name, each in parameters.items()}
    return parameters


def ensemble() -> Tensor:
    """One call of a module for a stack of models."""
    models = [network().eval() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)  # type: ignore[arg-type]
    base = copy.deepcopy(models[0]).to("meta")

    def call(parameters: Any, buffers: Any, inputs: Tensor) -> Tensor:
        logits = torch.func.functional_call(base, (parameters, buffers), (inputs,))
        return F.cross_entropy(logits, torch.zeros(4, dtype=torch.long))

    return torch.func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, torch.randn(4, 6))


def vmapped_module() -> Tensor:
    model = network().eval()
    return torch.func.vmap(model)(torch.randn(5, 4, 6))


def derivatives() -> list[Any]:
    model = network().eval()
    inputs = torch.randn(6)
    forward = torch.func.jvp(model, (inputs,), (torch.ones(6),))
    return [torch.func.jacrev(model)(inputs), torch.func.jacfwd(model)(inputs), forward]


def shapes_alone() -> list[Any]:
    """On the meta device, and by fake tensors."""
    with torch.device("meta"):
        model = network()
        logits = model(torch.randn(4, 6))
        loss = F.cross_entropy(logits, torch.zeros(4, dtype=torch.long))
    with torch._subclasses.FakeTensorMode():
        fake = network()
        F.cross_entropy(fake(torch.randn(4, 6)), torch.zeros(4, dtype=torch.long)).backward()
    return [tuple(logits.shape), loss.device.type]


@torch.jit.script
def scripted_bare(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits, targets) + F.softmax(logits, 1).mean()


def loss_to_script(logits: Tensor, targets: Tensor) -> Tensor:
    hidden = F.dropout(logits, 0.1, True)
    return F.cross_entropy(hidden, targets) + F.mse_loss(F.softmax(logits, 1), hidden)


def scripted() -> list[Any]:
    model = network()
    loss_of = torch.jit.script(loss_to_script)
    part = torch.jit.script(network_of(6))
    optimizer = torch.optim.SGD([*model.parameters(), *part.parameters()], lr=0.1)

    def update(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        logits = model(part(inputs))
        (loss_of(logits, targets) + scripted_bare(logits, targets)).backward()
        optimizer.step()

    train(model, optimizer, update)
    return [model, {name: each.detach() for name, each in part.named_parameters()}]


def jit_traced() -> list[Any]:
    model = network().eval()
    inputs = torch.randn(4, 6)
    traced = torch.jit.trace(model, (inputs,))
    # Names are counted on in one process.
    return [re.sub(r"\.___torch_mangle_\d+", "", str(traced.inlined_graph)), traced(inputs)]


class Symbolic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(F.dropout(self.body(inputs), 0.1, self.training), targets)


def fx_traced() -> list[Any]:
    graph = torch.fx.symbolic_trace(Symbolic())
    optimizer = torch.optim.SGD(graph.parameters(), lr=0.1)
    for _ in range(10):
        for inputs, targets in loaders()[0]:
            optimizer.zero_grad()
            graph(inputs, targets).backward()
            optimizer.step()
    return [graph.code, graph]


def in_threads() -> list[nn.Module]:
    """Two programs at once, each with a model of its own."""
    models = [network().eval() for _ in range(2)]
    train_loader, _ = loaders()
    batches = list(train_loader) * 10

    def work(model: nn.Module) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for inputs, targets in batches:
            plain_update(model, optimizer)(inputs, targets)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return models


def one_model_in_threads() -> Tensor:
    """Forwards of one model at the same time."""
    model = network().eval()
    inputs = [torch.randn(4, 6) for _ in range(40)]
    found: dict[int, Tensor] = {}

    def work(first: int) -> None:
        for number in range(first, 40, 4):
            with torch.no_grad():
                found[number] = model(inputs[number])

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.stack([found[number] for number in range(40)])


@pytest.mark.parametrize(
    ("program", "updates"),
    [
        (scaled, None),
        (in_bfloat16, UPDATES),
        (steps_in_backward, None),
        (of_second_order, UPDATES),
        (wrapped_optimizer, UPDATES),
        (schedule_applied_by_hand, UPDATES),
        (averaged_by_hand, UPDATES),
        (averaged_by_torch, UPDATES),
        (called_functionally, UPDATES),
        (gradients_of_each_sample, UPDATES),
        (trained_without_state, 0),
        (ensemble, 0),
        (vmapped_module, 0),
        (derivatives, 0),
        (shapes_alone, 0),
        (jit_traced, 0),
        (fx_traced, 80),
        (in_threads, 160),
        (one_model_in_threads, 0),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_companion(program: Callable[[], Any], updates: int | None) -> None:
    same_watched(program, updates)


def test_scripted_functions() -> None:
    scripted()  # what is compiled depends on what was seen before, in one process
    same_watched(scripted)


# ---------------------------------------------------------------------- several processes


def sharded(rank: int, world: int) -> dict[str, Tensor]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(network_of(6), network_of(6), nn.Linear(6, 3))
    mesh = init_device_mesh("cpu", (world,))
    for part in list(model)[:2]:
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    _train_here(model, optimizer, rank, world)
    return {name: each.full_tensor() for name, each in model.state_dict().items()}


def replicated(rank: int, world: int) -> dict[str, Tensor]:
    wrapped = nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=0.01)
    _train_here(wrapped, optimizer, rank, world)
    return wrapped.module.state_dict()


def _train_here(model: nn.Module, optimizer: Any, rank: int, world: int) -> None:
    inputs = torch.randn(64 * world, 6)
    data = TensorDataset(inputs, inputs[:, :3].argmax(1))
    sampler = torch.utils.data.DistributedSampler(data, world, rank)
    loader = DataLoader(data, 8, sampler=sampler)
    for epoch in range(UPDATES // 8):
        sampler.set_epoch(epoch)
        model.train()
        for batch, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(batch), targets).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


PROGRAMS = {"sharded": sharded, "replicated": replicated}


def _rank(rank: int, world: int, name: str, watched: bool, folder: str) -> None:
    torch.set_num_threads(1)
    method = f"file://{folder}/meeting-{name}-{world}-{watched}"
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
    torch.manual_seed(0)
    if watched:
        with watching() as watcher:
            weights = PROGRAMS[name](rank, world)
        assert watcher.hub.updates == UPDATES
    else:
        weights = PROGRAMS[name](rank, world)
    dist.barrier()
    dist.destroy_process_group()
    torch.save(weights, f"{folder}/{name}-{world}-{watched}-{rank}.pt")
    os._exit(0)  # threads of gloo that still run when an interpreter ends abort it, now and then


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("name", ["sharded", "replicated"])
def test_processes_that_train_together(name: str, world: int, tmp_path: Path) -> None:
    for watched in (False, True):
        arguments = (world, name, watched, str(tmp_path))
        torch.multiprocessing.start_processes(
            _rank, arguments, nprocs=world, start_method="forkserver"
        )
    for rank in range(world):
        alone, seen = (
            torch.load(tmp_path / f"{name}-{world}-{watched}-{rank}.pt")
            for watched in (False, True)
        )
        assert bits(seen) == bits(alone)
