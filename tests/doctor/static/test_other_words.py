"""Programs in unusual words: silent where they are right, found where they are not."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from trueloop.doctor.model.events import Backward, OptimizerStep
from trueloop.doctor.static import check_text
from trueloop.doctor.static.interpreter.syntax import parse

HEAD = """
import argparse
import functools
import sys
import time
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

"""
BY_NEXT = """
def main(data):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    for epoch in range(3):
        {begin}
        while True:
            {take}
            loss = F.mse_loss(model(x), y)
            {clear}
            loss.backward()
            getattr(optimizer, "step")()
"""
CLEARS = "getattr(optimizer, 'zero_grad')()"
STOPS = "try: x, y = next(rest)\n            except StopIteration: break"
NONE = "pair = next(rest, None)\n            if pair is None: break\n            x, y = pair"
WINDOWS = """
END = object()

def main(data):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rest = iter(enumerate(DataLoader(data, batch_size=8, shuffle=True)))
    while True:
        item = next(rest, END)
        if item is END:
            break
        number, (x, y) = item
        (F.mse_loss(model(x), y) / 4).backward()
        if (number + 1) % 4 == 0:
            {step}
            optimizer.zero_grad()
"""
LOGGED = """
def logged(batches, every):
    begun = time.time()
    for batch in batches:
        yield batch
        print(time.time() - begun)

class Logged:
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        for batch in self.batches:
            yield batch

def main(data, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x, y) in enumerate({loop}):
        loss = F.cross_entropy(model(x), y)
        ({loss}).backward()
        if (number + 1) % 8 == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
ORDERED = """
class Trainer:
    def fit(self):
        labels = torch.cat([torch.zeros(30), torch.ones(30)]).long()
        loader = DataLoader(TensorDataset(torch.rand(60, 16), labels), batch_size=10)
        model = nn.Linear(16, 16)
        optimizer = torch.optim.Adam(model.parameters())
        for self.number, ({taken}) in enumerate(loader):
            optimizer.zero_grad()
            F.mse_loss(model(self.x), {wanted}).backward()
            optimizer.step()

Trainer().fit()
"""
HEADS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(5, 10), nn.Linear(10, 2)

    def forward(self, x):
        inner = self.trunk(x)
        inner = torch.relu(inner)
        inner = F.dropout(inner, 0.1, self.training)
        return self.head(inner)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for task in range(3):
    net.head = nn.Linear(10, 2)
    {given}
    for _ in range(12):
        x = torch.randn(16, 5)
        optimizer.zero_grad()
        F.cross_entropy(net(x), (x[:, task] > 0).long()).backward()
        optimizer.step()
"""
TABLE = """
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = {{"total": 0.0}}
for epoch in range(9):
    for x in torch.randn(20, 8, 3):
        loss = F.mse_loss(model(x), x[:, :2])
        {first}
        losses["total"] = losses["total"] + loss
        optimizer.zero_grad()
        {whole}.backward()
        optimizer.step()
"""
WORKERS = """
import random

def silent(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call

class Noisy(Dataset):
    def __init__(self, rows):
        self.rows, self.draw = rows, random.Random(0)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index] + self.draw.random()

@silent
def reseed(number):
    {body}

def main(model, optimizer):
    loader = DataLoader(Noisy(torch.randn(64, 4)), batch_size=8, shuffle=True, num_workers=2,
                        worker_init_fn=reseed, persistent_workers={stay})
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
"""
RESEEDED = "info = torch.utils.data.get_worker_info(); info.dataset.draw.seed(info.seed)"
SCORE = """
def test(model, config, data):
    loader = DataLoader(data, batch_size=config["batch_size"])
    model.eval()
    total, hits = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            total += F.cross_entropy(out, y).item()
            hits += int((out.argmax(1) == y).sum())
    total /= len(loader.dataset)
    {end}
    return hits / len(loader.dataset)

samples = TensorDataset(torch.randn(64, 3), torch.zeros(64).long())
test(nn.Linear(3, 2), {{"batch_size": 16}}, samples)
"""
ROUNDS = """
def local(model, loader, number):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.97)
    {before}
    for epoch in range(5):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

loader = DataLoader(TensorDataset(torch.randn(64, 3), torch.zeros(64).long()), shuffle=True)
local(nn.Linear(3, 2), loader, 4)
"""
CASTS = """
def main(model, loader):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    half = torch.autocast("cuda", dtype=torch.{dtype}) if torch.cuda.is_available() else {other}
    for x, y in loader:
        with half:
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LAST_STATES = """
def main(loader):
    encoder, decoder = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 2)
    first = torch.optim.Adam(encoder.parameters())
    second = torch.optim.Adam(decoder.parameters())
    for x, y in loader:
        first.zero_grad()
        second.zero_grad()
        states, _ = encoder(x)
        context = torch.zeros(8, 1, 8)
        for j in range(8):
            for k in range(4, 0, -1):
                if x[j][k][0] != 0:
                    context[j][0] = {state}
                    break
        F.cross_entropy(decoder(context[:, 0]), y).backward()
        first.step()
        second.step()
"""
HOOKED = """
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
layers = dict(net.named_modules())
seen = []
part = {part}
part.register_forward_pre_hook(lambda module, given: seen.append(given[0].detach()))
for _ in range(10):
    out = net.forward(torch.randn(16, 4))
    optimizer.zero_grad()
    out.square().mean().backward()
    optimizer.step()
"""
RANKS = """
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=float, default={epochs})
args = parser.parse_args()

def main(model, data):
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = torch.utils.data.distributed.DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(int(args.epochs)):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

torch.distributed.init_process_group("gloo")
main(nn.Linear(3, 2), TensorDataset(torch.randn(64, 3), torch.zeros(64).long()))
"""
STATE = """
class State:
    def __init__(self):
        self.weights, self.epoch, self.best, self.seed, self.note = None, 0, 0.0, 0, ""

    def table(self):
        about = {{"epoch": self.epoch, "best": self.best, "seed": self.seed, "note": self.note}}
        return {{"weights": self.weights, "about": about, "version": 1}}

class Saver:
    def save(self, model, state, path):
        state.weights = model.state_dict()
        torch.save(state.table(), path)

def main(loader):
    model, state, saver = nn.Linear(3, 2), State(), Saver()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = 9.0
    for epoch in range(3):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {save}
        if loss.item() < best:
            best = loss.item()
            {save_best}
"""
PARTS = """
data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
parts = {{"net": nn.Linear(3, 1)}}
parts["optimizer"] = torch.optim.SGD(parts["net"].parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    parts["optimizer"].zero_grad()
    F.mse_loss(parts["net"](x), y).backward()
    parts["optimizer"].step()
    {again}
"""
TIMED = """
class Run:
    pass

run = Run()
loader = DataLoader(TensorDataset(torch.randn(64, 3)), batch_size=8, shuffle=True)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for run.number, (x,) in enumerate(loader):
    net(x).mean().backward()
    optimizer.step()
    if run.number == {last}:
        break
"""
SEEDED = """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

class {base}:
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)

class Deep({bases}):
    pass

plain, deep = Plain(), Deep()
for net in (plain, deep):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(9):
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
"""
STAGES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage_1 = [nn.Linear(3, 8), nn.ReLU()]
        self.stage_2 = [nn.Linear(8, 2)]
        {register}

    def forward(self, x):
        for layer in (*self.stage_1, *self.stage_2):
            x = layer(x)
        return x

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for x in torch.randn(20, 8, 3):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
"""
ALL_STAGES = """for name in list(self.__dict__):
            if name.startswith("stage_"):
                setattr(self, name, nn.Sequential(*getattr(self, name)))"""
REFUSED = """
parser = argparse.ArgumentParser()
parser.add_argument("--deep", action="store_true")
args = parser.parse_args()

class Net(nn.Module):
    def __init__(self, inputs, *, outputs=1):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.layer(x)

def fit(net, rows, epochs):
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(epochs):
        for x in rows:
            net(x).square().mean().backward()
            optimizer.step()

def main():
    net = {made}
    fit(net, torch.randn(20, 8, 3), {more})

main()
"""
SEARCH = """
class Manager:
    def __init__(self, net, config):
        self.net, self.config = net, config

    def total(self, loss, costs):
        if self.config.kind == "sum":
            return loss + costs
        elif self.config.kind == "product":
            raise NotImplementedError
        elif self.config.kind == "none":
            return loss
        else:
            raise ValueError(self.config.kind)

    def fit(self, loader):
        optimizer = torch.optim.Adam(self.net.parameters())
        for x, y in loader:
            loss = self.total(F.cross_entropy(self.net(x), y), self.net.cost())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
EPISODES = """
def evaluate(net, env, loader):
    net.eval()
    scores = []
    for episode in range(10):
        seen, done, score = env.reset(), False, 0.0
        for number in range(200):
            action = net(torch.as_tensor(seen)[None]).argmax(1).item()
            {act}
            score += reward
        scores.append(score)
    return sum(scores) / 10

def main(data, env):
    net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(net.parameters())
    loader = DataLoader(data, batch_size=8, shuffle=True)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        print(evaluate(net, env, loader))
"""
SEGMENTS = """
def main(songs, epochs):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batch_count = len(songs)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, epochs=epochs, steps_per_epoch=batch_count
    )
    for epoch in range(epochs):
        for number in range(batch_count):
            for part in songs[number].split(16):
                optimizer.zero_grad()
                net(part).square().mean().backward()
                optimizer.step()
            {batch}
        {epoch}
"""
BEST = """
import copy

def main(rows):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best, kept = 0.0, net.state_dict()
    for epoch in range(10):
        for x in rows:
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
        score = float(net(rows[0]).detach().mean())
        if score > best:
            best, kept = score, {kept}
    net.load_state_dict(kept)
"""
STARS = """
from torchvision.transforms.transforms import *
{star}

net = nn.Linear(3, 1)
optimizer = {optimizer}
for x in torch.randn(20, 8, 3):
    {around}
        net.zero_grad()
        net(x).square().mean().backward()
"""
NAMED = """
class Net(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.layer, self.scale = nn.Linear(3, 2), scale

    def forward(self, x):
        return self.scale(self.layer(x))

class Server:
    def __init__(self, model):
        self.net = model[0]
        if model[1] == "scaled":
            self.loss = nn.NLLLoss()
        else:
            self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, rows):
        for x, y in rows:
            self.optimizer.zero_grad()
            self.loss(self.net(x), y).backward()
            self.optimizer.step()

def find(model, rows):
    if model == "scaled":
        model = Net({scale}), model
    if model == "plain":
        model = Net(nn.Identity()), model
    Server(model).train(rows)
"""
RULES = """
class Plain(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {{"lr": lr}})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad, alpha=group["lr"])

def updated(net, x):
    net.zero_grad()
    net(x).square().mean().backward()
    {update}

def compared(rows):
    net = nn.Linear(3, 1)
    for x in rows:
        torch.manual_seed(0)
        {made}
        updated(net, x + torch.randn(8, 3))

compared(torch.load("rows.pt"))
"""
MICRO = """
class Window:
    def __init__(self, net, optimizer, batches):
        self.net, self.optimizer, self.batches = net, optimizer, batches

    def part(self):
        x, y = next(self.batches)
        loss = F.mse_loss(self.net(x), y){over}
        loss.backward()
        return loss.item()

    def update(self):
        self.optimizer.zero_grad()
        losses = [self.part() for _ in range(4)]
        self.optimizer.step()
        return sum(losses)

def endless(x, y):
    while True:
        for rows in torch.randperm(len(x)).split(16):
            yield x[rows], y[rows]

teacher = nn.Linear(3, 1).requires_grad_(False)
x = torch.randn(640, 3)
net = nn.Linear(3, 1)
window = Window(net, torch.optim.SGD(net.parameters(), lr=0.1), endless(x, teacher(x)))
for number in range(200):
    window.update()
"""
FOLDS = """
def fit(net, optimizer, x, y, rows):
    net.train()
    for part in rows[torch.randperm(len(rows))].split(16):
        optimizer.zero_grad()
        F.cross_entropy(net(x[part]), y[part]).backward()
        optimizer.step()

@torch.no_grad()
def held_out(net, x, y, rows):
    {mode}
    return sum(F.cross_entropy(net(x[part]), y[part]).item() for part in rows.split(16))

x, y = torch.randn(300, 3), torch.randint(2, (300,))
for rows in torch.randperm(300).chunk(3):
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(5):
        fit(net, optimizer, x, y, rows[20:])
        print(held_out(net, x, y, rows[:20]))
"""
TWO_PHASES = """
def main(rows, others):
    net, judge = nn.Linear(3, 1).cuda(), nn.Linear(3, 1).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler()
    for x in rows:
        with torch.autocast("cuda", torch.float16):
            loss = net(x).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    scaler.scale(net(rows[0]).square().mean()).backward()
    for x in others:
        optimizer.zero_grad()
        {loss}.backward()
        optimizer.step()
"""
CHOSEN = """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)

class Padded(Plain):
    def forward(self, x, lengths):
        return F.log_softmax(super().forward(x), dim=1)

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="padded")
args = parser.parse_args()
if args.model == "plain":
    net = Plain()
elif args.model == "padded":
    net = Padded()
else:
    raise NotImplementedError
loss = nn.NLLLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, lengths, y in DataLoader(torch.load("rows.pt"), batch_size=8, shuffle=True):
    optimizer.zero_grad()
    loss(net({given}), y).backward()
    optimizer.step()
"""
NAMES = """
def output(nets, x):
    for name in ("inner", "outer"):
        x = nets[name](x)
    return x

def valid(nets, loader):
    for net in nets.values():
        net.eval()
    with torch.no_grad():
        return sum(F.mse_loss(output(nets, x), y).item() for x, y in loader)

parser = argparse.ArgumentParser()
parser.add_argument("--trained", nargs="+")
trained = parser.parse_args().trained
nets = dict(inner=nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.2)), outer=nn.Linear(3, 1))
weights = [weight for net in nets.values() for weight in net.parameters()]
optimizer = torch.optim.SGD(weights, lr=0.1)
data = TensorDataset(torch.randn(90, 3), torch.randn(90, 1))
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=9, shuffle=True):
        optimizer.zero_grad()
        F.mse_loss(output(nets, x), y).backward()
        optimizer.step()
    print(valid(nets, DataLoader(data, batch_size=9)))
    for name in trained:
        {wake}
"""
LAYERS = """
import numpy as np
import importlib

layers = importlib.import_module(sys.argv[1])
x = np.random.randn(128, 2)
net = layers.Net([2, 16, 2])
loss = layers.Loss()
optimizer = layers.SGD(net.layers, lr=0.1)
for number in range(80):
    loss.forward(net.forward(x), x)
    {backward}
    optimizer.step()
"""
PLANNED = """
import pytorch_lightning as pl
from transformers import get_constant_schedule_with_warmup

class Net(pl.LightningModule):
    def __init__(self, args):
        super().__init__()
        self.scheduled, self.steps = args["scheduled"], args["steps"]
        self.layer = nn.Linear(3, 2)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.layer(x), y)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-4)
        schedule = get_constant_schedule_with_warmup(optimizer, num_warmup_steps=self.steps)
        if self.scheduled:
            return {returned}
        else:
            return optimizer
"""
INNER = """
from torchmeta.utils.gradient_based import gradient_update_parameters

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 9), nn.ReLU(), nn.Linear(9, 2))

    def forward(self, x, weights=None):
        return self.layers(x) if weights is None else F.linear(x, *weights)

def tested(net, x, y, a, b):
    net.eval()
    loss = F.cross_entropy(net(x), y)
    weights = {adapt}
    return F.cross_entropy(net(a, weights), b).item()

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(3):
    net.train()
    for x, y in DataLoader(torch.load("train.pt"), shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    for x, y, a, b in DataLoader(torch.load("test.pt")):
        print(tested(net, x, y, a, b))
"""
GROWN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3)

    def forward(self, x):
        return self.last({grow}(self.layer(x)))

net = Net()
optimizer = torch.optim.Adam(net.parameters())
for x, y in DataLoader(torch.load("train.pt"), shuffle=True):
    optimizer.zero_grad()
    F.l1_loss(net(x), y).backward()
    optimizer.step()
"""
NAMED_PARTS = """
from typing import NamedTuple

class Parts(NamedTuple):
    net: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler

def build(rate):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    return Parts(net, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9))

class Learner:
    def __init__(self, parts):
        self.net, self.optimizer, self.schedule = parts

    def learn(self, batches):
        for epoch in range(8):
            for x, y in batches:
                self.optimizer.zero_grad()
                F.mse_loss(self.net(x), y).backward()
                self.optimizer.step()
            {epoch}

Learner(build(0.1)).learn(DataLoader(torch.load("train.pt"), batch_size=8, shuffle=True))
"""
ACTIONS = """
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
after = {order}
for epoch in range(3):
    for x, y in DataLoader(torch.load("train.pt"), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        for act in after:
            act()
"""
SCORES = """
SCORES = dict(loss=F.mse_loss, error=F.l1_loss)
net = nn.Sequential(nn.Linear(3, 9), nn.ReLU(), nn.Linear(9, 1))
optimizer = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(640, 3), torch.randn(640, 1))
rows = TensorDataset(torch.randn({rows}, 3), torch.randn({rows}, 1))

@torch.no_grad()
def scores(loader):
    net.eval()
    totals = dict.fromkeys(SCORES, 0.0)
    for x, y in loader:
        for name, score in SCORES.items():
            totals[name] += score(net(x), y).item()
    return {{name: total / len(loader) for name, total in totals.items()}}

for epoch in range(3):
    net.train()
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
    print(scores(DataLoader(rows, batch_size=64)))
"""
GATES = """
def search(net, optimizer, batches):
    for x, y in batches:
        for part in net.parts:
            {clear}
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
"""
RESUMED = """
def build(states, epoch):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if states is not None:
        net.load_state_dict(states["net"])
        optimizer.load_state_dict(states["optimizer"])
    return net, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR({given})

states = torch.load("last.pt")
epoch = states["epoch"]
net, optimizer, schedule = build(states, epoch)
while epoch < 60:
    for x, y in DataLoader(torch.load("train.pt"), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
    schedule.step()
    epoch += 1
    torch.save(
        dict(net=net.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch), "last.pt"
    )
"""
SHARES = """
from torch.utils.data import DistributedSampler, RandomSampler

net = nn.Linear(3, 1)
data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, sampler={sampler})
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(3):
    shares = hasattr(loader.sampler, "set_epoch")
    if shares:
        loader.sampler.set_epoch(epoch)
    for x, y in loader:
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        if shares:
            optimizer.zero_grad()
"""
PAIRS = [
    ("TL606", NAMED_PARTS, {"epoch": "self.schedule.step()"}, {"epoch": "print(epoch)"}),
    (
        "TL801", RESUMED,
        {"given": "optimizer, 60, 0.001, epoch - 1"},
        {"given": "optimizer, 60, 0.001"},
    ),
    ("TL709", SCORES, {"rows": "128"}, {"rows": "130"}),
    ("TL102", GATES, {"clear": "part.gate.grad.data.zero_()"}, {"clear": "print(part.gate)"}),
    (
        "TL102", SHARES,
        {"sampler": "DistributedSampler(data, num_replicas=2, rank=0)"},
        {"sampler": "RandomSampler(data)"},
    ),
    (
        "TL606", PLANNED,
        {"returned": '[optimizer], [dict(scheduler=schedule, interval="step", frequency=1)]'},
        {"returned": "[optimizer]"},
    ),
    (
        "TL203", INNER,
        {"adapt": "gradient_update_parameters(net, loss, step_size=0.4)"},
        {"adapt": "print(loss.item())"},
    ),
    (
        "TL308", GROWN,
        {"grow": "nn.UpsamplingBilinear2d(scale_factor=2)"},
        {"grow": "nn.ConvTranspose2d(3, 3, 2, 2)"},
    ),
    ("TL201", NAMES, {"wake": "nets[name].train()"}, {"wake": "print(name)"}),
    (
        "TL102", LAYERS,
        {"backward": "grad = loss.backward()\n    net.backward(grad)"},
        {"backward": "loss.backward()"},
    ),
    ("TL403", CHOSEN, {"given": "x, lengths"}, {"given": "x"}),
    (
        "TL503", TWO_PHASES,
        {"loss": "judge(x).square().mean()"},
        {"loss": "scaler.scale(net(x).square().mean())"},
    ),
    ("TL505", MICRO, {"over": " / 4"}, {"over": ""}),
    ("TL202", FOLDS, {"mode": "net.eval()"}, {"mode": "print(len(rows))"}),
    (
        "TL712", RULES,
        {"made": "net = nn.Linear(3, 1)", "update": "Plain(net.parameters(), 0.1).step()"},
        {"made": "print(x)", "update": "for p in net.parameters(): p.data -= 0.1 * p.grad"},
    ),
    (
        "TL403", NAMED,
        {"scale": "nn.LogSoftmax(dim=1)"},
        {"scale": "nn.Identity()"},
    ),
    (
        "TL603", SEGMENTS,
        {"batch": "schedule.step()", "epoch": "print(epoch)"},
        {"batch": "print(number)", "epoch": "schedule.step()"},
    ),
    (
        "TL805", BEST,
        {"kept": "copy.deepcopy(net.state_dict())"},
        {"kept": "net.state_dict()"},
    ),
    (
        "TL106", STARS,
        {
            "star": "from easydl import *",
            "optimizer": "Scheduled(torch.optim.SGD(net.parameters(), lr=0.1), print)",
            "around": "with Stepped([optimizer]):",
        },
        {
            "star": "from math import *",
            "optimizer": "torch.optim.SGD(net.parameters(), lr=0.1)",
            "around": "with torch.enable_grad():",
        },
    ),
    (
        "TL203", EPISODES,
        {"act": "seen, reward, done, _ = env.step(action)"},
        {"act": "seen, reward, done = next(env)"},
    ),
    (
        "TL102", BY_NEXT,
        {"begin": "rest = iter(loader)", "take": STOPS, "clear": CLEARS},
        {"begin": "rest = iter(loader)", "take": STOPS, "clear": "pass"},
    ),
    (
        "TL102", BY_NEXT,
        {"begin": "rest = iter(loader); print(rest)", "take": NONE, "clear": "model.zero_grad()"},
        {"begin": "rest = iter(loader); print(rest)", "take": NONE, "clear": "print(loss)"},
    ),
    ("TL106", WINDOWS, {"step": "optimizer.step()"}, {"step": "print(number)"}),
    (
        "TL505", LOGGED,
        {"loop": "logged(DataLoader(data, 8), 10)", "loss": "loss / 8"},
        {"loop": "logged(DataLoader(data, 8), 10)", "loss": "loss"},
    ),
    (
        "TL505", LOGGED,
        {"loop": "Logged(DataLoader(data, 8))", "loss": "loss / 8"},
        {"loop": "Logged(DataLoader(data, 8))", "loss": "loss"},
    ),
    (
        "TL703", ORDERED,
        {"taken": "self.x, _", "wanted": "self.x"},
        {"taken": "self.x, self.y", "wanted": "self.y[:, None].float()"},
    ),
    (
        "TL301", HEADS,
        {"given": "optimizer.param_groups[0]['params'] = list(net.parameters())"},
        {"given": "print(task)"},
    ),
    (
        "TL204", TABLE,
        {"first": 'losses["total"] = loss.square()', "whole": 'losses["total"]'},
        {"first": "pass", "whole": "loss"},
    ),
    ("TL701", WORKERS, {"body": RESEEDED, "stay": "False"}, {"body": "print(1)", "stay": "False"}),
    ("TL701", WORKERS, {"body": "print(1)", "stay": "True"}, {"body": "print(1)", "stay": "False"}),
    ("TL720", SCORE, {"end": "print(hits)"}, {"end": "print(total)"}),
    ("TL720", SCORE, {"end": 'print(total * config["batch_size"])'}, {"end": "print(total)"}),
    (
        "TL606", ROUNDS,
        {"before": "schedule.step(number - 1)"},
        {"before": "schedule.step()"},
    ),
    (
        "TL504", CASTS,
        {"dtype": "bfloat16", "other": "torch.autocast('cuda')"},
        {"dtype": "float16", "other": "torch.autocast('cuda')"},
    ),
    ("TL108", LAST_STATES, {"state": "states[j][k]"}, {"state": "states[j][k].detach()"}),
    ("TL205", HOOKED, {"part": "layers[sys.argv[1]]"}, {"part": "net"}),
    (
        "TL805", STATE,
        {"save": 'saver.save(model, state, "latest.pt")',
         "save_best": 'saver.save(model, state, "best.pt")'},
        {"save": "state.weights = state.weights or model.state_dict()",
         "save_best": 'torch.save(state.table(), "best.pt")'},
    ),
    (
        "TL109", PARTS,
        {"again": 'parts["optimizer"].zero_grad()'},
        {"again": 'parts["optimizer"].step()'},
    ),
    ("TL102", TIMED, {"last": "3"}, {"last": "len(loader)"}),
    (
        "TL806", SEEDED,
        {"base": "Base(nn.Module)", "bases": "Base"},
        {"base": "Base", "bases": "Base"},
    ),
    ("TL303", STAGES, {"register": ALL_STAGES}, {"register": "print(self.__dict__)"}),
    ("TL102", REFUSED, {"made": "Net(3, depth=2)", "more": "9"}, {"made": "Net(3)", "more": "9"}),
    ("TL102", REFUSED, {"made": "Net(3, 1)", "more": "9"}, {"made": "Net(inputs=3)", "more": "9"}),
    (
        "TL102", REFUSED,
        {"made": "Net(outputs=2)", "more": "9"},
        {"made": "Net(4, depth=2) if args.deep else Net(3, outputs=2)", "more": "9"},
    ),
    ("TL102", REFUSED, {"made": "Net(3)", "more": "9, 2"}, {"made": "Net(3)", "more": "epochs=9"}),
    ("TL704", RANKS, {"epochs": "1.0"}, {"epochs": "3.0"}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "program", "right", "wrong"), PAIRS)
def test_only_the_fault_is_found(code, program, right, wrong):
    def warned(changes):
        found = check_text(HEAD + program.format(**changes), "train.py").findings
        return {each.code for each in found if each.severity != "advice"}

    assert code not in warned(right)
    assert code in warned(wrong)


def test_a_loop_that_begins_its_iterator_again_stays_as_it_is():
    loop = BY_NEXT.format(begin="rest = iter(loader)", take=STOPS, clear="{}")
    plain, again = loop.format("pass"), loop.format("rest = iter(loader)")
    assert "while" not in ast.unparse(parse(plain))
    assert "while" in ast.unparse(parse(again))
    assert "getattr" not in ast.unparse(parse(plain))
    other = BY_NEXT.format(begin="pass", take=NONE.replace("is None", "is END"), clear="pass")
    assert "while" in ast.unparse(parse(other))  # it ends at something else


@pytest.mark.parametrize("mark", ["None", "END"])
def test_loops_that_end_at_a_mark(mark):
    taken = NONE.replace("None", mark)
    until = BY_NEXT.format(begin="rest = iter(loader)", take=taken, clear="pass")
    asked = f"while (pair := next(rest, {mark})) is not {mark}"
    first = "if True: x, y = pair"
    while_not = until.replace("while True", asked).replace(taken, first)
    for each in (until, while_not):
        assert "for pair in loader:" in ast.unparse(parse(each))
        found = check_text(HEAD + "END = object()\n" + each, "train.py").findings
        assert [finding.code for finding in found] == ["TL102"]
    other = until.replace(f"is {mark}", "is OTHER")
    assert "while" in ast.unparse(parse(other))


def test_whatever_branch_is_taken_the_function_has_a_value():
    heard = Counter()
    check_text(HEAD + SEARCH, "train.py", listen=lambda event: heard.update([type(event)]))
    assert heard[OptimizerStep] == heard[Backward] > 3  # in runs with all options and without


def test_the_call_that_ends_the_program_is_named():
    program = HEAD + REFUSED.format(made="Net(3, depth=2)", more="9")
    unread = check_text(program, "/train.py").gaps.unread_file("/train.py")
    assert unread is not None
    assert unread.function == "main"
    line = program.splitlines().index("    net = Net(3, depth=2)") + 1
    assert unread.line == line
    ends = f"the program ends in `main` (line {line}): `Net` does not take these arguments"
    assert unread.message == f"not read to its end: {ends}"


def test_a_call_that_fails_with_an_option_only_ends_nothing():
    made = "Net(4, depth=2) if args.deep else Net(3, outputs=2)"
    gaps = check_text(HEAD + REFUSED.format(made=made, more="9"), "/train.py").gaps
    assert gaps.unread_file("/train.py") is None


def test_a_function_that_nobody_calls_may_end_as_well():
    program = HEAD + REFUSED.format(made="Net(3, depth=2)", more="9").replace("\nmain()\n", "")
    report = check_text(program, "/train.py")
    assert [each[1] for each in report.gaps.refused] == ["`Net` does not take these arguments"]
    assert {each.code for each in report.findings} == {"TL102"}  # in `fit`, which is right to call


@pytest.mark.parametrize(
    "constructor",
    [
        "class Deep(Net):\n    def __init__(self, rows):\n        super(Net, self).__init__()\n"
        "        self.layer = nn.Linear(3, 1)\n\ndef made():\n    return Deep(3)",
        "def made(**options):\n    return Net(3, **options)",
        "def made(*sizes):\n    return Net(*sizes or (3,))",
        "def made():\n    try:\n        return Net(3, 1)\n    except TypeError:\n"
        "        return Net(3)",
    ],
)
def test_calls_that_may_succeed(constructor):
    program = REFUSED.format(made="made()", more="9").replace(
        "def main", f"{constructor}\n\ndef main"
    )
    report = check_text(HEAD + program, "/train.py")
    assert not report.gaps.refused
    assert "TL102" in {each.code for each in report.findings}


UNPACKED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x, whole=False):
        mean, spread = self.mean(x), self.spread(x)
        {returns}

def main():
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for x in torch.randn(20, 8, 3):
        {unpacks}
        (mean - x).square().mean().backward()
        optimizer.step()

main()
"""
THREE = "return mean + spread, mean, spread"


@pytest.mark.parametrize(
    ("returns", "unpacks", "ends"),
    [
        (THREE, "drawn, mean = net(x)", True),
        (f"if whole:\n            return mean, x, x, spread\n        {THREE}",
         "drawn, mean = net(x, x.sum() > 0)", True),
        (THREE, "drawn, mean, spread = net(x)", False),
        (THREE, "*rest, mean = net(x)", False),
        (f"if whole:\n            return mean, spread\n        {THREE}",
         "mean, spread = net(x, x.sum() > 0)", False),
        ("values = [mean, spread]\n        return (*values, mean)", "drawn, mean = net(x)", False),
        (THREE, "try: drawn, mean = net(x)\n        except ValueError: mean = net(x)[1]", False),
    ],
)  # fmt: skip
def test_more_values_than_names_end_the_program(returns, unpacks, ends):
    program = HEAD + UNPACKED.format(returns=returns, unpacks=unpacks)
    report = check_text(program, "/train.py")
    assert [each.code for each in report.findings] == ([] if ends else ["TL102"])
    assert len(report.gaps.refused) == ends
    if ends:
        values = "3 values" if "whole:" not in returns else "3 or 4 values"
        why = f"`forward` returns {values}, which are unpacked into 2 names"
        assert report.gaps.refused[0][1] == why


def test_a_notebook_goes_on_after_a_cell_that_fails():
    program = HEAD + UNPACKED.format(returns=THREE, unpacks="drawn, mean = net(x)")
    refused = HEAD + REFUSED.format(made="Net(3, depth=2)", more="9")
    for text in (program, refused):
        assert check_text(text, "/train.py").gaps.refused
        report = check_text(text, "/train.ipynb")
        assert not report.gaps.refused
        assert [each.code for each in report.findings] == ["TL102"]


@pytest.mark.parametrize(
    ("order", "codes"),
    [("[optimizer.step, schedule.step]", []), ("[schedule.step, optimizer.step]", ["TL601"])],
)
def test_the_order_of_a_list_of_actions(order, codes):
    report = check_text(HEAD + ACTIONS.format(order=order), "/train.py")
    assert [each.code for each in report.findings] == codes


def test_a_constructor_behind_a_decorator_that_is_not_known():
    program = (
        HEAD
        + """
from helpers import remembers

class Net(nn.Module):
    @remembers
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(3, width)

net = Net(2)
torch.manual_seed(0)
"""
    )
    assert not check_text(program, "/train.py").gaps.faults
