"""`a or b` and its parts in one run, against Python's own `any` and `all`."""

from __future__ import annotations

import itertools

from hypothesis import given, strategies as st

from trueloop.doctor.static.interpreter.joined_conditions import Junction, note_limit

TRUTHS = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=2, max_size=5)


@given(TRUTHS, st.booleans())
def test_what_is_known_holds_however_the_rest_comes_out(truths, is_or):
    """Of each part: its truth, whether it is negated, and whether it was decided."""
    parts = tuple((f"option {n}", negated) for n, (_, negated, _) in enumerate(truths))
    decided = {
        key: truth != negated
        for (key, negated), (truth, _, is_decided) in zip(parts, truths, strict=True)
        if is_decided
    }
    known = Junction(is_or, parts).known(decided)
    ways = [[truth] if is_decided else [True, False] for truth, _, is_decided in truths]
    outcomes = {(any if is_or else all)(way) for way in itertools.product(*ways)}
    assert outcomes == ({True, False} if known is None else {known})


@given(TRUTHS, st.booleans(), st.booleans())
def test_what_is_settled_gives_the_fact_back(truths, is_or, fact):
    parts = tuple((f"option {n}", negated) for n, (_, negated, _) in enumerate(truths))
    decided: dict[str, bool] = {}
    Junction(is_or, parts).settle(fact, decided, ())
    assert Junction(is_or, parts).known(decided) is (None if fact is is_or else fact)


def test_a_forced_part_stays_open():
    decided: dict[str, bool] = {}
    Junction(True, (("a", False), ("b", True))).settle(False, decided, {"a"})
    assert decided == {"b": True}


def test_limits_of_a_quantity():
    limits = {}
    note_limit(limits, "accumulate > 1", True)
    note_limit(limits, "name == 'a'", True)
    assert [(limit, fact) for _, limit, fact in limits["accumulate"]] == [(1.0, True)]
    assert set(limits) == {"accumulate"}
