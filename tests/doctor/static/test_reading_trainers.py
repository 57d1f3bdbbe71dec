"""Trainers whose parts are read one by one: settings, methods that nobody is seen to call, counters
of micro-batches, programs that only predict."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

NET = """
import copy, json
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(8, 8), nn.Linear(8, 3)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.3)

    def forward(self, x):
        return self.out(self.drop(self.norm(self.hidden(x))))
"""
FITS = """
class Fit:
    def __init__(self, given=None):
        self.settings = Settings()
        {given}
        self.net = Net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def score(self, held_out):
        self.net.eval()
        with torch.no_grad():
            for x, y in held_out:
                print((self.net(x).argmax(1) == y).sum().item())

    def run(self, batches, held_out=None):
        {check}
        for _ in range(self.settings.rounds):
            self.net.train()
            for number, (x, y) in enumerate(batches):
                {awake}
                F.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                if self.settings.score_often and number % 50 == 0:
                    self.score(held_out)
"""
DATACLASS = "@dataclass\nclass Settings:\n    score_often: bool = False\n    rounds: int = 4\n"
PLAIN = (
    "class Settings:\n    def __init__(self):\n        self.score_often, self.rounds = False, 4\n"
)
READS = "    def read(self, path):\n        with open(path) as file:\n            "
NAMED = "    def take(self, given):\n        for name in given:\n            "


def fits(settings: str, given: str = "pass", check: str = "pass", awake: str = "pass") -> str:
    return NET + settings + FITS.format(given=given, check=check, awake=awake)


BY_NAME = DATACLASS + NAMED + "setattr(self, name, given[name])\n"
UPDATED = PLAIN + READS + "self.__dict__.update(json.load(file))\n"
MERGED = (
    DATACLASS
    + "\n    def merge(self, other):\n        for name, value in vars(other).items():\n"
    + "            setattr(self, name, value)\n"
)
TAKES, ASKS = "self.settings.take(given or [])", "if given: self.settings.take(given)"
RAISES = "if self.settings.score_often and held_out is None: raise ValueError('held_out?')"
SILENT_END = "if self.settings.score_often and not held_out: return"
SETTINGS = {
    "set by name": fits(BY_NAME, TAKES),
    "updated from a file": fits(UPDATED, "self.settings.read('settings.json')"),
    "merged with others": fits(MERGED, "self.settings.merge(given)"),
    "and a guard that raises": fits(BY_NAME, ASKS, RAISES),
    "and a guard that returns": fits(UPDATED, "self.settings.read(given)", SILENT_END),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_that_are_set_from_elsewhere_are_open(kind: str) -> None:
    assert codes(SETTINGS[kind]) == ["TL201"]


FIXED = {
    "never set": fits(BY_NAME),
    "set under a known name": fits(BY_NAME, "setattr(self.settings, 'rounds', 9)"),
    "updated with what is written": fits(PLAIN, "self.settings.__dict__.update({'rounds': 2})"),
    "train mode in each turn": fits(BY_NAME, TAKES, RAISES, "self.net.train()"),
}


@pytest.mark.parametrize("kind", FIXED)
def test_settings_that_nothing_changes_are_known(kind: str) -> None:
    assert codes(FIXED[kind]) == []


KEEPS = """
class Search:
    def __init__(self, rounds):
        self.rounds = rounds
        self.net = self.optimizer = self.top = None

    def search(self, batches, judge):
        record, found = {record}, None
        for number in range(self.rounds):
            for x, y in batches:
                self.optimizer.zero_grad()
                F.mse_loss(self.net(x), y).backward()
                self.optimizer.step()
            value = judge(self.net)
            {when}:
                record = value
                {keep}
        {end}
"""


def keeps(keep: str, when: str = "if value > record", record: str = "0.0", end: str = "") -> str:
    """A search, in a class that subclasses complete."""
    text = KEEPS.format(keep=keep, when=when, record=record, end=end or "print(record)")
    return NET + text


KEPT = {
    "attribute": keeps("self.top = self.net.state_dict()"),
    "returned": keeps("found = self.net.state_dict()", "if value < record", "1e9", "return found"),
    "returned in a dict": keeps(
        "found = {'number': number, 'net': self.net.state_dict()}", end="return found, record"
    ),
    "either way": keeps(
        "self.top = self.net.state_dict()",
        "if (self.rising and value > record) or (not self.rising and value < record)",
    ),
}


@pytest.mark.parametrize("kind", KEPT)
def test_state_dicts_of_the_best_that_are_handed_on(kind: str) -> None:
    assert codes(KEPT[kind]) == ["TL805"]


COPIED = {
    "copied": keeps("self.top = copy.deepcopy(self.net.state_dict())"),
    "cloned": keeps(
        "found = {k: v.clone() for k, v in self.net.state_dict().items()}", end="return found"
    ),
    "saved at once": keeps("self.top = self.net.state_dict(); torch.save(self.top, 'top.pt')"),
    "good enough": keeps("found = self.net.state_dict(); break", end="return found"),
    "the last": keeps("self.top = self.net.state_dict()", "if number > 3"),
    "the state at the end": keeps("pass", end="return self.net.state_dict()"),
}


@pytest.mark.parametrize("kind", COPIED)
def test_state_dicts_that_no_update_changes(kind: str) -> None:
    assert codes(COPIED[kind]) == []


SCALES = """
class Scaled:
    def __init__(self, net, limit=1.0):
        self.net, self.limit = net, limit
        self.optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
        self.scaler = torch.amp.GradScaler("cuda")

    def loss(self, x, y):
        with torch.autocast("cuda", torch.float16):
            return F.cross_entropy(self.net(x), y)

    def gradients(self, x, y):
        self.scaler.scale(self.loss(x, y)).backward()
        {after}

    def limited(self):
        {clip}

    def update(self):
        {before}
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
"""
CLIP = "nn.utils.clip_grad_norm_(self.net.parameters(), self.limit)"
CLIP_VALUE = "nn.utils.clip_grad_value_(self.net.parameters(), 0.5)"


def scales(before: str, clip: str = "pass", after: str = "pass") -> str:
    return NET + SCALES.format(before=before, clip=clip, after=after)


@pytest.mark.parametrize(
    "text",
    [
        scales(CLIP),
        scales(f"if self.limit is not None: {CLIP}"),
        scales("self.limited()", CLIP),
        scales(CLIP_VALUE),
    ],
)
def test_an_update_that_clips_what_its_class_has_scaled(text: str) -> None:
    assert codes(text) == ["TL501"]


@pytest.mark.parametrize(
    "text",
    [
        scales(f"self.scaler.unscale_(self.optimizer); {CLIP}"),
        scales(CLIP, after="self.scaler.unscale_(self.optimizer)"),
        scales("self.limited()", f"self.scaler.unscale_(self.optimizer); {CLIP}"),
        scales(CLIP).replace("self.scaler.scale(self.loss(x, y))", "self.loss(x, y)"),
        scales("nn.utils.clip_grad_norm_(self.net.parameters(), float('inf'))"),
    ],
)
def test_an_update_whose_gradients_are_unscaled_or_only_measured(text: str) -> None:
    assert codes(text) == []


PREDICTS = """
def predict(path):
    net = Net()
    {load}
    {mode}
    for name, x in files(path):
        with torch.no_grad():
            print(name, {net}(x).argmax(1).tolist())

predict("pictures")
"""
LOADS = "net.load_state_dict(torch.load('net.pt'))"


def predicts(load: str = LOADS, mode: str = "pass", net: str = "net") -> str:
    return NET + PREDICTS.format(load=load, mode=mode, net=net)


METRIC = """
import torchvision

class Features:
    def __init__(self):
        self.network = torchvision.models.{network}.to("cuda")

    def of(self, x):
        {mode}
        return self.network(x)

    @torch.inference_mode()
    def distance(self, real, made):
        of_real, of_made = [], []
        for x in real:
            of_real.append(self.of(x))
        for x in made:
            of_made.append(self.of(x))
        return torch.cat(of_real).mean() - torch.cat(of_made).mean()
"""


def metric(network: str, mode: str = "pass") -> str:
    return NET + METRIC.format(network=network, mode=mode)


@pytest.mark.parametrize(
    "text",
    [
        predicts(),
        predicts("net.load_state_dict(torch.load('net.pt')['net']); net.cuda()"),
        predicts("net.load_state_dict(torch.load('a.pt')); wrapped = nn.DataParallel(net)")
        .replace("{net}", "wrapped"),
        metric("inception_v3(weights='DEFAULT')"),
        metric("resnet50(pretrained=True)"),
    ],
)  # fmt: skip
def test_programs_that_predict_in_train_mode(text: str) -> None:
    assert codes(text) == ["TL202"]


@pytest.mark.parametrize(
    "text",
    [
        predicts(mode="net.eval()"),
        predicts(mode="net.to('cuda').eval()"),
        predicts(mode="net.train()"),  # it samples the dropout
        predicts("pass"),  # weights of nobody's training
        predicts().replace("self.drop(self.norm(self.hidden(x)))", "self.hidden(x)")
        .replace(", nn.Dropout(0.3)", ", None").replace("nn.BatchNorm1d(8)", "None"),
        metric("inception_v3(weights='DEFAULT')", "self.network.eval()"),
        metric("vit_b_16(weights='DEFAULT')"),
        metric("resnet50()"),
        metric("resnet50(weights=None)"),
    ],
)  # fmt: skip
def test_programs_that_may_predict_so(text: str) -> None:
    assert codes(text) == []


LAYERS = """
class Block(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.inner, self.rate = nn.Linear(width, width), rate

    def forward(self, x):
        return self.inner(F.dropout(x, self.rate, self.training))

class Deep(nn.Module):
    def __init__(self, layers, rate):
        super().__init__()
        {made}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
MADE = {
    "at once": "self.layers = nn.ModuleList([Block(8, rate) for _ in range(layers)])",
    "in place": (
        "self.layers = nn.ModuleList()\n        for _ in range(layers):\n"
        "            self.layers += [Block(8, rate)]"
    ),
    "as a list that grows": (
        "self.layers = nn.ModuleList()\n        for _ in range(layers):\n"
        "            self.layers.extend([Block(8, rate)])"
    ),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("mode", ["pass", "net.eval()"])
def test_networks_of_any_number_of_layers(made: str, mode: str) -> None:
    layers = NET + LAYERS.format(made=made)
    text = predicts(mode=mode).replace(NET, layers).replace("Net()", "Deep(*given)")
    assert codes(text) == ([] if mode == "net.eval()" else ["TL202"])
    assert codes(text.replace("Deep(*given)", "Deep(given, 0.0)")) == []


FUSED = """
import torch
import xformers.ops as xops
from flash_attn import flash_attn_func
from flash_attn.flash_attn_interface import flash_attn_qkvpacked_func
from torch import nn

class Attention(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.project, self.rate = nn.Linear(8, 8), rate

    def forward(self, x):
        return self.project({call})

net = Attention({rate})
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(3):
    net.train()
    for _ in range(8):
        x = torch.randn(4, 6, 2, 8)
        optimizer.zero_grad()
        (net(x) - x).pow(2).mean().backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print((net(x) - x).pow(2).mean().item())
"""
ASKED = "self.rate if self.training else 0.0"


@pytest.mark.parametrize(
    "call",
    [
        "xops.memory_efficient_attention(x, x, x, p={rate})",
        "xops.memory_efficient_attention(x, x, x, None, {rate})",
        "flash_attn_func(x, x, x, {rate}, causal=True)",
        "flash_attn_func(x, x, x, dropout_p={rate})",
        "flash_attn_qkvpacked_func(x, {rate})",
    ],
)
def test_fused_attention_that_drops_in_both_modes(call: str) -> None:
    always = call.format(rate="self.rate")
    assert codes(FUSED.format(call=always, rate=0.1)) == ["TL206"]
    assert codes(FUSED.format(call=always, rate="float(input())")) == ["TL206"]
    assert codes(FUSED.format(call=always, rate=0.0)) == []
    assert codes(FUSED.format(call=call.format(rate=ASKED), rate=0.1)) == []


LIT = """
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader

class Lit(lightning.LightningModule):
    def __init__(self, width, rate=0.1):
        super().__init__()
        self.layer, self.drop = nn.Linear(width, 3), nn.Dropout(rate)

    def forward(self, x):
        return self.layer(self.drop(x))

    def training_step(self, batch, number):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

model = Lit.load_from_checkpoint("a.ckpt", {given})
{mode}
for x, y in DataLoader(torch.load("a.pt"), batch_size=8):
    with torch.{off}:
        print(model(x).argmax(1))
"""
OFF, ON = "no_grad()", "autocast('cuda')"


@pytest.mark.parametrize(
    ("given", "mode", "off", "wanted"),
    [
        ("map_location='cpu'", "pass", OFF, ["TL202"]),
        ("width=8", "model.freeze", OFF, ["TL202"]),
        ("map_location='cpu'", "model.eval()", OFF, []),
        ("width=8", "model.freeze()", OFF, []),
        ("width=8, rate=0.0", "pass", OFF, []),
        ("map_location='cpu'", "model.eval()", ON, ["TL203"]),
        ("map_location='cpu'", "model.freeze()", ON, []),
    ],
)
def test_lightning_modules_from_a_file(given: str, mode: str, off: str, wanted: list[str]) -> None:
    assert codes(LIT.format(given=given, mode=mode, off=off)) == wanted


COUNTS = """
def run(net, batches, size, rate):
    optimizer = torch.optim.{optimizer}
    count = 0
    for number, (x, y) in enumerate(batches):
        {first}
        (F.cross_entropy(net(x), y){share}).backward()
        {rest}
"""
DIVIDED, SGD = " / size", "SGD(net.parameters(), rate)"


def counts(rest: str, share: str = DIVIDED, first: str = "pass") -> str:
    rest = rest.replace("\n", "\n        ")
    return NET + COUNTS.format(rest=rest, share=share, first=first, optimizer=SGD)


STEPS = "optimizer.step(); optimizer.zero_grad()"
WINDOWS = {
    "continue": f"if (number + 1) % size: continue\n{STEPS}",
    "continue unless it is zero": f"if (number + 1) % size != 0: continue\n{STEPS}",
    "continue but for the last": (
        f"if number + 1 < len(batches) and (number + 1) % size > 0: continue\n{STEPS}"
    ),
    "continue until the last of them": f"if number % size != size - 1: continue\n{STEPS}",
    "else of more than zero": f"if (number + 1) % size > 0: print('waits')\nelse: {STEPS}",
    "less than one": f"if (number + 1) % size < 1: {STEPS}",
    "counter": f"count += 1\nif count == size:\n    {STEPS}; count = 0",
    "counter that may pass it": f"count += 1\nif count >= size:\n    count = 0\n    {STEPS}",
    "counter in the else": f"if count == size:\n    {STEPS}\n    count = 0\nelse:\n    count += 1",
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_each_way_to_write_a_window(kind: str) -> None:
    assert codes(counts(WINDOWS[kind], "")) == ["TL505"]
    assert codes(counts(WINDOWS[kind], first="optimizer.zero_grad()")) == ["TL508"]
    assert codes(counts(WINDOWS[kind])) == []


@pytest.mark.parametrize(
    "rest",
    [
        f"{STEPS}\nif (number + 1) % size: continue\nprint(number)",
        f"if (number + 1) % size > 0: print(number)\n{STEPS}",
        f"count += 1\n{STEPS}\nif count == size:\n    print(number); count = 0",
        f"count += 1\nif count == 1:\n    {STEPS}; count = 0",
    ],
)
def test_tests_that_no_update_waits_for(rest: str) -> None:
    assert codes(counts(rest, "")) == []


LAZY = """
class Lazy:
    def __init__(self, net, options):
        self.net, self.options, self.made = net, options, None

    {decorator}
    def optimizer(self):
        if self.made is None:
            self.made = build(self.options, self.net.parameters())
        return self.made

    def forward(self, x, y):
        {first}
        return F.cross_entropy(self.net(x), y)

    def backward(self, loss):
        loss.backward()
        {after}

    def step(self, x, y, last):
        self.backward(self.forward(x, y))
        if last:
            {between}
            self.optimizer.step()
            {clear}

def go(batches, size, net):
    lazy = Lazy(net, None)
    for number, (x, y) in enumerate(batches):
        {calls}
"""
CLEARS, EACH = "self.optimizer.zero_grad()", "lazy.step(x, y, True)"
TWO = "if (number + 1) % size > 0: lazy.step(x, y, last=False)\n        else: " + EACH
SUMS = "flat = [p.grad for p in self.net.parameters()]; torch.cat(flat).sum()"


def lazy(
    calls: str = EACH, first: str = "pass", clear: str = CLEARS, after: str = "pass",
    between: str = "pass", decorator: str = "@property",
) -> str:  # fmt: skip
    return NET + LAZY.format(
        calls=calls, first=first, clear=clear, after=after, between=between, decorator=decorator
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (lazy(clear="pass"), "TL102"),
        (lazy(clear="pass", decorator="@functools.cached_property"), "TL102"),
        (lazy(TWO, first=CLEARS), "TL508"),
        (lazy(TWO, first=CLEARS, clear="pass"), "TL508"),
        (lazy(TWO, first=CLEARS, between=SUMS), "TL508"),
    ],
)
def test_an_optimizer_behind_a_property_and_a_step_by_methods(text: str, code: str) -> None:
    assert codes("import functools\n" + text) == [code]


@pytest.mark.parametrize(
    "text",
    [
        lazy(),
        lazy(first=CLEARS, clear="pass"),
        lazy(TWO).replace("F.cross_entropy(self.net(x), y)", "F.cross_entropy(self.net(x), y) / 4"),
        lazy(
            TWO, first=CLEARS, after="self.kept = [p.grad.clone() for p in self.net.parameters()]"
        ),
    ],
)
def test_one_that_is_cleared_when_it_should_be(text: str) -> None:
    assert codes(text) == []


def codes(text: str) -> list[str]:
    """What a file of this text reports, but advice."""
    found = check_text(text, "trainer.py", strict=True).findings
    return sorted(each.code for each in found if each.severity != "advice")
