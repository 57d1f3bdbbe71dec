"""Fixes: the edits are the ones that were meant, and nothing else in the file changes."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from trueloop.doctor.model.findings import Delete, Finding, Insert, Location, Move, Remedy, Replace
from trueloop.doctor.static.fixes.apply import Fixed, fix_text, fix_until_done

LOOP = textwrap.dedent(
    """
    import torch

    def train(model, loader, optimizer):
        for epoch in range(10):
            # one pass
            for x, y in loader:
                out = model(x)
                loss = (out - y).square().mean()
                loss.backward()
                # old gradients go
                optimizer.zero_grad()  # here
                optimizer.step()
            print(epoch)
    """
).lstrip()


def place(text: str, code: str, *, statement: bool = False) -> Location:
    """Where `code` first stands in `text`."""
    at = text.index(code)
    before, inside = text[:at], text[: at + len(code)]
    lines = [part.count("\n") + part.replace("\r\n", "").count("\r") for part in (before, inside)]
    columns = [len(part) - max(part.rfind("\n"), part.rfind("\r")) for part in (before, inside)]
    return Location("a.py", lines[0] + 1, columns[0], lines[1] + 1, columns[1])


def finding(*remedies: Remedy, line: int = 1) -> Finding:
    return Finding("TL101", "x", "error", Location("a.py", line), "wrong", remedies=remedies)


def fix(text: str, *remedies: Remedy) -> Fixed:
    return fix_text(text, [finding(*remedies)])


def moved(text: str, what: str, target: str, where: str) -> Fixed:
    return fix(text, Move(place(text, what), place(text, target), where))  # type: ignore[arg-type]


def reason(fixed: Fixed) -> str:
    (left,) = fixed.left
    assert not fixed.fixed
    return left.reason


def test_a_line_moves_with_its_comments() -> None:
    fixed = moved(LOOP, "optimizer.zero_grad()", "loss.backward()", "before")
    assert fixed.fixed
    assert fixed.text == LOOP.replace(
        """            loss.backward()
            # old gradients go
            optimizer.zero_grad()  # here
""",
        """            # old gradients go
            optimizer.zero_grad()  # here
            loss.backward()
""",
    )


def test_a_line_goes_above_the_comment_of_its_target() -> None:
    text = "a()\n# about b\nb()\nc()\n"
    assert moved(text, "c()", "b()", "before").text == "a()\nc()\n# about b\nb()\n"


def test_a_line_takes_the_indentation_of_another_block() -> None:
    fixed = moved(LOOP, "print(epoch)", "out = model(x)", "before")
    assert "            print(epoch)\n            out = model(x)" in fixed.text
    back = moved(fixed.text, "print(epoch)", "for x, y in loader:", "after")
    assert back.text == LOOP


def test_a_line_that_is_alone_in_its_condition_moves_with_it() -> None:
    text = "if a:\n    if clips:\n        # so\n        clip()\nstep()\nback()\n"
    fixed = moved(text, "clip()", "back()", "after")
    assert fixed.text == "step()\nback()\nif a:\n    if clips:\n        # so\n        clip()\n"
    text = "if a:\n    if clips:\n        clip()\n    back()\n"
    assert moved(text, "clip()", "back()", "after").text == (
        "if a:\n    back()\n    if clips:\n        clip()\n"
    )


def test_tabs_stay_tabs() -> None:
    text = LOOP.replace("    ", "\t")
    fixed = moved(text, "print(epoch)", "optimizer.step()", "after")
    assert fixed.text.endswith("\t\t\toptimizer.step()\n\t\t\tprint(epoch)\n")
    loop = place(text, "for x, y in loader:")
    added = fix(text, Insert("if True:\n    model.train()", loop, "before"))
    assert "\n\t\tif True:\n\t\t\tmodel.train()\n\t\t# one pass\n\t\tfor x, y" in added.text


def test_a_statement_of_several_lines_moves_whole_and_its_texts_stay() -> None:
    text = 'if a:\n    f(\n        """one\n    two""",\n        3,\n    )\n    g()\nh()\n'
    what = 'f(\n        """one\n    two""",\n        3,\n    )'
    fixed = moved(text, what, "h()", "after")
    assert fixed.text == 'if a:\n    g()\nh()\nf(\n    """one\n    two""",\n    3,\n)\n'


def test_a_place_that_is_only_a_line_is_found() -> None:
    text = "for x in y:\n    step()\n    clip()\n"
    fixed = fix(text, Move(Location("a.py", 3), Location("a.py", 2), "before"))
    assert fixed.text == "for x in y:\n    clip()\n    step()\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("final", [True, False], ids=["newline", "none"])
def test_line_endings_mark_and_last_newline_stay(newline: str, mark: str, final: bool) -> None:
    lines = ["α = 'ä'", "β()", "γ()"]

    def written(*order: int) -> str:
        return mark + newline.join(lines[k] for k in order) + (newline if final else "")

    text = written(0, 1, 2).removeprefix("\ufeff")
    up = Move(place(text, "γ()"), place(text, "β()"), "before")
    down = Move(place(text, "β()"), place(text, "γ()"), "after")
    added = Insert("δ = 1", place(text, "γ()"), "after")
    assert fix(mark + text, up).text == written(0, 2, 1)
    assert fix(mark + text, down).text == written(0, 2, 1)
    lines.append("δ = 1")
    assert fix(mark + text, added).text == written(0, 1, 2, 3)
    assert fix(mark + text, Delete(place(text, "γ()"))).text == written(0, 1)


@pytest.mark.parametrize(
    ("text", "what", "target", "why"),
    [
        ("a(); b()\nc()\n", "b()", "c()", "shares its line"),
        ("if x: a(); b()\nc()\n", "a()", "c()", "shares its line"),
        ("for x in y: a()\nc()\n", "a()", "c()", "shares its line"),
        ("c()\nif x: a()\n", "c()", "a()", "shares its line"),
        ("a(); \\\nb()\nc()\n", "b()", "c()", "shares its line"),
        ("if x:\n    a()\nelse:\n    b()\nc()\n", "a()", "c()", "block would be empty"),
        ("for x in y:\n    a()\nc()\n", "a()", "c()", "block would be empty"),
        ("def f():\n    a()\n    b()\nc()\n", "a()", "c()", "a different function"),
        ("class A:\n    b()\n    def f(s):\n        a()\n", "b()", "a()", "a different function"),
        ("b = g()\na(b)\nc()\n", "b = g()", "c()", "depends on through 'b'"),
        ("if x:\n    a()\nelif y:\n    b()\nc()\n", "x", "c()", "head of a block"),
        ("for x in y:\n    a()\n    b()\n", "for x in y:\n    a()\n    b()", "a()", "into itself"),
        ("a()\nb()\nc()\n", "b()", "a()", "is there already"),
    ],
)  # fmt: skip
def test_what_cannot_be_moved_safely_is_left(text: str, what: str, target: str, why: str) -> None:
    fixed = moved(text, what, target, "after")
    assert why in reason(fixed)
    assert fixed.text == text


def test_a_line_does_not_pass_what_it_depends_on_upward_either() -> None:
    text = "a()\nparameters = f()\nclip(parameters)\n"
    assert "'parameters'" in reason(moved(text, "clip(parameters)", "a()", "before"))


def test_nothing_goes_before_an_elif() -> None:
    text = "if x:\n    a()\nelif y:\n    b()\nc()\n"
    fixed = fix(text, Insert("d()", Location("a.py", 3), "before"))
    assert reason(fixed)
    assert fixed.text == text


@pytest.mark.parametrize(
    ("text", "what", "new", "result"),
    [
        ("t += loss\n", "loss", "{}.item()", "t += loss.item()\n"),
        ("t += a + b\n", "a + b", "{}.item()", "t += (a + b).item()\n"),
        ("m.forward(x)\n", "m.forward", "m", "m(x)\n"),
        ("d(x, 0.5)\n", "0.5", "{}, training=self.training", "d(x, 0.5, training=self.training)\n"),
        ("load(p, a=c)\n", "c", "{}, safe=True", "load(p, a=c, safe=True)\n"),
        ("load(p, a=c)\n", "a=c", "{}, w=True", "load(p, a=c, w=True)\n"),
        ("load(p, a=c)\n", "a=c", "a", None),
        ("load(p, a=c, b=1)\n", "c", "{}, w=True", "load(p, a=c, w=True, b=1)\n"),
        ("s = [\n    a,  # 1\n]\n", "[\n    a,  # 1\n]", "L({})", "s = L([\n    a,  # 1\n])\n"),
        ("x = 2 * y\n", "y", "{} + 1", None),
        ("x = y\n", "y", "{}, z=1", None),
        ("load(p, a=1)\n", "p", "a=2, {}", None),
        ("x = f'{y}'\n", "y", "{}.item()", None),
        ("x = yy\n", "y", "z", None),
        ("x = y\n", "y", "{} +", None),
    ],
)  # fmt: skip
def test_an_expression_is_replaced_where_it_stands(
    text: str, what: str, new: str, result: str | None
) -> None:
    fixed = fix(text, Replace(place(text, what), new))
    assert fixed.text == (result or text)
    assert bool(fixed.fixed) is (result is not None)


def test_a_deleted_line_leaves_the_comment_above() -> None:
    fixed = fix(LOOP, Delete(place(LOOP, "optimizer.zero_grad()")))
    assert fixed.text == LOOP.replace("            optimizer.zero_grad()  # here\n", "")


def test_the_remedies_of_a_finding_go_together_or_not_at_all() -> None:
    text = "a()\nb()\n(x)\n"
    both = fix(text, Insert("c = 1", place(text, "a()"), "after"), Replace(place(text, "x"), "c"))
    assert both.text == "a()\nc = 1\nb()\n(c)\n"
    half = fix(text, Insert("c = 1", place(text, "a()"), "after"), Replace(place(text, "b"), "1 +"))
    assert half.text == text


def test_several_lines_behind_one_line_keep_the_order_they_were_given_in() -> None:
    text = "a()\nb()\nc()\nd()\n"
    a, b, c = (place(text, code) for code in ("a()", "b()", "c()"))
    fixed = fix(text, Move(c, a, "after"), Insert("e()", a, "after"))
    assert fixed.text == "a()\nc()\ne()\nb()\nd()\n"
    swapped = fix(text, Move(b, c, "after"), Move(a, c, "after"))
    assert swapped.text == "c()\nb()\na()\nd()\n"


def test_of_two_fixes_for_one_line_the_first_wins() -> None:
    text = "a()\nb()\nc()\n"
    first = finding(Move(place(text, "c()"), place(text, "a()"), "before"))
    second = finding(Delete(place(text, "c()")))
    same = finding(*first.remedies, line=2)
    fixed = fix_text(text, [first, second, same])
    assert fixed.text == "c()\na()\nb()\n"
    assert fixed.fixed == (first, same)
    (left,) = fixed.left
    assert left.finding is second
    assert left.later


def test_an_edit_in_another_file_is_refused() -> None:
    other = Location("b.py", 1)
    assert "a different file" in reason(fix("a()\n", Delete(other)))
    move = Move(Location("a.py", 2), other, "before")
    assert "a different function" in reason(fix("a()\nb()\n", move))


@pytest.mark.parametrize("text", ["a(\n", "a\x00", "print 'x'\n"], ids=["open", "null", "two"])
def test_what_does_not_parse_is_left_alone(text: str) -> None:
    fixed = fix(text, Delete(Location("a.py", 1)))
    assert fixed.text == text
    assert "does not parse" in reason(fixed)


def test_a_place_that_is_not_in_the_text_is_refused() -> None:
    assert "not what was checked" in reason(fix("a()\n", Delete(Location("a.py", 7, 1, 7, 3))))
    assert "not what was checked" in reason(
        fix("a()\n", Replace(Location("a.py", 1, 2, 1, 9), "b"))
    )


def test_a_finding_without_a_remedy_is_left() -> None:
    assert "no single edit is safe" in reason(fix_text("a()\n", [finding()]))


def find_bad(text: str) -> Sequence[Finding]:
    """A checker of one rule: nothing is called `bad`."""
    return [
        finding(Replace(Location("a.py", 1, k + 1, 1, k + 4), "ok"), line=k)
        for k in range(len(text))
        if text.startswith("bad", k)
    ]


def test_passes_go_on_until_nothing_is_left_to_fix() -> None:
    text = "f(bad, bad, bad)\n"
    assert fix_text(text, find_bad(text)).text == "f(ok, bad, bad)\n"
    fixed = fix_until_done(text, find_bad(text), find_bad)
    assert fixed.text == "f(ok, ok, ok)\n"
    assert len(fixed.fixed) == 3
    assert not fixed.left


def test_a_fix_that_brings_another_fault_is_not_kept() -> None:
    def check(text: str) -> Sequence[Finding]:
        where = Location("a.py", 1)
        if text.startswith("a"):
            return [finding(Replace(place(text, "a"), "b"))]
        return [Finding("TL999", "worse", "error", where, "worse")] if text.startswith("b") else []

    fixed = fix_until_done("a\n", check("a\n"), check)
    assert fixed.text == "a\n"
    assert "would not put it right" in reason(fixed)


# ------------------------------------------------------------------------- any move, any program

PROGRAMS = [
    LOOP,
    textwrap.dedent(
        '''
        """A doc."""
        # %% cell
        class Trainer:
            """Another
            doc."""

            @property
            def x(self):
                return f"""{self.y}
                no"""

            def run(self, data):
                if data: self.go()
                for batch in data:
                    # forward
                    # and back
                    loss = self.step(
                        batch,
                        "one"
                        "two",  # why
                    )

                    try:
                        self.back(loss); self.clip()
                    except ValueError:
                        pass
                    else:
                        self.opt.step()
                    while (
                        self.again
                    ):
                        self.more()
                        # trailing
                with self.off(), \\
                        self.on():
                    self.val()
                    self.log("""a
            b""")
                return 1
        '''
    ),
    textwrap.dedent(
        """
        optimizer.zero_grad()
        for i, batch in enumerate(loader):
            out = model(batch)
            loss = f(out)
            loss.backward()

            if i % 2 == 0:
                clip(model)
                optimizer.step()
                optimizer.zero_grad()

            elif i % 3:
                pass
            else:
                total += loss

            bar.update()
        save(model)"""
    ),
]


def statement_places(text: str) -> list[Location]:
    return [
        Location(
            "a.py",
            node.lineno,
            node.col_offset + 1,
            node.end_lineno or 0,
            (node.end_col_offset or 0) + 1,
        )
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt)
    ]


PLACES = [statement_places(program) for program in PROGRAMS]


def essence(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_move_changes_the_place_of_the_moved_lines_and_nothing_else(
    data: st.DataObject,
) -> None:
    number = data.draw(st.integers(0, len(PROGRAMS) - 1))
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    tabs = data.draw(st.booleans())
    what = data.draw(st.sampled_from(PLACES[number]))
    target = data.draw(st.sampled_from(PLACES[number]))
    where = data.draw(st.sampled_from(["before", "after"]))
    text = PROGRAMS[number]
    if tabs:
        text = text.replace("    ", "\t")
        what, target = (
            statement_places(text)[PLACES[number].index(each)] for each in (what, target)
        )
    text = text.replace("\n", newline)
    fixed = fix(text, Move(what, target, where))
    if not fixed.fixed:
        assert fixed.text == text
        return
    ast.parse(fixed.text)
    assert is_one_block_moved(text.splitlines(), fixed.text.splitlines(), what)
    ending = text[len(text.rstrip()) :]
    assert fixed.text.endswith(ending) if ending else not fixed.text.endswith(newline)
    assert fixed.text.count("\n") == fixed.text.count(newline) == text.count("\n")
    # Done again, it has nothing to do.
    again = fix_text(fixed.text, fixed_again(fixed.text, text, what, target, where))
    assert again.text == fixed.text


def is_one_block_moved(before: list[str], after: list[str], what: Location) -> bool:
    """The lines of `what`, with comments above, stand elsewhere; all others are untouched."""
    first = what.line - 1
    while True:
        rest = before[:first] + before[what.end_line :]
        block = [line.strip() for line in before[first : what.end_line]]
        for gap in range(len(rest) + 1):
            inside = [line.strip() for line in after[gap : gap + len(block)]]
            if inside == block and after[:gap] + after[gap + len(block) :] == rest:
                return True
        first -= 1
        if first < 0 or not before[first].strip().startswith("#"):
            return False


def fixed_again(new: str, old: str, what: Location, target: Location, where: str) -> list[Finding]:
    """The same remedy for the text that it made, found by the code of its two statements."""
    places = statement_places(new)
    code = {each: essence(slice_of(new, each)) for each in places}
    wanted = [essence(slice_of(old, each)) for each in (what, target)]
    found = [[each for each in places if code[each] == one] for one in wanted]
    if any(len(each) != 1 for each in found):
        return []
    return [finding(Move(found[0][0], found[1][0], where))]  # type: ignore[arg-type]


def slice_of(text: str, where: Location) -> str:
    lines = text.splitlines()[where.line - 1 : where.end_line]
    return "\n".join(lines)
