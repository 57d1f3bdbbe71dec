"""What a file may cost: a count of steps that holds for every text, and nothing left out unsaid.

The programs here are small, and would take hours or all memory if one operation were free that
grows with its operands. They are read with few steps, so that a cost that is not counted shows as a
test that does not end.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from trueloop.doctor.model.arithmetic import SIZE
from trueloop.doctor.static import Report, check_text
from trueloop.doctor.static.interpreter.step_budget import NESTING, STEPS_A_FILE
from trueloop.doctor.static.interpreter.values import (
    KEY,
    DictValue,
    Sequence,
    Unknown,
    inside,
    short_key,
)

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"
MODEL = "model = nn.Linear(2, 2)\nopt = torch.optim.SGD(model.parameters(), 0.1)\nx = foo()\n"
TRAIN = "loss = model(x).sum()\nloss.backward()\nopt.step()\nopt.zero_grad()\n"


def read(text: str, steps: int = 20_000) -> Report:
    return check_text(text, "/nowhere/a.py", steps=steps, strict=True)


def told(report: Report) -> str:
    found = report.gaps.unread_file("/nowhere/a.py")
    return "" if found is None else found.message


DOUBLED = {
    "tuple": "x = (1, 2)\n" + "x = x + x\n" * 60,
    "list": "x = [1, 2]\n" + "x += x\nx.extend(x)\nx = [*x, *x]\n" * 60 + "f(*x, *x)\n",
    "nested tuple": "x = (model, 2)\n" + "x = (x, x)\n" * 60 + "foo.bar(x)\n" * 99,
    "dict": "x = {'a': 1}\n" + "x = {'k': x, 'j': x, **x}\n" * 60 + "foo.bar(**x)\n" * 99,
    "text": "x = 'ab'\n" + "x = x + x\nx = x.replace('a', 'aaaa')\n" * 60,
    "bytes": "x = b'ab'\n" + "x = x + x\n" * 60 + "x = x * 10**9\n",
    "number": "x = 3\n" + "x = x * x\nx = x ** x\nx = x << x\n" * 60 + "print(x, f'{x}', x == 3)\n",
    "powers": "x = 10**10**10\ny = 1 << 10**9\nz = 9**9**9**9\nw = -1 << 10**9\nif x > y: pass\n",
    "repeated": "x = [0] * 10**10\ny = (0,) * 10**12\nz = 'a' * 10**12\nw = x * 10**9\n",
    "ranges": "a = list(range(10**12))\nb = [i for i in range(10**12)]\nc = 5.5 in range(10**12)\n"
    "d = sum(range(10**12))\ne = sorted(range(10**12))\nf = dict(zip(a, a))\n",
    "formats": "x = '%1000000000d' % 5\ny = '%*d' % (10**9, 5)\nz = '{:>1000000000}'.format(1)\n"
    "w = 'a'.ljust(10**10)\nv = 'a'.zfill(10**10)\nu = f'{1:>1000000000}'\n",
    "formatted": "x = foo()\n" + "x = f'{x}{x!r:{x}}'\n" * 60 + "if x == 3: pass\n",
    "unknown": "x = foo()\n"
    + "x = x * x - x\nx = x and x or x\nx = x[x]\n" * 60
    + "if x > 3: pass\n",
    "zipped": "x = [1, 2]\n" + "x = zip(x, x)\n" * 60 + "for a in x: pass\n",
    "comprehension": "x = [0 " + "for a in range(5) " * 60 + "]\n",
    "kinds": "k = (int, Foo)\nx = foo()\n" + "k = (k, k)\n" * 60 + "isinstance(x, k)\n",
    "parameters": "import itertools\np = model.parameters()\n" + "p = itertools.chain(p, p)\n" * 60,
    "layers": "m = nn.Linear(2, 2)\n" + "m = nn.Sequential(m, m)\n" * 60 + "m(x)\nm.eval()\n" * 3,
    "losses": "l = model(x).mean()\n" + "l = l + l\n" * 60 + "l.backward()\nopt.step()\n",
    "means": "t = nn.functional.mse_loss(x, x).item()\n" + "t = t + t\n" * 60 + "t / len(dl)\n" * 9,
    "stacked": "t = [torch.randn(2)]\n" + "t = [torch.cat(t), torch.cat(t)]\n" * 60,
    "copied": "import copy\nx = [torch.randn(2)]\n"
    + "x = [x, x]\n" * 60
    + "copy.deepcopy(x)\n" * 9,
    "seeds": "x = foo()\n" + "x = bar(x, x, x, x)\n" * 60 + "torch.manual_seed(x)\n" * 9,
    "saved": "x = foo()\n" + "x = bar([x] * 3, x, x)\n" * 60 + "torch.save(model, x)\n" * 9,
    "options": "import argparse\np = argparse.ArgumentParser()\n"
    "p.add_argument('--x', default=[0])\na = p.parse_args()\nz = a.x * 10**9\nw = a.x + a.x\n"
    + "w = w + w\n"
    * 60,
    "calls": "".join(f"def f{i}(): f{i + 1}(); f{i + 1}(); f{i + 1}()\n" for i in range(30))
    + "f0()\n",
    "lambdas": "f = lambda x: x\n" + "f = lambda x, f=f: f(f(x))\n" * 60 + "f(3)\n",
    "generators": "".join(f"def g{i}():\n  yield from g{i + 1}()\n  yield 1\n" for i in range(60))
    + "for a in g0(): loss.backward()\n",
    "loops": "".join(" " * i + f"for a{i} in foo():\n" for i in range(18)) + " " * 18 + "bar()\n",
}


@pytest.mark.parametrize("text", DOUBLED.values(), ids=DOUBLED)
def test_what_doubles_sixty_times_costs_no_more_than_it_may(text: str) -> None:
    report = read(HEAD + MODEL + text)
    assert report.steps < 21_000
    assert all(len(part) < 400 for part in told(report).split(";"))


def _many(line: str, count: int = 2_000) -> str:
    return "".join(line.replace("#", str(i)) for i in range(count))


LONG = {
    "targets": "for a in b:\n for c in d:\n  " + "e, " * 20_000 + " = foo()\n",
    "parameters": "def f(" + _many("a#=1, ") + "): pass\n" + "f()\n" * 500,
    "globals": "def f():\n  global " + _many("g#, ") + "z\n" + "f()\n" * 500,
    "fields": "class M(nn.Module):\n  def __init__(self):\n" + _many("    self.a# = [foo()]\n")
    + "M()\n",
    "attributes": "x = foo()\ny = torch\n" + "x = x.a\ny = y.a\n" * 1_000 + "y()\n" * 50,
    "modules": "import " + ".".join("a" * 900) + "\n" + "a.b()\n" * 500,
    "bases": "class B: pass\nclass A(" + "B, " * 5_000 + "): pass\n" + "A().foo\n" * 500,
    "entries": "x = {}\n" + _many("x[#] = #\ny = {**x}\nz = dict(x)\n"),
    "cases": "match foo():\n" + _many("  case #: bar()\n") + "  case _: pass\n",
    "conditions": "n = foo()\n" + _many("if n == #: bar()\nif n > #: bar()\n"),
    "guards": "if " + _many("a# and ") + "z:\n" + "    foo.bar(model)\n" * 2_000,
    "imports": _many("from a# import *\n") + _many("n#\n"),
    "nothing": "for a in b:\n for c in d:\n  for e in f:\n   if False:\n" + _many("    g#()\n")
    + "   loss.backward()\n",
    "layers": _many("m# = nn.Linear(2, 2)\n", 900) + "m = nn.Sequential("
    + _many("m#, ", 900) + ")\n" + "m(x)\nm.eval()\nm.train()\n" * 300,
    "deep layers": "m = nn.Linear(2, 2)\n" + "m = nn.Sequential(m)\n" * 900 + "m(x)\nm.eval()\n",
    "updates": TRAIN * 900,
    "functions": _many("def f#(): loss.backward()\n") + "def main():\n" + _many("  f#()\n"),
    "numbers": "x = 0x" + "f" * 100_000 + "\ny = x + 1\nz = {x: 1}\nif x > y: pass\n",
    "words": "x = '" + "a" * 100_000 + "'\n" + "if x == y: pass\nfoo[x]\nx in x\n" * 300,
    "joined words": "for a in b:\n" + ("  f'" + "a" * 20_000 + "'\n") * 9,
    "annotation": "def f(x: '" + "a" * 50_000 + "'): pass\n" + "f(*a)\n" * 900,
}  # fmt: skip


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_long_counts_for_its_length(text: str) -> None:
    assert read(HEAD + MODEL + text).steps < 21_000


DEEP = {
    "sum": "x = " + " + ".join(["a"] * 900),
    "calls": "x = a" + ".b()" * 450,
    "elif": "if a: pass\n" + "".join(f"elif b{i}: pass\n" for i in range(900)),
    "with": "with " + ", ".join(["torch.no_grad()"] * 900) + ": pass",
    "decorators": "@torch.no_grad()\n" * 900 + "def f(): pass\nf()",
    "layers": "m = nn.Linear(2, 2)\n" + "m = nn.Sequential(m)\n" * 600 + "m(x)",
    "streams": "x = [1]\n" + "x = enumerate(x)\n" * 600 + "for a in x: pass",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_what_is_nested_too_deeply_is_left_out_and_named(text: str) -> None:
    """What comes after it is read, whoever calls and however deep in calls the caller is."""
    program = f"{HEAD}{MODEL}{text}\nloss = model(x).sum()\nopt.zero_grad()\n" + (
        "for batch in DataLoader(data, shuffle=True):\n"
        "    loss = model(batch).sum()\n    loss.backward()\n"
        "    opt.zero_grad()\n    opt.step()\n"
    )
    report = read(program, STEPS_A_FILE)
    assert f"code nested deeper than {NESTING} levels was skipped, in" in told(report)
    assert [each.code for each in report.findings] == ["TL101"]

    def below(levels: int) -> Report:
        return below(levels - 1) if levels else read(program, STEPS_A_FILE)

    before = sys.getrecursionlimit()
    assert below(300) == report
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * 50_000 + "1",
        "x = y" + ".z" * 50_000,
        "import " + ".".join("a" * 50_000),
        "x = f'" + "{a}" * 30_000 + "'",
    ],
    ids=["signs", "attributes", "module", "formatted"],
)
def test_what_the_parser_cannot_do_in_time_is_refused(text: str) -> None:
    with pytest.raises((RecursionError, MemoryError)):
        read(HEAD + text)


def test_odd_constants_are_no_fault_of_ours() -> None:
    report = read(
        HEAD + "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--y', default=[[0]])\na = p.parse_args()\nx = {}\nx[a.y] = 1\nx[1:2] = 3\n"
        "x.get(a.y)\nx.setdefault(a.y, 2)\na.y in x\nx[{}]\nz = {a.y: 3, None: 4}\n~1.5\n~1e999\n"
        "int(1e999)\nint('9' * 5000)\nstr(10 ** 1200)\nw = dict([(a.y, 1)])\nq = 'a' % a.y\n"
    )
    assert not told(report)


# ------------------------------------------------------------------------------- what was not read


ENDLESS = "def f():\n" + "    g()\n" * 300 + "def g():\n" + "    h()\n" * 300 + "def h(): model()\n"


def test_a_run_that_is_stopped_is_named_with_its_place() -> None:
    report = check_text(HEAD + ENDLESS + "f()\n", "/nowhere/a.py", strict=True)
    found = report.gaps.unread_file("/nowhere/a.py")
    assert found is not None
    assert found.path == "/nowhere/a.py"
    assert re.search(
        r"a run was stopped after 500,000 steps, in `[gh]` \(line \d+\)$", found.message
    )
    assert (found.function, found.line > 3) in (("g", True), ("h", True))


def test_functions_that_were_not_begun_are_named() -> None:
    body = "    for b in c:\n" + "        loss.backward()\n" * 100
    functions = "".join(f"def f{i}(x):\n{body}" for i in range(9))
    report = check_text(HEAD + functions, "/nowhere/a.py", steps=3_000, strict=True)
    assert re.search(
        r"stopped after the 1,000,000 steps of a file, .*; `f\d`, `f\d`, `f\d` and \d more were",
        told(report),
    )


def test_a_file_that_is_read_to_its_end_has_nothing_to_tell() -> None:
    assert not told(read(HEAD + MODEL + TRAIN))


def test_a_neighbour_that_could_not_be_followed_is_named(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("# " + "x" * 500_000)
    (tmp_path / "old.py").write_text("print 'two'\n")
    (tmp_path / "deep.py").write_text("x = " + "-" * 50_000 + "1\n")
    path = tmp_path / "a.py"
    text = HEAD + "import large, old, deep\nlarge.f()\nold.f()\ndeep.f()\nimport gone\ngone.f()\n"
    found = check_text(text, str(path), strict=True).gaps.unread_file(str(path))
    assert found is not None
    assert found.message == (
        "not read to its end: deep.py was not followed: it is nested too deeply; "
        "large.py was not followed: it is larger than 400 kB; "
        "old.py was not followed: it does not parse"
    )


def test_an_error_of_ours_is_named_and_ends_one_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from trueloop.doctor.rules.order.tl101_zero_grad_after_backward import ZeroGradAfterBackward

    def fail(self: object, event: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(ZeroGradAfterBackward, "on_optimizer_step", fail)
    report = check_text(HEAD + MODEL + TRAIN, "/nowhere/a.py")
    assert "a fault of trueloop's own ended a run, please report it" in told(report)
    assert "(KeyError: 'a bug', test_limits.py:" in told(report)


def test_the_same_text_gives_the_same_whatever_was_read_before(tmp_path: Path) -> None:
    """Files share what was parsed, and nothing else."""
    (tmp_path / "helper.py").write_text("def step_all(x):\n    x.backward()\n")
    other = HEAD + "from helper import step_all, other\nfrom helper import *\nstep_all(loss)\n"
    text = HEAD + MODEL + "for i in range(9):\n    for b in c:\n        step_all(b)\n" + TRAIN
    path = str(tmp_path / "a.py")
    alone = check_text(text, path)
    check_text(other, str(tmp_path / "b.py"))
    assert check_text(text, path) == alone


# ------------------------------------------------------------------------------- values


def test_containers_hold_so_much_and_say_that_there_may_be_more() -> None:
    items = Sequence("list", list(range(SIZE + 1)))
    assert (len(items.values), items.open) == (SIZE, True)
    table = DictValue({})
    for i in range(SIZE + 1):
        table.put(i, i)
    assert (len(table.entries), table.rest, table.open) == (SIZE, [SIZE], True)
    table.merge(DictValue({0: "new", "more": 1}))
    assert table.entries[0] == "new"
    assert table.rest == [SIZE, 1]


def test_long_keys_are_equal_for_equal_texts_alone() -> None:
    one, other = "not " + "a" * 2 * KEY, "not " + "a" * 2 * KEY + "b"
    assert Unknown(one).key == Unknown(one).key != Unknown(other).key
    assert len(Unknown(one).key) < KEY
    assert Unknown(one).key == "not " + short_key("a" * 2 * KEY)


def test_parts_are_gone_through_once_depth_first_and_not_for_ever() -> None:
    shared = Sequence("list", ["s"])
    value = Sequence("list", ["a", shared, Sequence("list", [shared, "b"])])
    value.values.append(value)

    def parts(each: object) -> list[object]:
        return each.values if isinstance(each, Sequence) else []

    assert [each for each in inside(value, parts, 9) if isinstance(each, str)] == ["a", "s", "b"]
    assert [each for each in inside(value, parts, 1) if isinstance(each, str)] == ["a"]


@pytest.mark.parametrize(
    ("text", "line", "function"),
    [
        ("import torch\nfrom helper import slow\n\nslow(torch.ones(2))\n", 4, ""),
        (
            "import torch\nimport helper\n\n\n"
            "def main(x):\n    helper.slow(x)\n\n\nmain(torch.ones(2))\n",
            6,
            "main",
        ),
        ("import torch\nfrom helper import outer\nprint(outer(torch.ones(2)))\n", 3, ""),
    ],
)
def test_what_stops_in_an_imported_file_has_a_line_of_this_one(
    tmp_path: Path, text: str, line: int, function: str
) -> None:
    body = "    x = torch.relu(x)\n" * 300
    outer = "\n\ndef outer(x):\n    return slow(x)\n"
    (tmp_path / "helper.py").write_text(f"import torch\n\n\ndef slow(x):\n{body}{outer}")
    file = tmp_path / "a.py"
    file.write_text(text)
    unread = check_text(text, str(file), steps=150).gaps.unread_file(str(file))
    assert unread is not None
    assert (unread.line, unread.function) == (line, function)
    assert "of helper.py" in unread.message


def test_a_loss_may_be_unpacked_into_nothing() -> None:
    text = HEAD + MODEL + "[] = nn.functional.mse_loss(model(x), x)\n"
    assert check_text(text, "run.py", strict=True).findings == []
