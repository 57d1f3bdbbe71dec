"""The kernels called at once do what `optimizer.step()` does, and only where that is so."""

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import StepLR
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import TorchFunctionMode

from trueloop import Step, supervised
from trueloop.optimizers import adam
from trueloop.step import fused_update
from trueloop.step.fused_update import FusedUpdate

KINDS = {
    "adam": (Adam, {"weight_decay": 0.1}),
    "adamw": (AdamW, {"weight_decay": 0.1, "betas": (0.8, 0.9)}),
    "sgd": (SGD, {"weight_decay": 0.1}),
    "momentum": (SGD, {"momentum": 0.9, "dampening": 0.1}),
    "nesterov": (SGD, {"momentum": 0.9, "nesterov": True}),
}


class Twins:
    """The same model and optimizer twice: one steps by `FusedUpdate`, one by `optimizer.step()`."""

    def __init__(self, kind="adam", dtype=torch.float32, **options):
        make, more = KINDS[kind]
        torch.manual_seed(0)
        self.models = [nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2)).to(dtype)]
        self.models.append(copy.deepcopy(self.models[0]))
        self.optimizers = [
            make(
                [{"params": [*m[1].parameters()], "lr": 0.3}, {"params": [*m[0].parameters()]}],
                lr=0.1,
                fused=True,
                **{**more, **options},
            )
            for m in self.models
        ]
        self.update = FusedUpdate(self.optimizers[0])
        self.gathered = 0
        """Groups that torch's own step went through, of the first optimizer."""
        original = self.optimizers[0]._init_group

        def counted(*args):
            self.gathered += 1
            return original(*args)

        self.optimizers[0]._init_group = counted

    def step(self, times=1, without=()):
        for _ in range(times):
            x = torch.randn(4, 3, dtype=next(self.models[0].parameters()).dtype)
            for model in self.models:
                model.zero_grad()
                model(x).square().mean().backward()
                for name, parameter in model.named_parameters():
                    if name in without:
                        parameter.grad = None
            self.update.step()
            self.optimizers[1].step()
        self.check()

    def both(self, change):
        for model, optimizer in zip(self.models, self.optimizers, strict=True):
            change(model, optimizer)

    def check(self):
        mine, theirs = self.optimizers
        groups = zip(mine.param_groups, theirs.param_groups, strict=True)
        pairs = [pair for a, b in groups for pair in zip(a["params"], b["params"], strict=True)]
        for a, b in pairs:
            assert torch.equal(a, b)
            entries = mine.state[a], theirs.state[b]
            assert entries[0].keys() == entries[1].keys()
            for name, value in entries[0].items():
                assert value is None or torch.equal(value, entries[1][name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernels_give_the_bits_of_optimizer_step(kind, dtype):
    twins = Twins(kind, dtype)
    twins.step(6)
    assert twins.gathered == 2, "the first update alone is made by optimizer.step()"


def _lr(model, optimizer):
    optimizer.param_groups[0]["lr"] *= 0.5
    optimizer.param_groups[1]["weight_decay"] = 0.5


def _loaded(model, optimizer):
    state = optimizer.state_dict()
    for entry in state["state"].values():
        entry["exp_avg"] = entry["exp_avg"] * 2
    optimizer.load_state_dict(state)


def _entry(model, optimizer):
    optimizer.state[model[0].bias]["exp_avg_sq"] = torch.full((5,), 0.25)


def _swapped(model, optimizer):
    state, (a, b) = optimizer.state, (model[0].bias, model[1].bias)
    state[a], state[b] = ({k: v[:1].expand_as(p).clone() if v.ndim else v.clone()
        for k, v in state[q].items()} for p, q in ((a, b), (b, a)))  # fmt: skip


def _forgotten(model, optimizer):
    del optimizer.state[model[1].weight]


def _cleared(model, optimizer):
    optimizer.state.clear()


def _replaced(model, optimizer):
    model[0].bias = nn.Parameter(torch.ones(5))
    optimizer.param_groups[1]["params"][1] = model[0].bias


def _more(model, optimizer):
    model.append(nn.Linear(2, 2))
    nn.init.ones_(model[2].weight)
    nn.init.zeros_(model[2].bias)
    optimizer.add_param_group({"params": [*model[2].parameters()]})


def _fewer(model, optimizer):
    optimizer.param_groups[1]["params"].pop()


def _scales(model, optimizer):
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(2.0), torch.tensor(0.0)


def _switched(**options):
    def change(model, optimizer):
        for group in optimizer.param_groups:
            group.update(options)

    return change


CHANGES = {
    "lr": _lr,
    "lr as a tensor": _switched(lr=torch.tensor(0.2)),
    "maximize": _switched(maximize=True),
    "not fused": _switched(fused=False),
    "foreach": _switched(fused=False, foreach=True),
    "betas": _switched(betas=(0.5, 0.6)),
    "a loaded state": _loaded,
    "an entry of the state": _entry,
    "two entries in each other's place": _swapped,
    "a forgotten entry": _forgotten,
    "a cleared state": _cleared,
    "a parameter replaced": _replaced,
    "a group more": _more,
    "a parameter less": _fewer,
    "a scaler's flags": _scales,
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_between_two_updates_is_noticed(change):
    twins = Twins()
    twins.step(3)
    twins.both(CHANGES[change])
    twins.step(5)


def test_momentum_that_is_switched_on_later_gets_its_buffers():
    twins = Twins("sgd")
    twins.step(3)
    twins.both(_switched(momentum=0.9))
    twins.step(4)
    twins.both(_switched(momentum=0.0))
    twins.step(2)


def test_amsgrad_is_left_to_torch():
    twins = Twins(amsgrad=True)
    twins.step(4)
    assert twins.gathered == 8


def test_parameters_without_a_gradient_are_left_alone():
    twins = Twins()
    twins.step(2, without=("0.bias",))
    twins.step(3)
    twins.step(2, without=("1.weight",))
    steps = twins.optimizers[0].state
    assert [float(steps[p]["step"]) for p in twins.models[0].parameters()] == [7, 5, 5, 7]


def test_counts_are_rounded_as_torch_rounds_them():
    twins = Twins()
    twins.step(2)

    def late(model, optimizer):
        for entry in optimizer.state.values():
            entry["step"].fill_(2.0**24 - 2)

    twins.both(late)
    twins.step(5)
    assert twins.gathered == 2


def test_hooks_of_one_and_of_all_optimizers_are_called():
    twins, seen = Twins(), []
    twins.step(3)
    one = twins.optimizers[0].register_step_post_hook(lambda *_: seen.append("one"))
    twins.step()
    one.remove()
    everyone = register_optimizer_step_post_hook(lambda *_: seen.append("all"))
    twins.step()
    everyone.remove()
    twins.step()
    assert seen == ["one", "all", "all"], "the last two are of both twins"


def test_a_step_that_somebody_wrapped_is_called(monkeypatch):
    twins, seen = Twins(), []
    twins.step(2)
    original = Adam.step
    monkeypatch.setattr(Adam, "step", lambda self: (seen.append(self), original(self)))
    twins.step()
    monkeypatch.undo()
    own = twins.optimizers[0].step
    twins.optimizers[0].step = lambda: (seen.append("own"), own())
    twins.step()
    assert seen == [*twins.optimizers, "own"]


def test_a_profiler_sees_the_step():
    twins = Twins()
    twins.step(3)
    with torch.profiler.profile() as found:
        twins.update.step()
    assert "Optimizer.step#Adam.step" in {each.key for each in found.key_averages()}


def test_a_scheduler_of_torchs_knows_of_the_step():
    twins = Twins()
    schedulers = [StepLR(each, 1, 0.5) for each in twins.optimizers]
    twins.step(2)
    twins.optimizers[0]._opt_called = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            twins.step()
            for each in schedulers:
                each.step()
    assert twins.optimizers[0]._opt_called
    assert twins.gathered == 2


def test_a_step_can_be_copied_after_updates():
    model = nn.Linear(3, 1)
    one = Step(model, adam(model), supervised(nn.MSELoss()))
    batch = torch.randn(4, 3), torch.randn(4, 1)
    for _ in range(3):
        one(batch)
    other = copy.deepcopy(one)
    for _ in range(3):
        one(batch)
        other(batch)
    assert other.model is not model
    assert torch.equal(other.model.weight, model.weight)


def test_a_backward_of_the_engine_gives_the_bits_of_loss_backward():
    model = nn.Linear(3, 1)
    x = torch.randn(4, 3)
    model(x).square().mean().backward()
    expected = [p.grad for p in model.parameters()]
    model.zero_grad()
    fused_update.backward(model(x).square().mean())
    assert all(map(torch.equal, expected, [p.grad for p in model.parameters()]))
    leaf = torch.zeros((), dtype=torch.float64, requires_grad=True)
    for _ in range(2):  # the gradient of a loss that is a parameter is the parameter's alone
        fused_update.backward(leaf)
    assert leaf.grad == 2


def test_whoever_listens_to_the_backward_hears_of_it(monkeypatch):
    weight, seen = torch.ones((), requires_grad=True), []
    original = torch.autograd.backward

    def noted(*args, **options):
        seen.append("function")
        original(*args, **options)

    class Noted(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is Tensor.backward:
                seen.append("mode")
            return function(*args, **(kwargs or {}))

    monkeypatch.setattr(torch.autograd, "backward", noted)
    fused_update.backward(weight * 2)
    monkeypatch.undo()
    loss = weight * 2
    with Noted():
        fused_update.backward(loss)
    assert seen == ["function", "mode"]
    assert weight.grad == 4
