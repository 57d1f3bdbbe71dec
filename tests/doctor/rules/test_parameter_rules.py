"""The rules on parameters and the optimizer, over variations of small programs."""

from __future__ import annotations

import textwrap

import pytest

from trueloop.doctor.static import check_text

HEAD = """
import copy
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
loader = DataLoader(load(), batch_size=8, shuffle=True)


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.body(x))


def train(model, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


model = Net()
"""
MADE = "optimizer = torch.optim.Adam(model.parameters())\n"
RUN = "for epoch in range(10):\n    train(model, optimizer)\n"


def codes(tail: str) -> list[str]:
    found = check_text(HEAD + textwrap.dedent(tail), "<text>", strict=True).findings
    return [each.code for each in found if each.code.startswith("TL3")]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("model.fc = nn.Linear(8, 3)", ["TL301"], id="another-head"),
        pytest.param("model.fc = nn.Identity()", [], id="no-head"),
        pytest.param("model.fc = nn.Sequential(model.fc, nn.ReLU())", [], id="the-head-wrapped"),
        pytest.param("model = model.to('cuda').half()", [], id="moved"),
        pytest.param("model = nn.DataParallel(model)", [], id="wrapped"),
        pytest.param("model = torch.compile(model)", [], id="compiled"),
        pytest.param("model = Net()", ["TL301"], id="another-model"),
        pytest.param("model = copy.deepcopy(model)", ["TL301"], id="a-copy"),
        pytest.param(
            "model.fc = nn.Linear(8, 3)\n"
            "optimizer.add_param_group({'params': model.fc.parameters()})",
            [],
            id="a-group-added",
        ),
        pytest.param(
            "model.fc = nn.Linear(8, 3)\nmodel.fc.requires_grad_(False)", [], id="a-frozen-head"
        ),
        pytest.param("model.load_state_dict(torch.load('x', weights_only=True))", [], id="loaded"),
        pytest.param(
            "model.load_state_dict(torch.load('x', weights_only=True), assign=True)",
            ["TL301"],
            id="loaded-by-assignment",
        ),
        pytest.param("nn.utils.parametrizations.weight_norm(model.body)", ["TL301"], id="normed"),
    ],
)
def test_what_happens_to_a_model_after_its_optimizer_was_made(
    lines: str, expected: list[str]
) -> None:
    assert codes(f"{MADE}{lines}\n{RUN}") == expected


def test_an_optimizer_that_is_made_after_holds_the_new_ones() -> None:
    assert codes(f"{MADE}model.fc = nn.Linear(8, 3)\n{MADE}{RUN}") == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("[nn.Linear(4, 4)]", ["TL303"]),
        ("(nn.Linear(4, 4), nn.Linear(4, 4))", ["TL303"]),
        ("{'a': nn.Linear(4, 4)}", ["TL303"]),
        ("[nn.ReLU(), nn.Dropout(0.1)]", []),
        ("[nn.Linear(4, 4).requires_grad_(False)]", []),
        ("nn.ModuleList([nn.Linear(4, 4)])", []),
        ("[self.first]", []),
        ("[given]", []),
    ],
)
def test_what_a_module_keeps_in_a_container(value: str, expected: list[str]) -> None:
    tail = f"""
    class Stack(nn.Module):
        def __init__(self, given):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.layers = {value}

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    stack = Stack(nn.Linear(4, 4))
    optimizer = torch.optim.Adam(stack.parameters())
    train(stack, optimizer)
    """
    assert codes(tail) == expected


LOOP = """
for {loop}:
    {before}
    optimizer = {made}
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "loop", "before", "expected"),
    [
        ("torch.optim.Adam(model.parameters())", "epoch in range(10)", "pass", ["TL305"]),
        ("torch.optim.SGD(model.parameters(), lr=0.1)", "epoch in range(10)", "pass", []),
        (
            "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
            "epoch in range(10)",
            "pass",
            ["TL305"],
        ),
        ("torch.optim.Adam(model.parameters())", "fold in range(10)", "pass", []),
        ("torch.optim.Adam(model.parameters())", "task in tasks", "pass", []),
        ("torch.optim.Adam(model.parameters())", "i in range(10)", "model = Net()", []),
        (
            "torch.optim.Adam(model.parameters())",
            "i in range(10)",
            "model.load_state_dict(start)",
            [],
        ),
        (
            "torch.optim.Adam(model.parameters())",
            "epoch in range(10)",
            "model.body.requires_grad_(True)",
            [],
        ),
        ("torch.optim.Adam([noise])", "epoch in range(10)", "pass", []),
    ],
)
def test_an_optimizer_made_in_a_loop(
    made: str, loop: str, before: str, expected: list[str]
) -> None:
    tail = "start = copy.deepcopy(model.state_dict())\nnoise = torch.zeros(4, requires_grad=True)\n"
    assert codes(tail + LOOP.format(made=made, loop=loop, before=before)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nn.Parameter(torch.ones(4)).cuda()", ["TL307"]),
        ("nn.Parameter(torch.ones(4)).to(device)", []),  # which may be the CPU
        ("nn.Parameter(torch.ones(4)).to(torch.device('cpu'))", []),
        ("nn.Parameter(torch.ones(4)).to(torch.device('cuda', 1))", ["TL307"]),
        (
            "nn.Parameter(torch.ones(4)).to('cuda' if torch.cuda.is_available() else 'cpu')",
            ["TL307"],
        ),
        ("nn.Parameter(torch.ones(4)).to(torch.float16)", ["TL307"]),
        ("nn.Parameter(torch.ones(4)).view(2, 2)", ["TL307"]),
        ("nn.Parameter(torch.ones(4).cuda())", []),
        ("nn.Parameter(torch.ones(4)).float()", []),
        ("nn.Parameter(torch.ones(4)).to('cpu')", []),
        ("nn.Parameter(torch.ones(4)).requires_grad_(True)", []),
        ("nn.Parameter(torch.ones(4)).detach()", []),
        ("self.registered.view(2, 2)", []),
    ],
)
def test_a_parameter_on_its_way_to_an_attribute(value: str, expected: list[str]) -> None:
    tail = f"""
    class Scale(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.registered = nn.Parameter(torch.ones(4))
            self.scale = {value}

        def forward(self, x):
            return x * self.scale

    model = Scale(device)
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    """
    assert codes(tail) == expected


@pytest.mark.parametrize(
    ("model", "thaws", "expected"),
    [
        ("Net()", "", ["TL309"]),
        ("Net()", "model.fc = nn.Linear(8, 3)", []),
        ("torchvision.models.vgg16()", "model.classifier[6] = nn.Linear(4096, 3)", []),
        ("torchvision.models.resnet18()", "model.fc = nn.Linear(512, 3)", []),
        ("timm.create_model('resnet18')", "model.reset_classifier(3)", []),
    ],
)
def test_a_model_that_was_frozen_and_got_a_new_head(
    model: str, thaws: str, expected: list[str]
) -> None:
    frozen = "for parameter in model.parameters():\n    parameter.requires_grad = False\n"
    head = f"import timm\nimport torchvision\nmodel = {model}\n"
    assert codes(f"{head}{frozen}{thaws}\n{MADE}{RUN}") == expected


ONE_OF_SEVERAL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.bases = {{"a": nn.Linear(3, 4), "b": nn.Conv2d(3, 4, 1)}}
        {chosen}

    def choose(self, name):
        try:
            found = self.bases[name]
        except KeyError:
            raise ValueError(name)
        else:
            return found

    def forward(self, x):
        return {used}

net = Net(read())
print(net(torch.ones(1, 3)))
"""


@pytest.mark.parametrize(
    ("chosen", "used", "expected"),
    [
        ("self.backbone = self.bases[base]", "self.backbone(x)", []),
        ("self.backbone = self.choose(base)", "self.backbone(x)", []),
        ("self.backbone = nn.Linear(3, 4)", "sum(f(x) for f in self.bases.values())", ["TL303"]),
    ],
)
def test_the_layer_of_a_dict_that_an_option_names(
    chosen: str, used: str, expected: list[str]
) -> None:
    text = ONE_OF_SEVERAL.format(chosen=chosen, used=used)
    assert [each.code for each in check_text(text, "<text>", strict=True).findings] == expected


CONTEXTS = """
import torch
from torch import nn
from torch.utils.data import DataLoader

def train(model, data, updates):
    optimizer = torch.optim.Adam(model.parameters())
    left = 1
    for update in range(updates):
        left -= 1
        if left == 0:
            batches = iter(DataLoader(data, batch_size=8, shuffle=True))
            left = len(batches)
        x, y = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

model = nn.Linear(4, 2)
{tasks}
for context in range(3):
    train(model, {data}, updates=50)
"""


@pytest.mark.parametrize(
    ("tasks", "data"),
    [
        ("tasks = [torch.load(f'{i}.pt') for i in range(3)]", "tasks[context]"),
        ("from data import make_task", "make_task(context)"),
    ],
)
def test_each_context_begins_with_a_new_optimizer(tasks: str, data: str) -> None:
    text = CONTEXTS.format(tasks=tasks, data=data)
    assert check_text(text, "<text>", strict=True).findings == []


SKETCH = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = [nn.Linear(width, width), nn.ReLU()]
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
{rest}
"""


@pytest.mark.parametrize(
    ("path", "rest", "expected"),
    [
        ("blocks.py", "", ["TL303"]),
        ("blocks.ipynb", "", []),
        ("blocks.ipynb", "print(Block(8)(torch.ones(2, 8)))", ["TL303"]),
    ],
)
def test_a_class_that_a_notebook_never_makes(path: str, rest: str, expected: list[str]) -> None:
    found = check_text(SKETCH.format(rest=rest), path, strict=True).findings
    assert [each.code for each in found] == expected


HELPER = """
import library
import torch
import torchvision.models as models
from abc import ABC
from torch import nn
class Part({base}):
    def __init__(self, images):
        self.stem = nn.Linear(images, 8)
    def __call__(self, x):
        return self.stem(x)
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(2)
        self.out = nn.Linear(8, 1)
    def forward(self, x):
        return self.out(self.part(x))
net = Whole()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(8, 4, 2):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("object", ["TL303"]),
        ("ABC", ["TL303"]),
        ("models.ResNet", []),
        ("models.resnet.ResNet", []),
        ("library.Base", []),
    ],
)
def test_a_class_of_a_library_may_be_a_module(base: str, expected: list[str]) -> None:
    found = check_text(HELPER.format(base=base), "part.py", strict=True).findings
    assert [each.code for each in found] == expected


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param("nn.ModuleList([nn.Linear(4, 4)] * n)", ["TL313"], id="list"),
        pytest.param("nn.Sequential(*(nn.Linear(4, 4),) * n)", ["TL313"], id="tuple"),
        pytest.param("nn.ModuleList(n * [nn.Linear(4, 4)])", ["TL313"], id="number-first"),
        pytest.param("nn.ModuleList([nn.Linear(4, 4), nn.ReLU()] * n)", ["TL313"], id="pairs"),
        pytest.param("nn.ModuleList([nn.Linear(4, 4)] * 1)", [], id="one-place"),
        pytest.param("nn.ModuleList([nn.Linear(4, 4)] + [nn.Linear(4, 4)])", [], id="two-layers"),
        pytest.param("nn.ModuleList([nn.ReLU()] * n)", [], id="no-parameters"),
        pytest.param("nn.Sequential(*[nn.LayerNorm(4)] * norm)", [], id="a-flag"),
        pytest.param("nn.Sequential(*[nn.LayerNorm(4)] * (n > 2))", [], id="a-comparison"),
        pytest.param("nn.Sequential(*(not norm) * [nn.LayerNorm(4)])", [], id="a-negation"),
        pytest.param("nn.ModuleList([nn.LayerNorm(4)] * (n - 1))", ["TL313"], id="less-one"),
        pytest.param("nn.ModuleList([nn.LayerNorm(4)] * times)", ["TL313"], id="int-by-default"),
        pytest.param("nn.ModuleList([nn.LayerNorm(4)] * (times - 1))", [], id="one-by-default"),
        pytest.param("nn.ModuleList([nn.Linear(4, 4)] * n if n > 3 else [self.fc])", [], id="or"),
        pytest.param(
            "nn.ModuleList([copy.deepcopy(each) for each in [nn.Linear(4, 4)] * n])",
            [],
            id="copied",
        ),
        pytest.param("nn.ModuleList([self.fc for _ in range(n)])", [], id="has-its-own-name"),
    ],
)
def test_one_layer_in_several_places(layers: str, expected: list[str]) -> None:
    source = f"""
    class Deep(Net):
        def __init__(self, n, norm=True, times=2):
            super().__init__()
            self.layers = {layers}

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x
    """
    assert codes(source) == expected


def test_models_of_tests_may_have_one_layer_in_several_places() -> None:
    source = "from torch import nn\ndef test_size():\n    nn.Sequential(*[nn.Linear(4, 4)] * 3)\n"
    assert check_text(source, "tests/test_sizes.py", strict=True).findings == []
    found = check_text(source, "sizes.py", strict=True).findings
    assert [each.code for each in found] == ["TL313"]
