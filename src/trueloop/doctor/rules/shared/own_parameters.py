"""The parts of a module, as rules about parameters see them."""

from __future__ import annotations

import re

from trueloop.doctor.model.things import Model, Tensor

_WITHOUT = re.compile(
    r"^(Identity|Flatten|Unflatten|Re?LU6?|\w*ReLU\w*|[GSCE]?ELU|Si?LU|Mish|Hard\w+|Tanh\w*|Sigmoid|LogSigmoid"
    r"|Soft(?!Margin)\w+|LogSoftmax|\w*Dropout\w*|\w*Pool\w*|\w*Pad\w*|\w*Loss|Upsampl\w*|Fold|Unfold"
    r"|Pixel\w+|ChannelShuffle|ZeroPad\w*|CosineSimilarity|PairwiseDistance|GLU|Threshold|Tanhshrink)$"
)
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "Module", "DataParallel"})
_SIMPLE_NORMS = re.compile(r"^(InstanceNorm\w*|LocalResponseNorm)$")


def has_parameters(model: Model) -> bool:
    """A module certainly has parameters: its own, or those of a part."""
    return any(_has_own(member) for member in model.family())


def owners_of_parameters(model: Model) -> list[Model]:
    """Of a module and its parts: those that certainly hold parameters themselves."""
    return [member for member in model.family() if _has_own(member)]


def _has_own(member: Model) -> bool:
    head, _, short = member.kind.rpartition(".")
    if head == "torch.nn":
        if short in _CONTAINERS or _WITHOUT.match(short) or short == "PReLU":
            return short == "PReLU"
        if _SIMPLE_NORMS.match(short):
            return bool(member.arguments.get("affine"))
        switches = (member.arguments.get("affine"), member.arguments.get("elementwise_affine"))
        return not any(switch is False for switch in switches)
    if member.cls is not None:
        return any(_is_parameter(value) for value in member.attributes.values())
    # A network that a library builds.
    return member.known and not member.complete


def _is_parameter(value: object) -> bool:
    return isinstance(value, Tensor) and (value.role == "parameter" or value.requires_grad)
