"""What the input of a loss came out of: shared by the rules on losses."""

from __future__ import annotations

from trueloop.doctor.events import Loss
from trueloop.doctor.findings import Place
from trueloop.doctor.things import Activation, Tensor

PROBABILITIES = {"softmax": "a softmax", "sigmoid": "a sigmoid"}
NO_LOGARITHMS = {
    "linear": "logits, straight out of a layer",
    "softmax": "probabilities, out of a softmax",
    "sigmoid": "probabilities, out of a sigmoid",
}
"""Kind of activation -> what it gives, where that is certainly no log-probability."""


def activation_of(event: Loss, value: object) -> Activation | None:
    """What an argument of a loss came out of; None where that is not known, or where it depends on
    a condition that the loss does not depend on."""
    found = value.activation if isinstance(value, Tensor) else None
    return found if found is not None and found.guards <= event.guards else None


def is_computed(value: object) -> bool:
    """An argument of a loss that came out of arithmetic of which nothing more is known."""
    return isinstance(value, Tensor) and value.activation is None


class Sources:
    """Where the inputs that were spoken of came from: a softmax in a model's `forward` is one
    fault, however many losses its output meets."""

    def __init__(self) -> None:
        self._losses: dict[Place, Place] = {}

    def is_new(self, activation: Activation, loss: Place) -> bool:
        """This is the first loss that is fed from there."""
        return self._losses.setdefault(activation.place, loss) == loss
