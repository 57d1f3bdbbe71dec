"""What is inside of a module is known again as soon as something in it changes."""

from __future__ import annotations

import copy

from trueloop.doctor.model.submodules import Submodules
from trueloop.doctor.model.things import Model


def test_a_layer_added_far_below_is_inside() -> None:
    outer, inner, layer = Model(), Model(), Model()
    outer.children["inner"] = inner
    assert outer.family() == (outer, inner)
    inner.children["layer"] = layer
    assert outer.family() == (outer, inner, layer)
    assert outer.covers(layer)
    assert layer.overlaps(outer)
    del inner.children["layer"]
    assert not outer.covers(layer)
    assert not layer.overlaps(outer)


def test_a_copy_is_inside_of_itself_and_the_original_is_not() -> None:
    outer = Model(children={"layer": Model()})
    assert len(outer.family()) == 2
    other = copy.copy(outer)
    assert other.covers(other)
    assert not other.covers(outer)


def test_what_a_wrapper_wraps_is_inside() -> None:
    layer = Model()
    wrapper = Model(wraps=Model(children={"layer": layer}))
    assert wrapper.shares_parameters(layer)
    wrapper.wraps, wrapper.children = None, Submodules({"layer": layer})
    assert wrapper.family() == (wrapper, layer)
