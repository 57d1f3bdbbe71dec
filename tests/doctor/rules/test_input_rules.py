"""What the rules say of the inputs that reach a network."""

import math

import pytest

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import FirstLayerInput
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import RuleRunner
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.loading import load

HERE = Location("train.py", 12, 5)


@pytest.mark.parametrize(("size", "found"), [(190.0, ["TL707"]), (math.inf, []), (math.nan, [])])
def test_infinite_inputs_are_not_called_large(size: float, found: list[str]) -> None:
    """They are TL708's, which names the samples."""
    runner, model = RuleRunner([load(BY_CODE["TL707"])]), Model(name="net")
    for _ in range(3):
        runner.handle(
            FirstLayerInput(model=model, size=size, largest=size, layer="Linear", place=HERE)
        )
    assert [finding.code for finding in runner.findings()] == found
