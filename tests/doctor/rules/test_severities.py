"""Which findings are errors, which are warnings, and which are advice; and what they say."""

from __future__ import annotations

import textwrap

import pytest

from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static import check_text

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
loader = torch.load("batches.pt")
"""


def found(program: str, path: str = "program.py", optimizer: str = "SGD") -> list[Finding]:
    text = HEAD.format(optimizer=optimizer) + textwrap.dedent(program)
    return check_text(text, path, strict=True).findings


def told(program: str, path: str = "program.py", optimizer: str = "SGD") -> list[tuple[str, str]]:
    """Codes and severities."""
    return [(each.code, each.severity) for each in found(program, path, optimizer)]


# ------------------------------------------------------------------------- TL205: hooks

DIRECT = """
{before}
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model.forward(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "severity"),
    [
        ("pass", "advice"),
        ("model.register_forward_hook(print)", "warning"),
        ("model.register_forward_pre_hook(print)", "warning"),
        ("for each in model.modules(): each.register_forward_hook(print)", "warning"),
        ("model.compile()", "warning"),
        ("from torch.distributed.fsdp import fully_shard\nfully_shard(model)", "warning"),
        ("nn.modules.module.register_module_forward_hook(print)", "warning"),
        # The hooks of a part run when the whole calls that part.
        ("model[0].register_forward_hook(print)", "advice"),
        ("nn.utils.spectral_norm(model[0])", "advice"),
        ("handle = model.register_forward_hook(print)\nhandle.remove()", "advice"),
        ("model.register_full_backward_hook(print)", "advice"),
        ("model = torch.compile(model)", "advice"),
        ("model = nn.DataParallel(model)", "advice"),
    ],
)
def test_a_direct_forward_is_a_fault_where_a_hook_is_left_out(before: str, severity: str) -> None:
    assert told(DIRECT.format(before=before)) == [("TL205", severity)]


@pytest.mark.parametrize(
    "set_hook",
    [
        "nn.utils.weight_norm(layer)",
        "nn.utils.spectral_norm(layer)",
        "nn.utils.prune.l1_unstructured(layer, name='weight', amount=0.5)",
    ],
)
def test_hooks_that_compute_a_weight(set_hook: str) -> None:
    program = f"layer = nn.Linear(4, 3)\n{set_hook}\nprint(layer.forward(torch.ones(1, 4)))\n"
    assert told(program) == [("TL205", "warning")]
    parametrized = "layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))\n"
    assert told(f"{parametrized}print(layer.forward(torch.ones(1, 4)))\n") == [("TL205", "advice")]


# ------------------------------------------------------------------------- TL503: the scale

SCALED = """
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    optimizer.step()
    scaler.update()
"""


@pytest.mark.parametrize(
    ("optimizer", "says", "not_said"),
    [
        ("SGD", "times too large", "keep their size"),
        ("Adam", "keep their size", "too large"),
        ("AdamW", "keep their size", "too large"),
        ("RMSprop", "keep their size", "too large"),
        ("LBFGS", "too large by the loss scale", "keep their size"),
    ],
)
def test_a_scaled_step_is_told_for_its_optimizer(optimizer: str, says: str, not_said: str) -> None:
    (finding,) = [each for each in found(SCALED, optimizer=optimizer) if each.code == "TL503"]
    assert says in finding.message
    assert not_said not in finding.message


# ------------------------------------------------------------------------- advice

AUTOCAST = """
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
        {inside}
    {outside}
"""


@pytest.mark.parametrize(
    ("inside", "outside"),
    [("loss.backward()", "optimizer.step()"), ("loss.backward(); optimizer.step()", "pass")],
)
def test_backward_in_autocast_is_advice(inside: str, outside: str) -> None:
    program = AUTOCAST.format(inside=inside, outside=outside)
    assert told(program) == [("TL509", "advice")]


SPLIT = """
from sklearn.model_selection import train_test_split
from {module} import {kind}
table = read("table.csv")
table = {kind}().fit_transform(table, labels)
train, test = train_test_split(table)
"""


@pytest.mark.parametrize(
    ("module", "kind", "severity"),
    [
        ("sklearn.preprocessing", "StandardScaler", "advice"),
        ("sklearn.preprocessing", "MinMaxScaler", "advice"),
        ("sklearn.impute", "SimpleImputer", "advice"),
        ("sklearn.decomposition", "PCA", "advice"),
        ("sklearn.feature_selection", "SelectKBest", "error"),
        ("sklearn.feature_selection", "RFE", "error"),
        ("sklearn.preprocessing", "TargetEncoder", "error"),
        ("category_encoders", "LeaveOneOutEncoder", "error"),
        ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis", "error"),
    ],
)
def test_what_looks_at_the_targets_is_an_error(module: str, kind: str, severity: str) -> None:
    assert told(SPLIT.format(module=module, kind=kind)) == [("TL706", severity)]


DIVERGENCE = """
teacher = nn.Linear(4, 3)
criterion = nn.KLDivLoss()
for x, y in loader:
    with torch.no_grad():
        wanted = teacher(x).softmax(1)
    scores = model(x)
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ALONE = "criterion(scores.log_softmax(1), wanted)"


@pytest.mark.parametrize(
    ("loss", "optimizer"),
    [
        (ALONE, "Adam"),
        (ALONE, "SGD"),
        (f"0.5 * F.cross_entropy(scores, y) + 8 * {ALONE}", "AdamW"),
    ],
)
def test_a_divergence_averaged_over_classes(loss: str, optimizer: str) -> None:
    program = DIVERGENCE.format(loss=loss)
    assert told(program, optimizer=optimizer) == [("TL405", "advice")]


# ------------------------------------------------------------------------- words


def test_the_activation_before_cross_entropy_is_named() -> None:
    program = """
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x).{activation}, y).backward()
        optimizer.step()
    """
    for activation, name in (("sigmoid()", "sigmoid"), ("softmax(1)", "softmax")):
        (finding,) = found(program.replace("{activation}", activation))
        assert f"The softmax of a {name} is nearly flat" in finding.message
        assert f"apply the {name} only" in (finding.fix or "")


TUPLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = {value}
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.first{use}(x))
"""


@pytest.mark.parametrize(
    ("value", "use", "comma"),
    [
        ("nn.Linear(4, 4),", "", True),
        ("nn.Conv2d(\n            in_channels=3, out_channels=3, kernel_size=1),", "", True),
        ("nn.Sequential(nn.Linear(4, 4)),", "", True),
        ("(nn.Linear(4, 4),)", "[0]", False),
        ("nn.Linear(4, 4), nn.Linear(4, 4)", "[0]", False),
        ("[nn.Linear(4, 4)]", "[0]", False),
    ],
)
def test_a_comma_at_the_end_makes_a_tuple(value: str, use: str, comma: bool) -> None:
    program = TUPLE.format(value=value, use=use) + "net = Net()\nprint(net(torch.ones(1, 4)))\n"
    (finding,) = found(program)
    assert finding.code == "TL303"
    assert ("comma" in finding.message) is comma
    assert (finding.fix == "Remove the comma.") is comma


ACCUMULATED = """
{options}
for i, (x, y) in enumerate(loader):
    F.cross_entropy(model(x), y).backward()
    if (i + 1) % {size} == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("options", "size", "shown"),
    [
        ("args = parse()", "args.accumulate", "accumulate"),
        ("def get(): return read()\nargs = get()", "args.accumulate", "accumulate"),
        ("args = read()[0]", "args.train.accumulate", "accumulate"),
        ("", "4", "4"),
    ],
)
def test_a_window_has_the_name_that_the_program_gives_it(
    options: str, size: str, shown: str
) -> None:
    (finding,) = found(ACCUMULATED.format(options=options, size=size))
    assert finding.code == "TL505"
    assert "<" not in finding.message
    assert f"{shown}`" in finding.message


VALIDATED = """
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
validation = torch.load("validation.pt")
def validate():
    model.eval()
    with torch.no_grad():
        for x, y in validation:
            print((model(x).argmax(1) == y).sum().item())
"""
EVERY_K_STEPS = """
for epoch in range(9):
    model.train()
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if i % 100 == 0:
            validate()
"""
EVERY_EPOCH = """
model.train()
for epoch in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    validate()
"""


@pytest.mark.parametrize(
    ("training", "says"),
    [
        (EVERY_K_STEPS, "after the validation at line 16: it runs inside the training loop"),
        (EVERY_EPOCH, "before the loop over the training batches, in every epoch"),
    ],
)
def test_train_is_wanted_where_it_helps(training: str, says: str) -> None:
    (finding,) = found(VALIDATED + training)
    assert finding.code == "TL201"
    assert says in (finding.fix or "")


# ------------------------------------------------------------------------- TL204: graphs kept

EPOCHS = """
losses, total, table = [], 0.0, {{}}
for epoch in range(9):
    {begin}
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward({retain})
        optimizer.step()
        {keep}
"""


@pytest.mark.parametrize(
    ("begin", "keep", "retain", "severity"),
    [
        ("total = 0.0", "total += loss", "", "advice"),
        ("losses = []", "losses.append(loss)", "", "advice"),
        ("pass", "losses.append(loss)", "", "warning"),
        ("pass", "total += loss", "", "warning"),
        ("pass", "total = total + loss * len(x)", "", "warning"),
        ("pass", "table[i] = loss", "", "warning"),
        ("total = 0.0", "total += loss", "retain_graph=True", "error"),
        ("pass", "losses.append(loss)", "retain_graph=True", "error"),
        ("losses = []", "losses.append(loss)", "create_graph=True", "error"),
    ],
)
def test_what_a_kept_graph_costs(begin: str, keep: str, retain: str, severity: str) -> None:
    program = EPOCHS.format(begin=begin, keep=keep, retain=retain)
    assert told(program) == [("TL204", severity)]


def test_a_graph_that_an_option_retains_costs_what_it_costs_without_the_option() -> None:
    program = EPOCHS.format(begin="losses = []", keep="losses.append(loss)", retain="")
    backward = "loss.backward(retain_graph=True) if args.surgery else loss.backward()"
    program = "import sys\nargs = sys.argv\n" + program.replace("loss.backward()", backward)
    assert told(program) == [("TL204", "advice")]


@pytest.mark.parametrize(
    ("keep", "let_go", "severity"),
    [
        ("losses.append(loss)", "if i % log: losses.clear()", "advice"),
        ("losses.append(loss)", "if len(losses) > 50: losses.pop(0)", "advice"),
        ("losses.append(loss)", "losses = losses[-50:]", "advice"),
        ("losses.append(loss)", "if full(losses): del losses[:]", "advice"),
        ("losses.append(loss)", "if full(losses): losses[:] = []", "advice"),
        ("total += loss", "if accelerator.sync_gradients: total = 0", "advice"),
        ("total += loss", "if synced(): total, losses = torch.zeros(1), []", "advice"),
        ("table[i] = loss", "if full(table): table.clear()", "advice"),
        # What is taken out is put back, or is another list.
        ("losses.append(loss)", "if full(losses): losses = [*losses]", "warning"),
        ("losses.append(loss)", "if full(losses): others = []", "warning"),
        ("total += loss", "if full(losses): total = total / 2", "warning"),
    ],
)
def test_what_a_loop_lets_go_of(keep: str, let_go: str, severity: str) -> None:
    begin = "from accelerate import Accelerator\naccelerator = Accelerator()\n"
    program = EPOCHS.format(begin="pass", keep=f"{keep}\n        {let_go}", retain="")
    assert told(begin + program) == [("TL204", severity)]


STEPS = """
total, losses = 0.0, []
x, y = torch.ones(8, 4), torch.ones(8, dtype=torch.long)
{loop}:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    {keep}
"""


@pytest.mark.parametrize(
    ("loop", "keep", "severity"),
    [
        ("for step in range(10_000_000)", "total += loss", "warning"),
        ("while True", "losses.append(loss)", "warning"),
        ("for step in range(10)", "losses.append(loss)", "advice"),
        ("for step in range(200)", "if step % 10 == 0: losses.append(loss)", "advice"),
        ("for step in range(1000)", "losses.append(loss)", "advice"),
        ("for step in range(1001)", "losses.append(loss)", "warning"),
        ("for step in range(90_000)", "if step % 10 == 0: losses.append(loss)", "warning"),
    ],
)
def test_a_loop_that_is_the_whole_run(loop: str, keep: str, severity: str) -> None:
    assert told(STEPS.format(loop=loop, keep=keep)) == [("TL204", severity)]


def test_an_epoch_in_a_function_ends_with_it() -> None:
    program = """
    def train_epoch(model, loader, optimizer):
        total = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss
        return total / len(loader)
    """
    assert told(program) == [("TL204", "advice")]
    epochs = "for epoch in range(9): train_epoch(model, loader, optimizer)\n"
    assert told(textwrap.dedent(program) + epochs) == [("TL204", "advice")]


def test_parts_of_an_epoch_are_no_epochs() -> None:
    program = """
    for epoch in range(9):
        {begin}
        for part in range(22):
            for x, y in torch.load(f"part_{part}.pt"):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                total += loss
    """
    assert told(program.replace("{begin}", "total = 0")) == [("TL204", "advice")]
    assert told(f"total = 0\n{textwrap.dedent(program).replace('{begin}', 'pass')}") == [
        ("TL204", "warning")
    ]


RECORDED = """
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def validate(val_loader):
    model.eval()
    total, outputs = 0.0, []
    {grad}for x, y in val_loader:
        {body}
    return total, outputs


validate(torch.utils.data.DataLoader(read("validation"), batch_size=8))
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("outputs.append(model(x))", [("TL204", "error")]),
        ("total += F.cross_entropy(model(x), y)", [("TL204", "error")]),
        ("out = model(x); outputs.append(out.softmax(1))", [("TL204", "error")]),
        ("total += F.cross_entropy(model(x), y).item()", [("TL203", "warning")]),
        ("outputs.append(model(x).argmax(1).cpu().numpy())", [("TL203", "warning")]),
        ("outputs.append(model(x).detach())", [("TL203", "warning")]),
    ],
)
def test_what_a_validation_keeps_with_its_graph(body: str, expected: list[tuple[str, str]]) -> None:
    assert told(RECORDED.format(grad="", body=body)) == expected
    quiet = RECORDED.replace("def validate", "@torch.no_grad()\ndef validate")
    assert told(quiet.format(grad="", body=body)) == []


@pytest.mark.parametrize(
    "made",
    [
        "Variable(x, volatile=True)",
        "Variable(x, volatile=True).cuda()",
        "Variable(x.cuda(), volatile=True).float()",
    ],
)
def test_programs_of_torch_0_3_turn_recording_off(made: str) -> None:
    program = f"from torch.autograd import Variable\n{RECORDED}".format(
        grad="", body=f"total += F.cross_entropy(model({made}), y).data[0]"
    )
    assert told(program) == []


ROLLOUTS = """
class Agent:
    def update(self, buffer):
        total = 0
        for _ in range(self.epochs):
            for x, y in buffer:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss
        return total / self.epochs
{call}
"""


@pytest.mark.parametrize(
    ("call", "severity"),
    [
        ("", "advice"),  # for each rollout, as far as is seen
        (
            "agent = Agent()\n"
            "agent.epochs, agent.model, agent.optimizer = 9, model, optimizer\n"
            "agent.update(loader)",
            "warning",
        ),
    ],
)
def test_a_method_that_nobody_calls_may_run_again_and_again(call: str, severity: str) -> None:
    assert told(ROLLOUTS.format(call=call)) == [("TL204", severity)]


# ------------------------------------------------------------- TL505, TL508: by an option

BY_OPTION = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--micro", type=int, default={default})
args = parser.parse_args()
for i, (x, y) in enumerate(loader):
    {before}
    loss = F.cross_entropy(model(x), y){divided}
    loss.backward()
    if (i + 1) % args.micro == 0:
        optimizer.step()
        {after}
"""


@pytest.mark.parametrize(("default", "severity"), [(1, "advice"), (4, "{usual}")])
@pytest.mark.parametrize(
    ("code", "usual", "before", "divided", "after"),
    [
        ("TL505", "warning", "pass", "", "optimizer.zero_grad()"),
        ("TL508", "error", "optimizer.zero_grad()", " / args.micro", "pass"),
    ],
)
def test_an_option_that_is_off_by_default_is_advice(
    code: str, usual: str, before: str, divided: str, after: str, default: int, severity: str
) -> None:
    program = BY_OPTION.format(default=default, before=before, divided=divided, after=after)
    assert (code, severity.format(usual=usual)) in told(program)


# ------------------------------------------------------------------------- TL201, TL202: networks

HANDED_IN = """
import torch
from torch import nn

{made}
def fit({given}optimizer, loader, val_loader, losses):
    for epoch in range(9):
        {mode}
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        {evaluation}
        with torch.no_grad():
            for x, y in val_loader:
                losses.append(nn.functional.cross_entropy(net(x), y).item())
        {after}
"""
TRAINS_IN_EVAL_MODE = {"mode": "pass", "evaluation": "net.eval()", "after": "pass"}
VALIDATES_IN_TRAIN_MODE = {"mode": "net.train()", "evaluation": "pass", "after": "net.eval()"}


@pytest.mark.parametrize(
    ("code", "modes"),
    [("TL201", TRAINS_IN_EVAL_MODE), ("TL202", VALIDATES_IN_TRAIN_MODE)],
)
@pytest.mark.parametrize(
    ("made", "given", "severity"),
    [
        ("", "net, ", "advice"),
        ("import cplx\nnet = nn.Sequential(nn.Linear(4, 8), cplx.Layer(8))", "", "advice"),
        ("net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))", "", "error"),
        ("import torchvision\nnet = torchvision.models.resnet18()", "", "error"),
        ("import timm\nnet = timm.create_model('resnet18')", "", "error"),
    ],
    ids=["handed in", "unknown layers", "own", "of torchvision", "of timm"],
)
def test_a_mode_is_advice_where_nothing_shows_dropout_or_batch_norm(
    code: str, modes: dict[str, str], made: str, given: str, severity: str
) -> None:
    program = HANDED_IN.format(made=made, given=given, **modes)
    reports = [each for each in check_text(program, "fit.py").findings if each.code == code]
    assert [each.severity for each in reports] == [severity]
    assert ("if it has such layers" in reports[0].message) == (severity == "advice")


# ------------------------------------------------------------------------- TL804: wrappers

WRAPPED = """
import sys
args = sys.argv
bare = nn.Linear(4, 8)
bare.load_state_dict(torch.load("net.pt")["net"])
if {condition}:
    model = nn.DataParallel(model)
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
torch.save({{"net": model.state_dict()}}, "net.pt")
"""


@pytest.mark.parametrize(
    ("condition", "severity"),
    [
        ("True", "warning"),
        ("torch.cuda.device_count() > 1", "warning"),
        ("args.parallel", "advice"),
    ],
)
def test_a_wrapper_by_an_option_is_there_in_all_runs_or_in_none(
    condition: str, severity: str
) -> None:
    reports = told(WRAPPED.format(condition=condition))
    assert [found for code, found in reports if code == "TL804"] == [severity]


UNDIVIDED = """
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(("optimizer", "divides"), [("SGD", False), ("AdamW", True)])
def test_what_adam_leaves_of_a_factor(optimizer: str, divides: bool) -> None:
    (only,) = found(UNDIVIDED.format(optimizer=optimizer))
    assert (only.code, only.severity) == ("TL505", "warning")
    assert ("`AdamW` divides this away" in only.message) is divides


# ------------------------------------------------------- TL606: a schedule beside a second one

TWO_SCHEDULES = """
from torch.optim.lr_scheduler import ExponentialLR, LinearLR, MultiStepLR
plan = ExponentialLR(optimizer, gamma=0.9)
{second}
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    {step}
"""


@pytest.mark.parametrize(
    ("second", "step", "severity"),
    [
        ("pass", "pass", "warning"),
        ("used = MultiStepLR(optimizer, [4, 8])", "used.step()", "advice"),
        ("used = MultiStepLR(optimizer, [4, 8])", "pass  # used.step()", "advice"),
        # Of two schedules that follow each other, both are wanted.
        ("warmup = LinearLR(optimizer, 0.1, total_iters=3)", "warmup.step()", "warning"),
        ("raised = LinearLR(optimizer, 0.1, total_iters=3)", "raised.step()", "warning"),
        (
            "first = LinearLR(optimizer, 0.1, total_iters=3)\nused = MultiStepLR(optimizer, [4])",
            "used.step()",
            "warning",
        ),
        # Each optimizer has its own.
        (
            "other = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)\n"
            "used = MultiStepLR(other, [4, 8])",
            "used.step()",
            "warning",
        ),
    ],
)
def test_a_schedule_may_be_left_over(second: str, step: str, severity: str) -> None:
    raised = told(TWO_SCHEDULES.format(second=second, step=step))
    assert ("TL606", severity) in raised
