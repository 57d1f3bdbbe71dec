"""The rules on modes and the graph, where a whole program would be too long for the question."""

from __future__ import annotations

import textwrap

import pytest

from trueloop.doctor.model.findings import Finding, Insert, Replace
from trueloop.doctor.rules.shared.passes import names_validation
from trueloop.doctor.static import check_text

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from models import build
train_loader = DataLoader(load("train"), batch_size=8, shuffle=True)
val_loader = DataLoader(load("val"), batch_size=8)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters())


def train():
    {train}
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


{grad}
def validate():
    {mode}
    correct = 0
    for x, y in val_loader:
        {inner}correct += (model(x).argmax(1) == y).sum().item()
    {after}
    return correct
"""
TWO_EPOCHS = "for epoch in range(10):\n    train()\n    validate()\n"


def findings(tail: str = TWO_EPOCHS, model: str = "", **lines: str) -> list[Finding]:
    given = {"train": "model.train()", "grad": "@torch.no_grad()", "mode": "model.eval()",
             "after": "pass", "inner": ""} | lines  # fmt: skip
    text = HEAD.format(**given) + textwrap.dedent(tail)
    if model:
        text = text.replace(
            "nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))", model
        )
    found = check_text(text, "<text>", strict=True).findings
    return [each for each in found if each.code.startswith("TL2")]


def codes(tail: str = TWO_EPOCHS, model: str = "", **lines: str) -> list[str]:
    return [each.code for each in findings(tail, model, **lines)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param({}, [], id="right"),
        pytest.param({"train": "pass"}, ["TL201"], id="train-left-out"),
        pytest.param({"train": "pass", "after": "model.train()"}, [], id="put-back-by-validation"),
        pytest.param({"train": "pass", "after": "model[0].train()"}, ["TL201"], id="only-a-part"),
        pytest.param({"mode": "pass"}, ["TL202"], id="eval-left-out"),
        pytest.param({"mode": "model[0].eval()"}, ["TL202"], id="only-a-part-in-eval"),
        pytest.param({"mode": "model.train()"}, [], id="train-mode-asked-for"),
        pytest.param({"grad": ""}, ["TL203"], id="no-grad-left-out"),
        pytest.param({"mode": "pass", "grad": ""}, ["TL202", "TL203"], id="both-left-out"),
        pytest.param(
            {"mode": "model.train(False)", "train": "model.train(True)"}, [], id="by-flag"
        ),
    ],
)
def test_one_line_of_two_functions(lines: dict[str, str], expected: list[str]) -> None:
    assert codes(**lines) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nn.Linear(4, 3)", []),
        ("nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0))", []),
        ("nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))", ["TL201"]),
        ("build()", ["TL201"]),
    ],
)
def test_training_in_eval_mode_matters_to_models_that_switch(
    model: str, expected: list[str]
) -> None:
    assert codes(train="pass", model=model) == expected


def test_an_unknown_model_whose_mode_nobody_sets_may_have_none() -> None:
    assert codes(train="pass", mode="pass", model="build()") == []
    assert codes(mode="pass", model="build()") == ["TL202"]


def test_a_validation_before_the_first_epoch_counts() -> None:
    tail = "validate()\nfor epoch in range(10):\n    train()\n"
    assert codes(tail, train="pass") == ["TL201"]


def test_eval_mode_that_the_training_itself_turns_on_is_meant() -> None:
    assert codes(train="model.eval()") == []
    assert codes("model.eval()\nvalidate()\n" + TWO_EPOCHS, train="pass") == []


def test_a_train_mode_that_is_an_option_is_no_fault_where_the_option_is_off() -> None:
    assert codes(train="if args.train_mode: model.train()") == []


PASSES = """
for epoch in range(10):
    model.train()
    for x, y in train_loader:
        {above}
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        {below}
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            {before}
            correct = (model(x).argmax(1) == y).sum().item()
            {behind}
"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param({"below": "model.eval()"}, ["TL201"], id="eval-in-the-training-loop"),
        pytest.param({"below": "if stop(): model.eval()"}, [], id="eval-by-condition"),
        pytest.param({"below": "model.eval(); check(model)"}, [], id="unreadable-code-may-undo"),
        pytest.param({"above": "model.train()", "below": "model.eval()"}, [], id="put-back"),
        pytest.param({"behind": "model.train()"}, ["TL202"], id="train-in-the-validation-loop"),
        pytest.param({"before": "model.eval()", "behind": "model.train()"}, [], id="for-each"),
    ],
)
def test_a_switch_within_a_pass_holds_from_the_second_batch_on(
    lines: dict[str, str], expected: list[str]
) -> None:
    given = dict.fromkeys(("above", "below", "before", "behind"), "pass") | lines
    assert codes(PASSES.format(**given)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param({}, [], id="right"),
        pytest.param({"mode": "pass"}, ["TL202"], id="eval-left-out"),
        pytest.param({"grad": ""}, ["TL203"], id="no-grad-left-out"),
    ],
)
def test_a_comprehension_over_a_loader_is_a_pass(
    lines: dict[str, str], expected: list[str]
) -> None:
    tail = """
    {grad}
    def accuracy():
        {mode}
        return sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader) / 100

    for epoch in range(10):
        train()
        accuracy()
    """
    given = {"grad": "@torch.no_grad()", "mode": "model.eval()"} | lines
    assert codes(textwrap.dedent(tail).format(**given)) == expected


def test_gradients_of_an_attack_are_no_training() -> None:
    tail = """
    def attack(x, y):
        model.eval()
        x = x.clone().requires_grad_(True)
        F.cross_entropy(model(x), y).backward()
        model.train()
        return x.grad.sign()

    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            x = x + attack(x, y)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        validate()
    """
    assert codes(tail) == []


def test_a_loop_without_a_loader_is_a_pass_where_it_is_named_so() -> None:
    tail = """
    def estimate_loss():
        model.eval()
        losses = torch.zeros(eval_iters)
        for k in range(eval_iters):
            x, y = get_batch("val")
            losses[k] = F.cross_entropy(model(x), y).item()
        {after}
        return losses.mean()

    step = 0
    while True:
        if step % 100 == 0:
            estimate_loss()
        x, y = get_batch("train")
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    """
    assert codes(tail.replace("{after}", "model.train()")) == ["TL203"]
    quiet = tail.replace("    def estimate", "    @torch.no_grad()\n    def estimate")
    assert codes(quiet.replace("{after}", "model.train()")) == []
    assert codes(quiet.replace("{after}", "pass")) == ["TL201"]


def test_the_remedies_are_lines_before_the_loops() -> None:
    (train,) = findings(train="pass")
    assert isinstance(train.remedies[0], Insert)
    assert train.remedies[0].text == "model.train()"
    (validate,) = findings(mode="pass")
    assert isinstance(validate.remedies[0], Insert)
    assert validate.remedies[0].text == "model.eval()"
    # Where nobody would turn train mode on again, one line is not enough.
    assert findings(mode="pass", train="pass")[0].remedies == ()


LOSSES = """
total, losses, table = 0.0, [], {}
for i, (x, y) in enumerate(train_loader):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    %s
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("total += loss", ["TL204"]),
        ("total = total + loss * len(x)", ["TL204"]),
        ("losses.append(loss)", ["TL204"]),
        ("losses += [loss]", ["TL204"]),
        ("table[i] = loss", ["TL204"]),
        ("losses.append((i, loss))", ["TL204"]),
        ("losses.append({'loss': loss, 'step': i})", ["TL204"]),
        ("total = (total * i + loss) / (i + 1)", ["TL204"]),
        ("losses.append({'loss': loss.detach(), 'step': i})", []),
        ("losses.append((i, loss.item()))", []),
        ("total = (total * i + loss.item()) / (i + 1)", []),
        ("table['last'] = loss", []),
        ("last = loss", []),
        ("total += loss.item()", []),
        ("total += float(loss)", []),
        ("losses.append(loss.detach())", []),
        ("losses.append(loss.data)", []),
        ("losses.append(len(x))", []),
    ],
)
def test_what_is_kept_of_a_loss(line: str, expected: list[str]) -> None:
    found = [each for each in findings(LOSSES % line) if each.code == "TL204"]
    assert [each.code for each in found] == expected


TRAINER = """
class Trainer:
    def run_epoch(self, loader, mode):
        losses, counts = [], []
        for inputs, targets in loader:
            loss, {second} = self.loss_function(self.model(inputs), targets)
            if mode == "train":
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            losses.append(loss.item())
            counts.append({second})
        return sum(losses) / sum(counts)

    def run(self, train, val, epochs):
        for epoch in range(epochs):
            self.model.train()
            self.run_epoch(train, mode="train")
            self.model.eval()
            print(self.run_epoch(val, mode="val"))
"""


@pytest.mark.parametrize(("second", "expected"), [("count", []), ("mse_loss", ["TL204"])])
def test_what_an_unknown_loss_returns_beside_the_loss(second: str, expected: list[str]) -> None:
    found = check_text(TRAINER.format(second=second), "trainer.py", strict=True).findings
    assert [each.code for each in found if each.code == "TL204"] == expected


UNKNOWN = """
import torch
from nets import build
model = build("small")
optimizer = torch.optim.Adam(model.parameters())
log = []
for step in range(50_000):
    out = model(torch.randn(3, 4))
    optimizer.zero_grad()
    out["loss"].backward()
    optimizer.step()
    log.append({value})
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('out["metrics"]', []),
        ('{"metrics": out["metrics"], "step": step}', []),
        ('out["loss"]', ["TL204"]),
        ('(step, out["loss"])', ["TL204"]),
    ],
)
def test_what_an_unknown_model_returns_under_a_name(value: str, expected: list[str]) -> None:
    found = check_text(UNKNOWN.replace("{value}", value), "log.py", strict=True).findings
    assert [each.code for each in found] == expected


def test_detaching_is_the_remedy() -> None:
    (found,) = [each for each in findings(LOSSES % "total += loss") if each.code == "TL204"]
    assert isinstance(found.remedies[0], Replace)
    assert found.remedies[0].text == "{}.detach()"


def test_a_sum_that_is_sent_back_is_no_log() -> None:
    tail = """
    for epoch in range(10):
        total = 0.0
        for i, (x, y) in enumerate(train_loader):
            total = total + F.cross_entropy(model(x), y)
            if (i + 1) % 4 == 0:
                optimizer.zero_grad()
                total.backward()
                optimizer.step()
                total = 0.0
    """
    assert codes(tail) == []


MODULE = """
import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def helper(self, x, **options):
        return F.dropout(x, 0.5, **options)

    def forward(self, x, p=0.5):
        x = self.layer(x)
        return {body}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("F.dropout(x)", ["TL206"]),
        ("F.dropout2d(x, p)", ["TL206"]),
        ("F.alpha_dropout(x, p=0.1)", ["TL206"]),
        ("F.dropout(x, training=self.training)", []),
        ("F.dropout(x, p, self.training)", []),
        ("F.dropout(x, p, True)", []),
        ("F.dropout(x, 0.0)", []),
        ("F.dropout(x) if self.training else x", []),
        ("self.helper(x, training=self.training)", []),
    ],
)
def test_functional_dropout(body: str, expected: list[str]) -> None:
    found = check_text(MODULE.format(body=body), "<text>", strict=True).findings
    assert [each.code for each in found] == expected


def test_forward_is_called_directly_from_outside_of_modules_only() -> None:
    inside = MODULE.format(body="self.layer.forward(x)")
    assert check_text(inside, "<text>", strict=True).findings == []
    outside = MODULE.format(body="x") + "\nnet = Net()\nprint(net.forward(torch.ones(4)))\n"
    assert [each.code for each in check_text(outside, "<text>", strict=True).findings] == ["TL205"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("val_loader", True),
        ("validLoader", True),
        ("testloader", True),
        ("evaluate", True),
        ("dev_iter", True),
        ("train_loader", False),
        ("train_and_evaluate", False),
        ("values", False),
        ("latest", False),
        ("device", False),
    ],
)
def test_names_that_speak_of_validation(name: str, expected: bool) -> None:
    assert names_validation(name) is expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        # What a context that cannot be read does with the model, nobody knows.
        ("evaluating(model)", []),
        ("evaluating(*[model])", []),
        ("utils.eval_mode(model, build())", []),
        ("timer('validation')", ["TL203"]),
        ("open('log.txt')", ["TL203"]),
        # Recording is wanted, in so many words.
        ("torch.enable_grad()", []),
        ("torch.set_grad_enabled(True)", []),
    ],
)
def test_a_context_that_has_the_model_may_turn_recording_off(
    context: str, expected: list[str]
) -> None:
    tail = (
        "from somewhere import evaluating, timer, utils\n"
        "for epoch in range(10):\n"
        "    train()\n"
        f"    with {context}:\n"
        "        validate()\n"
    )
    assert codes(tail, grad="") == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("Variable(torch.LongTensor(read()), volatile=True)", []),
        ("Variable(read(), volatile=True)", []),
        ("Variable(read())", ["TL203"]),
    ],
)
def test_one_volatile_input_turns_recording_off(made: str, expected: list[str]) -> None:
    tail = (
        "from torch.autograd import Variable\n"
        "for epoch in range(10):\n"
        "    train()\n"
        "    model.eval()\n"
        f"    start = {made}\n"
        "    for x, y in val_loader:\n"
        "        print(model(x + start).argmax(1))\n"
    )
    assert codes(tail) == expected


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("@evaluating", []),
        ("@utils.without_graph(amp=True)", []),
        ("@functools.lru_cache", ["TL203"]),
        ("@functools.cache", ["TL203"]),
        ("@torch.no_grad()", []),
    ],
)
def test_a_decorator_that_cannot_be_read_may_turn_recording_off(
    decorator: str, expected: list[str]
) -> None:
    tail = "def main():\n    for epoch in range(10):\n        train()\n        validate()\nmain()\n"
    first = "import functools\nfrom somewhere import evaluating, utils"
    assert codes(tail, train="model.train()", grad=f"{first}\n{decorator}") == expected


OPTIONAL_DROPOUT = """
import torch
from torch import nn
from torch.nn import functional as F

class MLP(nn.Module):
    def __init__(self, dropout=False):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)
        self.dropout_layer = nn.Dropout(0.1)
        self.dropout = dropout
    def forward(self, x):
        x = self.first(x).relu()
        if self.dropout:
            x = self.dropout_layer(x)
        return self.second(x)

model = MLP({option})
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    for x, y in torch.load("train.pt"):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        total = 0.0
        for x, y in torch.load("val.pt"):
            total += F.cross_entropy(model(x), y).item() * len(y)
    print(total)
"""


@pytest.mark.parametrize(("option", "codes"), [("", []), ("dropout=True", ["TL202"])])
def test_a_dropout_layer_that_is_never_called_does_not_count(option: str, codes: list[str]) -> None:
    report = check_text(OPTIONAL_DROPOUT.replace("{option}", option), "train.py", strict=True)
    assert [found.code for found in report.findings] == codes


VARIED = """
import torch
import kornia as K
from torch import nn
from torch.utils.data import DataLoader

class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.vary = nn.Sequential(
            K.augmentation.RandomHorizontalFlip(same_on_batch=False),
            K.augmentation.RandomRotation((-20, 20)){layer},
        )

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            x = self.vary(x)
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()

    def evaluate(self, val_loader):
        self.model.eval()
        right = 0
        for x, y in val_loader:
            views = self.vary(x.repeat(4, 1, 1, 1))
            with torch.no_grad():
                right += (self.model(views).argmax(1) == y.repeat(4)).sum().item()
        return right

learner = Learner(nn.Sequential(nn.Flatten(), nn.Linear(48, 3)))
for epoch in range(10):
    learner.train_epoch(DataLoader(load("train"), batch_size=8, shuffle=True))
    print(learner.evaluate(DataLoader(load("val"), batch_size=8)))
"""


LISTENER = """
import torch
import torchaudio
from torch import nn
from torch.utils.data import DataLoader

class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        scale = torchaudio.transforms.AmplitudeToDB()
        self.front = nn.Sequential(torchaudio.transforms.MelSpectrogram(16000), scale{layer})
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64 * 32, 5))
    def forward(self, heard):
        return self.body(heard)

def score(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        heard = model.front(x)
        with torch.no_grad():
            correct += (model(heard).argmax(1) == y).sum().item()
    return correct

def main(train_set, val_set):
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        model.train()
        for x, y in DataLoader(train_set, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(model.front(x)), y).backward()
            optimizer.step()
        print(score(model, DataLoader(val_set, batch_size=8)))
"""


@pytest.mark.parametrize(
    ("layer", "expected"), [("", []), (", nn.Conv1d(64, 64, 3)", ["TL203"])], ids=["bare", "learns"]
)
@pytest.mark.parametrize("program", [LISTENER, VARIED], ids=["sound", "pictures"])
def test_transforms_of_a_library_have_no_weights(
    program: str, layer: str, expected: list[str]
) -> None:
    found = check_text(program.format(layer=layer), "train.py").findings
    assert [each.code for each in found if each.severity != "advice"] == expected


@pytest.mark.parametrize(
    ("layer", "of_validation", "of_training"),
    [
        ("nn.Dropout(0.5)", "dropout is active.", "dropout is off."),
        (
            "nn.BatchNorm1d(8)",
            "mode: batch norm normalises with the validation batches and adds them to its running"
            " statistics.",
            "batch norm does not update its running statistics.",
        ),
        (
            "nn.BatchNorm1d(8), nn.Dropout(0.5)",
            "mode: dropout is active, and batch norm normalises with",
            "dropout is off, and batch norm does not update",
        ),
        (
            "build()",
            "mode: dropout is active, and batch norm normalises with",
            "dropout is off, and batch norm does not update",
        ),
    ],
    ids=["dropout", "batch-norm", "both", "unknown"],
)
def test_messages_name_what_the_network_has(
    layer: str, of_validation: str, of_training: str
) -> None:
    model = f"nn.Sequential(nn.Linear(4, 8), {layer}, nn.Linear(8, 3))"
    (validates,) = findings(model=model, mode="pass")
    (trains,) = findings(model=model, train="pass")
    assert of_validation in validates.message
    assert of_training in trains.message


def test_a_module_that_is_called_through_its_base_class_has_its_own_name() -> None:
    program = """
import torch
from torch import nn

class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 2))
    def forward(self, x):
        return self.layers(x)
    def __call__(self, x):
        return super().__call__(x)

listener = Listener()
optimizer = torch.optim.Adam(listener.parameters())
for epoch in range(9):
    for x, y in torch.load("train.pt"):
        optimizer.zero_grad()
        nn.functional.cross_entropy(listener(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in torch.load("val.pt"):
            print(nn.functional.cross_entropy(listener(x), y).item())
"""
    (found,) = [each for each in check_text(program, "train.py").findings if each.code == "TL202"]
    assert found.message.startswith("`listener` validates in train mode")
