"""False alarms that public programs showed, each beside a program in which the fault is real."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F

"""
MOVED = """
class Layer(nn.Module):
    def __init__(self, size, device):
        super().__init__()
        self.weight = nn.Parameter({made}).to({to})

    def forward(self, x):
        return x @ self.weight

def main(loader):
    layer = Layer(3, "cuda")
    optimizer = torch.optim.Adam(layer.parameters())
"""
META = """
class Meta:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model, optimizer, loader

    def fit(self):
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.inner(batch)
            loss.backward()
            {first}
            self.optimizer.step()
            {last}

    def inner(self, batch):
        x, y = batch
        {clear}
        loss = F.cross_entropy(self.model(x), y)
        weights = torch.autograd.grad(loss, self.model.parameters(), create_graph=True)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        return loss + sum(each.norm() for each in weights)
"""
GAN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.joint = nn.Linear(3, 3), nn.Linear(3, 1)

class Pipeline:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.Adam(model.joint.parameters())

    def run(self):
        for x, y in self.loader:
            {clear}
            loss = F.mse_loss(self.model.discriminator(x), y)
            loss.backward()
            self.optimizer.step()

def main(loader):
    Pipeline(Net(), loader).run()
"""
WRAPPED = """
model = nn.Linear(3, 1)

def train(loader):
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        {step}

optimizer = torch.optim.Adam(model.parameters())
optimizer = nn.DataParallel(optimizer)
for epoch in range(10):
    train(torch.utils.data.DataLoader(Samples(), batch_size=8, shuffle=True))
"""
FROZEN = """
def make():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Dropout(0.1), nn.Flatten())
    for module in filter(lambda m: type(m) == nn.BatchNorm2d, model.modules()):
        {freeze}
    return model

def embed(model, loader):
    was = model.training
    model.eval()
    with torch.no_grad():
        found = [model(x) for x, _ in loader]
    {restore}
    return found

def main(loader, val_loader):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    embed(model, val_loader)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        embed(model, val_loader)
"""
AVERAGE = """
class Average:
    def update(self, value):
        try:
            self.average = 0.9 * self.average + 0.1 * value
        except AttributeError:
            self.average = value

class Fit:
    def __init__(self, loader):
        self.net, self.loader = nn.Linear(3, 1), loader
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.average = Average()

    def run(self, epochs):
        for epoch in range(epochs):
            {meter}
            for x, y in self.loader:
                loss = F.mse_loss(self.net(x), y)
                meter.update(loss)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

Fit(torch.utils.data.DataLoader(Samples(), batch_size=8, shuffle=True)).run(10)
"""
SNAPSHOT = """
def main(loader, val_loader, device):
    model = nn.Linear(3, 1).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    best = None
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            score = sum(F.mse_loss(model(x), y).item() for x, y in val_loader)
        if best is None or score < lowest:
            {keep}
            lowest = score
    model.load_state_dict(best)
"""
EPISODES = """
class Method(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))

    def forward(self, x):
        found = self.layers(x)
        return found.square().mean(), found

def test(model, method, loader):
    model.eval()
    method.eval()
    for x, y in loader:
        loss, scores = method({given})
        print(scores.argmax(1))

def main(args, loader, test_loader):
    method = {method}
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam({trained}.parameters())
    model.train()
    method.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss, scores = method({given})
        loss.backward()
        optimizer.step()
        test(model, method, test_loader)
"""
PREDICTOR = """
class Method:
    def __init__(self):
        self.predictor = nn.Sequential(nn.Linear(3, 9), nn.Dropout(0.1), nn.Linear(9, 3))
        self.optimizer = torch.optim.Adam(self.predictor.parameters())

    def improve(self, x, x_eval):
        for step in range(5):
            self.predictor.train()
            self.optimizer.zero_grad()
            F.mse_loss(self.predictor(x), x).backward()
            self.optimizer.step()
        self.predictor.eval()
        loss = torch.zeros(())
        for step in range(self.eval_steps):
            loss = loss + F.mse_loss(self.predictor(x_eval), x_eval).clamp(max=5)
        return {returned}
"""
PARTS = """
class Method:
    def __init__(self):
        self.predictor = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1), nn.Linear(3, 3))
        self.optimizer = torch.optim.Adam(self.predictor.parameters())

    def {method}(self, batch):
        z_train, z_eval = batch
        self.optimizer.zero_grad()
        F.mse_loss(self.predictor(z_train), z_train).backward()
        self.optimizer.step()
        with torch.no_grad():
            found = self.predictor(z_eval)
        return F.mse_loss(found, z_eval)
"""
PROBE = """
class Fit:
    def __init__(self, settings):
        self.settings = settings
        self.net, self.probe = nn.Linear(3, 3), nn.Linear(3, 3)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.probe_optimizer = torch.optim.Adam(self.probe.parameters())

    def run(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            self.probe_optimizer.zero_grad()
            codes = self.net(x)
            loss = 0
            if self.settings.weight > 0:
                {more}
            loss = loss + F.cross_entropy(self.probe(codes.detach()), y)
            loss.backward()
            self.optimizer.step()
            self.probe_optimizer.step()
"""
MODE = """
from elsewhere import inference

def evaluate(model, loader):
    found = 0
    with {context}:
        for x, y in loader:
            found += (model(x).argmax(1) == y).sum().item()
    return found

model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
train_loader, val_loader = torch.load("loaders.pt")
for epoch in range(10):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(evaluate(model, val_loader))
"""
SHARPNESS = """
from elsewhere import sharpness

def train(model, loader):
    optimizer = {optimizer}
    for x, y in loader:
        def closure():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss
        optimizer.step(closure)

train(nn.Linear(4, 3), torch.load("loader.pt"))
"""
ENGINE = """
from elsewhere import Scaled

model = nn.Linear(4, 3)
scaler = torch.amp.GradScaler("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
optimizer = {optimizer}
for x, y in torch.load("loader.pt"):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    optimizer.step()
    scaler.update()
"""
BY_HAND = """
from elsewhere import descend

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in torch.load("loader.pt"):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    {update}
"""
WINDOW = """
from elsewhere import weighed

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i, (x, y) in enumerate(torch.load("loader.pt")):
    loss = F.cross_entropy(model(x), y)
    {loss}.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
NUMBERS = """
from elsewhere import cost

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
running = torch.zeros(())
for epoch in range(10):
    for x, y in torch.load("loader.pt"):
        optimizer.zero_grad()
        loss = cost(model(x), y)
        loss.backward()
        optimizer.step()
        running += {added}
"""
HEAD_LAYER = """
from elsewhere import make_head

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(4, 8), nn.Linear(8, 100)

    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))

net = Net()
for p in net.parameters():
    p.requires_grad = False
{replace}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in torch.load("loader.pt"):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
"""
SECONDS = """
from elsewhere import clock

class Timed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        out = self.layers(x)
        return out, {second}

net = Timed()
optimizer = torch.optim.Adam(net.parameters())
times = []
for x, y in torch.load("loader.pt"):
    predicted, seconds = net(x)
    loss = F.mse_loss(predicted, y)
    times.append(seconds)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
"""
PAIRS = [
    (
        "TL307", MOVED,
        {"made": "torch.empty(size, size, device=device)", "to": "device"},
        {"made": "torch.empty(size, size)", "to": "device"},
    ),
    (
        "TL307", MOVED,
        {"made": "torch.empty(size, size).to(device)", "to": "device"},
        {"made": "torch.empty(size, size).to('cpu')", "to": "device"},
    ),
    (
        "TL105", META,
        {"first": "pass", "last": "pass", "clear": "self.model.zero_grad()"},
        {
            "first": "pass", "clear": "pass",
            "last": "nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)",
        },
    ),
    (
        "TL102", GAN,
        {"clear": "self.model.discriminator.zero_grad()"},
        {"clear": "self.model.discriminator.train()"},
    ),
    (
        "TL106", WRAPPED,
        {"step": "optimizer.module.step()"},
        {"step": "optimizer.module.state_dict()"},
    ),
    (
        "TL201", FROZEN,
        {"freeze": "module.train = lambda mode: None", "restore": "model.train(was)"},
        {"freeze": "module.momentum = 0.2", "restore": "pass"},
    ),
    (
        "TL805", SNAPSHOT,
        {"keep": "best = model.cpu().state_dict(); model.to(device)"},
        {"keep": "best = model.to(device).state_dict()"},
    ),
    (
        "TL203", EPISODES,
        {"method": "all_methods[args.method](args=args)", "trained": "model",
         "given": "x_s=x, model=model"},
        {"method": "Method()", "trained": "method", "given": "x"},
    ),
    ("TL203", PREDICTOR, {"returned": "loss"}, {"returned": "loss.item()"}),
    ("TL202", MODE, {"context": "inference(model)"}, {"context": "inference()"}),
    (
        "TL102", SHARPNESS,
        {"optimizer": "sharpness(model.parameters())"},
        {"optimizer": "torch.optim.LBFGS(model.parameters())"},
    ),
    ("TL503", ENGINE, {"optimizer": "Scaled(optimizer, scaler)"}, {"optimizer": "optimizer"}),
    ("TL106", BY_HAND, {"update": "descend(model, 0.1)"}, {"update": "descend(x, 0.1)"}),
    ("TL505", WINDOW, {"loss": "weighed(loss)"}, {"loss": "loss"}),
    ("TL204", NUMBERS, {"added": "loss.detach()"}, {"added": "loss"}),
    ("TL204", NUMBERS, {"added": "loss.data"}, {"added": "2 * loss"}),
    ("TL309", HEAD_LAYER, {"replace": "net.fc = make_head(8, 2)"}, {"replace": ""}),
    ("TL204", SECONDS, {"second": "clock() - 5"}, {"second": "out.square()"}),
    ("TL108", PROBE, {"more": "loss = codes.square().mean()"}, {"more": "print(codes.std())"}),
    ("TL202", PARTS, {"method": "training_step"}, {"method": "evaluate"}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "program", "right", "wrong"), PAIRS)
def test_only_the_fault_is_found(code, program, right, wrong):
    silent = check_text(HEAD + program.format(**right), "train.py").findings
    assert code not in {each.code for each in silent}
    loud = check_text(HEAD + program.format(**wrong), "train.py").findings
    assert code in {each.code for each in loud}


@pytest.mark.parametrize(
    ("meter", "severity"),
    [("meter = Average()", "advice"), ("meter = self.average", "warning")],
)
def test_how_long_a_moving_average_lives(meter, severity):
    found = check_text(HEAD + AVERAGE.format(meter=meter), "train.py").findings
    assert [(each.code, each.severity) for each in found] == [("TL204", severity)]
