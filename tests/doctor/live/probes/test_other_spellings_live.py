# ruff: noqa: E501 (a way of writing is one line)
"""A correct training with a validation, and one that accumulates and resumes, each step written in
the ways in which people write it: nothing is found, in source or live."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_parameters_live import watched

from trueloop.doctor.static import check_text

PLAIN = """
import copy, io, math, random, os
from collections import OrderedDict
from contextlib import ExitStack, nullcontext
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler, SubsetRandomSampler, TensorDataset
torch.manual_seed(0); np.random.seed(0); random.seed(0)
x = torch.randn(200, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
train_set, val_set = TensorDataset(x[:160], y[:160]), TensorDataset(x[160:], y[160:])
LOADER
val_loader = DataLoader(val_set, batch_size=16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.bn, self.b = nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 2)
        self.drop = nn.Dropout(0.2)
    def forward(self, x):
        h = F.relu(self.bn(self.a(x)))
        DROPOUT
        return self.b(h)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
def validate():
    EVAL
    hits = total = 0
    NOGRAD
        for inputs, targets in val_loader:
            out = model(inputs)
            HITS
            total += len(targets)
    TRAIN
    return hits / total
best, state, losses = 0.0, None, []
for epoch in range(2):
    model.train()
    running = 0.0
    for inputs, targets in train_loader:
        LOSS
        CLEAR
        loss.backward()
        CLIP
        STEP
        RUNNING
    sched.step()
    acc = validate()
    if acc >= best:
        best = acc
        SAVE
LOAD
print(best)
"""
IN_PLAIN: dict[str, list[str]] = {
    "LOADER": [
        "train_loader = DataLoader(train_set, batch_size=16, shuffle=True)",
        "train_loader = DataLoader(train_set, 16, sampler=RandomSampler(train_set))",
        "train_loader = DataLoader(train_set, 16, sampler=SubsetRandomSampler(range(160)))",
        "train_loader = DataLoader(train_set, 16, True, drop_last=True)",
        "gen = torch.Generator(); gen.manual_seed(3); train_loader = DataLoader(train_set, 16, shuffle=True, generator=gen)",
        "class Loader:\n    def __iter__(self):\n        p = torch.randperm(160)\n        for i in range(0, 160, 16):\n            yield x[p[i:i + 16]], y[p[i:i + 16]]\n    def __len__(self): return 10\ntrain_loader = Loader()",
        "rows = list(range(160))\ndef batches():\n    random.shuffle(rows)\n    for i in range(0, 160, 16):\n        j = rows[i:i + 16]\n        yield x[j], y[j]\nclass L:\n    __iter__ = lambda self: batches()\ntrain_loader = L()",
    ],
    "DROPOUT": [
        "h = self.drop(h)",
        "h = F.dropout(h, 0.2, self.training)",
        "h = F.dropout(h, p=0.2, training=self.training)",
        "h = F.dropout(h, 0.2) if self.training else h",
        "if self.training: h = F.dropout(h, 0.2, True)",
        "h = torch.dropout(h, 0.2, self.training)",
        "h = nn.Dropout(0.2)(h) if self.training else h",
        "h = F.dropout(h, 0.2, training=self.bn.training)",
        "h = nn.functional.dropout(h, 0.2, self.training, inplace=False)",
    ],
    "EVAL": [
        "model.eval()",
        "model.train(False)",
        "model.train(mode=False)",
        "for m in model.modules(): m.eval()",
        "for m in model.children(): m.eval()",
        "[m.eval() for m in (model,)]",
        "model.apply(lambda m: m.eval())",
        "was = model.training; model.eval()",
        "nn.Module.eval(model)",
        "net = model.eval()",
        "getattr(model, 'eval')()",
        "model.bn.eval(); model.drop.eval(); model.training = False",
        "for m in model.modules(): m.training = False",
    ],
    "NOGRAD": [
        "with torch.no_grad():",
        "with torch.inference_mode():",
        "with torch.set_grad_enabled(False):",
        "with torch.autograd.no_grad():",
        "with torch.autograd.grad_mode.no_grad():",
        "with torch.inference_mode(True):",
        "with torch.set_grad_enabled(mode=False):",
        "with torch.no_grad(), nullcontext():",
        "with ExitStack() as stack:\n        stack.enter_context(torch.no_grad())",
    ],
    "HITS": [
        "hits += (out.argmax(1) == targets).sum().item()",
        "hits += int((out.max(1)[1] == targets).sum())",
        "hits += out.argmax(-1).eq(targets).float().sum().item()",
        "hits += sum(int(a == b) for a, b in zip(out.argmax(1).tolist(), targets.tolist()))",
        "hits += np.sum(out.detach().cpu().numpy().argmax(1) == targets.numpy())",
        "hits += torch.eq(torch.argmax(out, dim=1), targets).sum().cpu().numpy()",
        "hits += (F.softmax(out, dim=1).topk(1)[1].squeeze(1) == targets).sum().item()",
        "hits += (out[:, 1] > out[:, 0]).long().eq(targets).sum()",
    ],
    "TRAIN": [
        "pass",
        "model.train()",
        "model.train(True)",
    ],
    "LOSS": [
        "loss = F.cross_entropy(model(inputs), targets)",
        "loss = nn.CrossEntropyLoss()(model(inputs), targets)",
        "loss = F.nll_loss(F.log_softmax(model(inputs), dim=1), targets)",
        "loss = nn.NLLLoss()(F.log_softmax(model(inputs), 1), targets)",
        "loss = -F.log_softmax(model(inputs), 1)[range(len(targets)), targets].mean()",
        "p = torch.sigmoid(model(inputs)[:, 1] - model(inputs)[:, 0]); loss = F.binary_cross_entropy(p, targets.float())",
        "o = model(inputs); loss = F.binary_cross_entropy_with_logits(o[:, 1] - o[:, 0], targets.float())",
        "loss = F.cross_entropy(model(inputs), F.one_hot(targets, 2).float())",
        "loss = -(F.one_hot(targets, 2) * model(inputs).log_softmax(1)).sum(1).mean()",
        "loss = F.nll_loss(torch.log(F.softmax(model(inputs), 1) + 1e-9), targets)",
        "o = model(inputs); loss = (torch.logsumexp(o, 1) - o.gather(1, targets[:, None]).squeeze(1)).mean()",
        "loss = F.cross_entropy(model(inputs), targets, reduction='sum') / len(targets)",
        "loss = F.cross_entropy(model(inputs), targets, reduction='none').mean()",
        "loss = F.kl_div(F.log_softmax(model(inputs), 1), F.one_hot(targets, 2).float(), reduction='batchmean')",
        "loss = F.mse_loss(model(inputs)[:, 1], targets.float())",
        "loss = F.multi_margin_loss(model(inputs), targets)",
    ],
    "CLEAR": [
        "optimizer.zero_grad()",
        "model.zero_grad()",
        "optimizer.zero_grad(set_to_none=True)",
        "optimizer.zero_grad(set_to_none=False)",
        "for p in model.parameters(): p.grad = None",
        "for g in optimizer.param_groups:\n            for p in g['params']: p.grad = None",
        "[p.grad.zero_() for p in model.parameters() if p.grad is not None]",
        "for p in model.parameters():\n            if p.grad is not None: p.grad.detach_(); p.grad.zero_()",
        "nn.Module.zero_grad(model)",
        "for m in model.children(): m.zero_grad()",
        "map_ = list(map(lambda p: setattr(p, 'grad', None), model.parameters()))",
        "for n, p in model.named_parameters(): p.grad = None",
        "torch._foreach_zero_([p.grad for p in model.parameters() if p.grad is not None]) if epoch or losses else None",
        "for p in filter(lambda p: p.grad is not None, model.parameters()): p.grad.zero_()",
        "opts = [optimizer]\n        for o in opts: o.zero_grad()",
    ],
    "CLIP": [
        "pass",
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)",
        "norm = nn.utils.clip_grad_norm_(model.parameters(), float('inf'))",
        "for p in model.parameters(): p.grad.data.clamp_(-1, 1)",
        "nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], max_norm=5, norm_type=2)",
        "for g in optimizer.param_groups: nn.utils.clip_grad_norm_(g['params'], 1.0)",
    ],
    "STEP": [
        "optimizer.step()",
        "[o.step() for o in [optimizer]]",
        "type(optimizer).step(optimizer)",
        "getattr(optimizer, 'step')()",
        "step = optimizer.step; step()",
        "if math.isfinite(loss.item()): optimizer.step()",
        "optimizer.step(None)",
    ],
    "RUNNING": [
        "running += loss.item() * len(targets)",
        "running += float(loss) * len(targets)",
        "losses.append(loss.item())",
        "losses.append(loss.detach())",
        "losses.append(loss.data.clone())",
        "losses.append(loss.detach().cpu().numpy())",
        "losses += [loss.tolist()]",
        "running += loss.detach().cpu().item()",
        "losses.append(float(loss.cpu().detach()))",
        "running = running + loss.data * len(targets)",
        "running += loss.detach_().item()",
        "losses.append(copy.copy(loss.item()))",
        "with torch.no_grad(): running += loss * len(targets)",
        "running = 0.9 * running + 0.1 * loss.item()",
        "losses.append({'loss': loss.item(), 'epoch': epoch})",
        "losses.append(np.asarray(loss.data))",
    ],
    "SAVE": [
        "state = copy.deepcopy(model.state_dict())",
        "state = {k: v.clone() for k, v in model.state_dict().items()}",
        "state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}",
        "state = copy.deepcopy(model).state_dict()",
        "buf = io.BytesIO(); torch.save(model.state_dict(), buf); buf.seek(0); state = torch.load(buf)",
        "state = OrderedDict((k, v.clone()) for k, v in model.state_dict().items())",
        "keep = copy.deepcopy(model); state = keep.state_dict()",
        "state = OrderedDict(); [state.update({k: v.clone()}) for k, v in model.state_dict().items()]",
        "state = {k: torch.clone(v) for k, v in model.state_dict().items()}",
        "state = {k: v.numpy().copy() for k, v in model.state_dict().items()}; state = {k: torch.from_numpy(np.array(v)) for k, v in state.items()}",
        "state = dict(epoch=epoch, model=copy.deepcopy(model.state_dict()))['model']",
        "state = {k: v + 0 for k, v in model.state_dict().items()}",
        "state = {k: torch.tensor(v.tolist()) for k, v in model.state_dict().items()}",
    ],
    "LOAD": [
        "model.load_state_dict(state)",
        "model.load_state_dict(state, strict=True)",
        "new = Net(); new.load_state_dict(state)",
    ],
}

ACCUMULATES = """
import copy, math, os, tempfile
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import lr_scheduler as L
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(200, 6)
y = x.sum(1, keepdim=True)
EPOCHS, ACC = 2, 4
loader = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=16)
path = os.path.join(tempfile.mkdtemp(), "last.pt")
updates = EPOCHS * len(loader) // ACC
class Mean:
    def __init__(self): self.s = self.n = 0
    def add(self, v, n): self.s += v * n; self.n += n
    def get(self): return self.s / self.n
def session(until):
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    sched = SCHED
    step = start = 0
    best = math.inf
    RESUME
    for epoch in range(start, until):
        model.train()
        opt.zero_grad()
        pile = 0.0
        for i, (a, b) in enumerate(loader):
            loss = F.mse_loss(model(a), b)
            BACKWARD
            step += 1
            if WINDOW:
                BEFORESTEP
                STEP
                PERUPDATE
                opt.zero_grad(); pile = 0.0
        model.eval()
        MEANINIT
        with torch.no_grad():
            for a, b in val:
                l = F.mse_loss(model(a), b)
                MEANADD
        score = MEANGET
        best = min(best, float(score))
        torch.save({'model': model.state_dict(), 'opt': opt.state_dict(), 'sched': sched.state_dict(), 'scaler': scaler.state_dict(), 'epoch': epoch + 1, 'step': step, 'best': best}, path)
    return best
session(1)
print(session(EPOCHS))
"""
IN_ACCUMULATES: dict[str, list[str]] = {
    "SCHED": [
        "L.CosineAnnealingLR(opt, T_max=updates)",
        "L.OneCycleLR(opt, 1e-2, total_steps=updates)",
        "L.LambdaLR(opt, lambda s: max(0.0, 1 - s / updates))",
        "L.LinearLR(opt, 1.0, 0.01, total_iters=updates)",
        "L.PolynomialLR(opt, total_iters=updates, power=2)",
        "L.SequentialLR(opt, [L.LinearLR(opt, 0.1, 1.0, 5), L.CosineAnnealingLR(opt, updates - 5)], [5])",
        "L.ExponentialLR(opt, 0.99)",
        "L.StepLR(opt, 10, 0.5)",
        "L.MultiStepLR(opt, [10, 20], 0.5)",
        "L.CosineAnnealingWarmRestarts(opt, T_0=10)",
        "L.ChainedScheduler([L.ConstantLR(opt, 0.5, 5), L.ExponentialLR(opt, 0.99)])",
        "L.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 5))",
        "L.CyclicLR(opt, 1e-3, 1e-2, step_size_up=10, cycle_momentum=False)",
        "L.OneCycleLR(opt, max_lr=1e-2, epochs=EPOCHS, steps_per_epoch=len(loader) // ACC)",
        "L.CosineAnnealingLR(opt, updates, eta_min=1e-5)",
    ],
    "PERUPDATE": [
        "sched.step()",
        "opt_lr = sched.get_last_lr(); sched.step()",
        "scale = scaler.get_scale(); sched.step()",
    ],
    "BACKWARD": [
        "(loss / ACC).backward()",
        "loss = loss / ACC; loss.backward()",
        "loss /= ACC; loss.backward()",
        "loss.backward(torch.tensor(1 / ACC))",
        "loss.backward(gradient=torch.tensor(0.25))",
        "loss.mul(0.25).backward()",
        "(loss * (1 / ACC)).backward()",
        "torch.div(loss, ACC).backward()",
        "torch.autograd.backward(loss / ACC)",
        "scaler.scale(loss / ACC).backward()",
        "scaled = loss / ACC; scaled.backward()",
        "torch.autograd.backward([loss], [torch.tensor(0.25)])",
        "F.mse_loss(model(a), b, reduction='sum').div(8 * ACC).backward()",
        "pile = pile + loss / ACC\n            if (i + 1) % ACC == 0: pile.backward()",
        "(loss / float(ACC)).backward()",
        "loss.div(ACC).backward()",
        "(0.25 * loss).backward()",
    ],
    "WINDOW": [
        "(i + 1) % ACC == 0",
        "i % ACC == ACC - 1",
        "not (i + 1) % ACC",
        "step % ACC == 0",
        "(i + 1) % ACC == 0 or i + 1 == len(loader)",
        "divmod(i + 1, ACC)[1] == 0",
        "i % ACC == 3",
        "(i + 1) in range(ACC, len(loader) + 1, ACC)",
        "math.fmod(i + 1, ACC) == 0",
    ],
    "BEFORESTEP": [
        "pass",
        "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "scaler.unscale_(opt); nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    ],
    "STEP": [
        "opt.step()",
        "scaler.step(opt); scaler.update()",
    ],
    "RESUME": [
        "if os.path.exists(path):\n        ck = torch.load(path)\n        model.load_state_dict(ck['model']); opt.load_state_dict(ck['opt']); sched.load_state_dict(ck['sched']); scaler.load_state_dict(ck['scaler'])\n        start, step, best = ck['epoch'], ck['step'], ck['best']",
        "if os.path.exists(path):\n        ck = torch.load(path, map_location='cpu', weights_only=True)\n        model.load_state_dict(ck['model']); opt.load_state_dict(ck['opt']); sched.load_state_dict(ck['sched']); scaler.load_state_dict(ck['scaler'])\n        start, step, best = ck['epoch'], ck['step'], ck['best']",
        "if os.path.exists(path):\n        ck = torch.load(path)\n        for k, v in {'model': model, 'opt': opt, 'sched': sched, 'scaler': scaler}.items(): v.load_state_dict(ck[k])\n        start = ck['epoch']; step = ck['step']; best = ck['best']",
        "try:\n        ck = torch.load(path)\n    except FileNotFoundError: pass\n    else:\n        model.load_state_dict(ck['model']); opt.load_state_dict(ck['opt']); sched.load_state_dict(ck['sched']); scaler.load_state_dict(ck['scaler']); start = ck.get('epoch', 0)",
        "ck = torch.load(path) if os.path.exists(path) else None\n    if ck:\n        [o.load_state_dict(ck[n]) for o, n in ((model, 'model'), (opt, 'opt'), (sched, 'sched'), (scaler, 'scaler'))]\n        start, step, best = (ck[k] for k in ('epoch', 'step', 'best'))",
    ],
}

MEANS = [
    ("s = 0.0; n = 0", "s += l.item() * len(a); n += len(a)", "s / n"),
    ("s = 0.0", "s += l.item() * a.size(0)", "s / len(val.dataset)"),
    ("ls, ws = [], []", "ls.append(l.item()); ws.append(len(a))", "np.average(ls, weights=ws)"),
    ("s = 0.0", "s += F.mse_loss(model(a), b, reduction='sum').item()", "s / 40"),
    ("e = []", "e.append((model(a) - b).squeeze(1) ** 2)", "torch.cat(e).mean().item()"),
    ("s = torch.zeros(1); n = 0", "s += l * a.shape[0]; n += a.shape[0]", "(s / n).item()"),
    (
        "o, t = [], []",
        "o.append(model(a)); t.append(b)",
        "F.mse_loss(torch.cat(o), torch.cat(t)).item()",
    ),
    (
        "o, t = [], []",
        "o += model(a).flatten().tolist(); t += b.flatten().tolist()",
        "np.mean((np.array(o) - np.array(t)) ** 2)",
    ),
    ("e = []", "e.extend(((model(a) - b) ** 2).flatten().tolist())", "sum(e) / len(e)"),
    ("s = n = 0", "n += len(a); s += (l.item() - s) * len(a) / n", "s"),
]
PROGRAMS = {"plain": (PLAIN, IN_PLAIN), "accumulates": (ACCUMULATES, IN_ACCUMULATES)}
LIVE = ("CLEAR", "BACKWARD")


def program(which: str, **chosen: str) -> str:
    text, slots = PROGRAMS[which]
    means = dict(zip(("MEANINIT", "MEANADD", "MEANGET"), MEANS[0], strict=True))
    for slot, way in {**{slot: ways[0] for slot, ways in slots.items()}, **means, **chosen}.items():
        text = text.replace(slot, way)
    return text


CASES = [
    (which, slot, way)
    for which, (_, slots) in PROGRAMS.items()
    for slot, ways in slots.items()
    for way in ways
]


@pytest.mark.parametrize(("which", "slot", "way"), CASES)
def test_nothing_is_found_in_source(which: str, slot: str, way: str) -> None:
    found = check_text(program(which, **{slot: way}), "train.py").findings
    assert [each.code for each in found if each.severity != "advice"] == []


@pytest.mark.parametrize(("begin", "add", "get"), MEANS)
def test_nothing_is_found_in_means(begin: str, add: str, get: str) -> None:
    text = program("accumulates", MEANINIT=begin, MEANADD=add, MEANGET=get)
    found = check_text(text, "train.py").findings
    assert [each.code for each in found if each.severity != "advice"] == []


@pytest.mark.parametrize(("which", "slot", "way"), [each for each in CASES if each[1] in LIVE])
def test_nothing_is_found_live(which: str, slot: str, way: str, tmp_path: Path) -> None:
    assert watched(program(which, **{slot: way}), tmp_path) == []
