"""Memory: what grows and is never read, what took it when it ran out, and what would fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trueloop.device import is_out_of_memory
from trueloop.doctor.live.memory import footprint, out_of_memory
from trueloop.doctor.live.memory.fake_forward import CallSpec, SavedBytes, Segments, saved_by
from trueloop.doctor.live.memory.options import Needs, fits, recomputed
from trueloop.doctor.live.memory.recorded_shapes import RecordedShapes
from trueloop.doctor.live.probes.memory_growth import SizeCurve
from trueloop.doctor.live.probes.tensor_owners import measured
from trueloop.doctor.live.probes.unused_containers import adder
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import GraphsRetained, MemoryGrowth
from trueloop.doctor.rules.health.th106_memory_grows import MemoryGrows

MIB = footprint.MIB

# ---------------------------------------------------------------------- memory grows


def curve(size: Callable[[int], float], updates: int = 600) -> SizeCurve:
    found = SizeCurve()
    for update in [*range(8, 50, 2), 101, 151, 226, 338, 506, 758, 1136]:
        if update <= updates:
            found.add(update, int(size(update) * MIB))
    return found


@pytest.mark.parametrize(
    ("size", "steady"),
    [
        (lambda update: 300 + 0.5 * update, True),
        (lambda update: 300 + 0.5 * update + (update * 7 % 5), True),
        (lambda update: 300 + 0.05 * update, False),
        (lambda update: 3000 + 0.3 * update, False),
        (lambda update: 300 + 0.5 * min(update, 300), False),
        (lambda update: 300 + 200 * (1 - 2 ** (-update / 60)), False),
        (lambda update: 300 + 0.5 * (update % 226), False),
        (lambda update: 300 + 250 * (update > 120), False),
    ],
    ids=["grows", "grows in steps", "little", "a small share", "stops", "warms up", "is emptied",
         "once"],
)  # fmt: skip
def test_growth_is_steady_and_large(size: Callable[[int], float], steady: bool) -> None:
    assert curve(size).is_steady() is steady


KEPT = """\
kept = []
def train(model, batches):
    for x in batches:
        out = model(x)
        kept.append(out.detach())
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (KEPT, 5),
        (KEPT + "        print(kept[-1].mean(), len(kept))\n", 5),
        (KEPT.replace("train(model, batches)", "train(model, batches, kept)")
         + "train(1, 2, kept)\n", 5),
        ("def f(x, kept=[]):\n    kept.append(x)\nf(1)\n", 2),
        ("kept = {}\ndef f(step, x):\n    kept[step] = x\n", 3),
        ("kept = {}\ndef f(name, x):\n    kept.setdefault(name, []).append(x)\n", 3),
        ("kept = []\nhook(lambda m, a, o: kept.append(o))\n", 2),
        (KEPT + "        if len(kept) > 9: break\n", None),
        (KEPT + "        loss = kept[-2]\n", None),
        (KEPT + "    return kept\n", None),
        (KEPT + "    del kept[0]\n", None),
        (KEPT + "    kept.clear()\n", None),
        (KEPT + "save(kept)\n", None),
        (KEPT + "other = kept\n", None),
        (KEPT + "for each in kept: pass\n", None),
        (KEPT + "globals()['kept']\n", None),
        (KEPT.replace("kept = []", "kept = trainer.log"), None),
        (KEPT.replace("train(model, batches)", "train(model, batches, kept)") + "train(1, 2, z)\n",
         None),
        ("kept = {}\ndef f(k, x):\n    return kept.setdefault(k, x)\n", None),
    ],
    ids=["added to", "the newest is shown", "handed on", "a default", "a table", "setdefault",
         "a hook", "its length decides", "an older one is read", "returned", "deleted from",
         "emptied", "saved", "another name", "gone through", "asked for by name", "made elsewhere",
         "handed on by another name", "setdefault is used"],
)  # fmt: skip
def test_what_reads_a_container(text: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    place = adder({("kept", False)}, [str(path)], [])
    assert (None if place is None else place.line) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("self.kept = []\nself.kept.append(1)\n", 2),
        ("self.kept = []\nself.kept.append(1)\nplot(trainer.kept)\n", None),
        ("self.kept = given\nself.kept.append(1)\n", None),
        ("self.kept = []\nself.kept.append(1)\ngetattr(self, 'kept')\n", None),
    ],
    ids=["added to", "read elsewhere", "given", "by name"],
)
def test_what_reads_an_attribute(text: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    place = adder({("kept", True)}, [str(path)], [])
    assert (None if place is None else place.line) == line


def test_containers_are_measured_by_their_storages() -> None:
    whole = torch.zeros(1000)
    views = [whole[:10], {"a": whole[10:]}, (torch.zeros(5).numpy(), 1.0, "x")]
    assert measured(views) == (3, (4000 + 20, 0))


def grown(holder: str = "kept", line: int = 7) -> MemoryGrowth:
    return MemoryGrowth(
        place=Location("train.py", line), holder=holder, kind="list", count=400,
        held=200 * MIB, grown=210 * MIB, since=10, update=430, on_device=False,
    )  # fmt: skip


def test_what_is_kept_with_its_graph_is_told_once() -> None:
    rule = MemoryGrows()
    rule.on_memory_growth(grown())
    (finding,) = rule.findings
    assert "0.5 MiB per update, by 210 MiB from update 10 to 430. `kept`" in finding.message
    rule = MemoryGrows()
    rule.on_graphs_retained(GraphsRetained(holder="kept", how="append"))
    rule.on_memory_growth(grown())
    assert rule.findings == []
    rule.on_memory_growth(grown("other"))
    assert len(rule.findings) == 1


# ---------------------------------------------------------------------- what a forward keeps


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
            nn.MaxPool2d(2), nn.Dropout(0.1),
        )  # fmt: skip
        self.head = nn.Linear(8, 5)
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x).mean(dim=(2, 3))
        self.seen.append(hidden)
        return self.head(hidden)


def models() -> dict[str, tuple[nn.Module, Tensor]]:
    tied = nn.Sequential(nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 12))
    tied[2].weight = tied[0].weight
    return {
        "mlp": (nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 5)), torch.randn(16, 12)),
        "blocks": (nn.Sequential(*(Block(12) for _ in range(3))), torch.randn(16, 12)),
        "convolutions": (Convolutions(), torch.randn(16, 3, 8, 8)),
        "tied": (tied, torch.randn(16, 12)),
        "recurrent": (Recurrent(), torch.randn(16, 7, 12)),
    }


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(12, 9)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x.new_zeros(x.shape[0], 9)
        for step in x.unbind(1):
            hidden = self.cell(step, hidden)
        return hidden


def really_saved(model: nn.Module, x: Tensor, target: Tensor) -> int:
    """Bytes of the storages that autograd keeps, with the model's own and the batch's left out."""
    known = {
        each.untyped_storage().data_ptr() for each in (*model.parameters(), *model.buffers(), x)
    } | {target.untyped_storage().data_ptr()}
    found: dict[int, Any] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            found[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        loss = F.cross_entropy(model(x), target)
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in found.values())


def recipe_of(watcher: Watcher, model: nn.Module, x: Tensor, target: Tensor) -> CallSpec:
    F.cross_entropy(model(x), target)
    watcher.stop()
    (probe,) = [each for each in watcher.probes if isinstance(each, RecordedShapes)]
    assert probe.recipe is not None
    return probe.recipe


@pytest.mark.parametrize("name", ["mlp", "blocks", "convolutions", "tied", "recurrent"])
def test_what_is_saved_is_counted_to_the_byte(name: str, watcher: Watcher) -> None:
    model, x = models()[name]
    target = torch.randint(0, 5, (16,))
    recipe = recipe_of(watcher, model, x, target)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    before = torch.get_rng_state()
    for samples in (16, 8, 3):
        found = saved_by(watcher.nonfinite.calls, recipe, samples=samples)
        assert isinstance(found, SavedBytes), found
        again = torch.randint(0, 5, (samples,))
        torch.set_rng_state(before)
        assert found.total == really_saved(model.train(), torch.randn(samples, *x.shape[1:]), again)
        model.load_state_dict(state)
        torch.set_rng_state(before)
    assert recipe.batch_bytes == x.nbytes + target.nbytes
    assert recipe.samples == 16


def test_nothing_of_the_programs_is_changed(watcher: Watcher) -> None:
    model, x = models()["convolutions"]
    hooked: list[int] = []
    model.register_forward_hook(lambda *call: hooked.append(1))
    recipe = recipe_of(watcher, model, x, torch.randint(0, 5, (16,)))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    state = torch.get_rng_state()
    assert isinstance(saved_by(watcher.nonfinite.calls, recipe), SavedBytes)
    assert hooked == [1]
    assert len(model.seen) == 1
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_a_model_that_needs_its_numbers_is_said_to(watcher: Watcher) -> None:
    class Asks(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x if x.sum() > 0 else -x)

    recipe = recipe_of(watcher, Asks(4, 5), torch.randn(8, 4), torch.randint(0, 5, (8,)))
    assert "DataDependent" in str(saved_by(watcher.nonfinite.calls, recipe))


def test_what_recomputation_saves(watcher: Watcher) -> None:
    model, x = models()["blocks"]
    assert isinstance(model, nn.Sequential)
    target = torch.randint(0, 5, (16,))
    saved = saved_by(watcher.nonfinite.calls, recipe_of(watcher, model, x, target))
    assert isinstance(saved, SavedBytes)
    again = recomputed(saved)
    assert again is not None

    class Checkpointed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for block in model:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    kept = really_saved(Checkpointed(), x, target)
    one = max(really_saved_in(block, x) for block in model)
    assert again[1] == kept + one


def really_saved_in(block: nn.Module, x: Tensor) -> int:
    total = 0
    known = {each.untyped_storage().data_ptr() for each in block.parameters()}
    held = []

    def pack(tensor: Tensor) -> Tensor:
        nonlocal total
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            held.append(storage)
            total += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
        inputs = x.clone().requires_grad_()
        known.add(inputs.untyped_storage().data_ptr())
        block(inputs)
    return total


# ---------------------------------------------------------------------- arithmetic


def saved(total: int, *, most: int) -> SavedBytes:
    parts = [most] * (total // most) + [total % most]
    return SavedBytes([("layer", size) for size in parts])


@pytest.mark.parametrize("room", [1000, 2400, 4000, 7000, 20_000])
@pytest.mark.parametrize("samples", [2, 7, 64])
def test_the_largest_batch_that_fits(room: int, samples: int) -> None:
    needs = Needs(
        room=room, usable=0.9, fixed=900, batch=3 * samples, samples=samples,
        saved=saved(200 + 90 * samples, most=11 * samples),
        smaller=saved(200 + 90 * (samples // 2), most=11 * (samples // 2)), half=None,
    )  # fmt: skip
    counted = [
        size for size in range(1, samples + 1)
        if 900 + 3 * size + 200 + 90 * size + 2 * 11 * size <= 0.9 * room
    ]  # fmt: skip
    assert needs.largest() == max(counted, default=0)
    found = {each.what: each for each in fits(needs)}
    if 0.9 * room < 900:
        assert list(found) == ["none"]
    elif counted and max(counted) < samples:
        assert found["batch size"].samples == max(counted)
        part = found["accumulation"]
        assert part.does
        assert part.samples <= max(counted)
        assert part.steps * part.samples >= samples
        assert (part.steps - 1) * max(counted) < samples


def test_what_is_said_of_precision_and_recomputation() -> None:
    whole = SavedBytes(
        [(f"blocks.{index}", 100) for index in range(8)] + [("head", 50)],
        segments=[Segments("blocks", (100,) * 8, (10,) * 8)],
    )
    needs = Needs(480, 0.9, 100, 10, 4, whole, smaller=None, half=saved(430, most=60))
    found = {each.what: each for each in fits(needs)}
    assert found["recomputation"].needs == 100 + 10 + (50 + 80 + 100) + 2 * 100
    assert not found["recomputation"].does
    assert found["bf16 autocast"].needs == 100 + 10 + 430 + 2 * 60
    assert "batch size" not in found
    assert needs.saved.largest(2) == [("blocks.*", 800, 8), ("head", 50, 1)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [("Adam", {}), ("AdamW", {"amsgrad": True}), ("SGD", {}), ("SGD", {"momentum": 0.9}),
     ("RMSprop", {}), ("RMSprop", {"momentum": 0.9, "centered": True}), ("NAdam", {}),
     ("RAdam", {}), ("Adamax", {}), ("Adadelta", {}), ("Rprop", {}), ("ASGD", {}),
     ("Adagrad", {})],
    ids=lambda value: value if isinstance(value, str) else ",".join(value) or "plain",
)  # fmt: skip
def test_state_that_is_not_made_yet(kind: str, options: dict[str, Any]) -> None:
    parameter = nn.Parameter(torch.randn(50, 40))
    optimizer = getattr(torch.optim, kind)([parameter], **options)
    live, expected = out_of_memory._state(optimizer, "cpu")
    assert kind == "Adagrad" or live == 0
    parameter.grad = torch.randn(50, 40)
    optimizer.step()
    live, whole = out_of_memory._state(optimizer, "cpu")
    assert live == whole
    assert abs(whole - expected) <= 64  # counts of steps


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
                      "allocate memory: you tried to allocate 33554432 bytes. Error code 12"),
         33_554_432),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has"),
         20 * MIB),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
         None),
        (MemoryError("Unable to allocate 1.50 GiB for an array"), 1536 * MIB),
        (MemoryError(), None),
    ],
    ids=["cpu", "cuda", "cublas", "numpy", "python"],
)  # fmt: skip
def test_what_could_not_be_had(error: Exception, asked: int | None) -> None:
    assert is_out_of_memory(error)
    assert out_of_memory._asked(str(error)) == asked


def test_other_exceptions_are_not_of_memory() -> None:
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(KeyError("out of memory"))


# ---------------------------------------------------------------------- on a GPU


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(watcher: Watcher) -> None:
    torch.cuda.set_per_process_memory_fraction(2**30 / torch.cuda.mem_get_info()[1])
    model = nn.Sequential(*(Block(512) for _ in range(8)), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x, target = torch.randn(65_536, 512, device="cuda"), torch.zeros(65_536, device="cuda").long()
    try:
        with pytest.raises(torch.OutOfMemoryError) as raised:
            F.cross_entropy(model(x), target).backward()
        told = out_of_memory.OutOfMemory(watcher, raised.value).report()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert (told.device, told.moment, told.optimizers) == ("cuda", "forward", ("AdamW",))
    assert told.limit <= 2**30
    assert told.weights == sum(each.nbytes for each in model.parameters())
    assert told.activations is not None
    assert told.activations > told.limit
    del optimizer
