"""The random draws of a data set, and the seeds of a loader's workers."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.nodes import last_part, walk

GENERATORS = frozenset(
    "numpy.random.default_rng numpy.random.RandomState numpy.random.Generator random.Random"
    " torch.Generator".split()
)
"""Random generators of a program's own."""
NO_DRAW = frozenset(
    "seed manual_seed initial_seed get_state set_state getstate setstate bit_generator spawn"
    " default_rng RandomState Random SystemRandom Generator SeedSequence PCG64 MT19937 Philox"
    " get_rng_state set_rng_state fork_rng".split()
)
RESEEDS = frozenset("seed manual_seed set_state setstate".split())
TORCH_DRAWS = frozenset(
    "rand randn randint randperm bernoulli multinomial normal poisson rand_like randn_like"
    " randint_like".split()
)
IN_PLACE_DRAWS = frozenset("random_ uniform_ normal_ bernoulli_ exponential_ cauchy_".split())
RANDOM_TRANSFORMS = frozenset(
    "ColorJitter AutoAugment RandAugment TrivialAugmentWide AugMix ElasticTransform MixUp CutMix"
    " HorizontalFlip VerticalFlip Flip Rotate ShiftScaleRotate CoarseDropout GaussNoise"
    " HueSaturationValue RGBShift CLAHE OneOf SomeOf Transpose Affine GridDistortion"
    " OpticalDistortion".split()
)
AUGMENTS = re.compile(
    r"aug|transform|flip|crop|jitter|noise|rotat|random|perturb|distort|shift|roll|mixup|cutmix|erase",
    re.I,
)
_TASKS = re.compile(r"mask|corrupt|negativ|pair|triplet|sampl|token|window|segment", re.I)
"""Functions whose draws make the question and its answer, which a validation needs as well."""
_RESTORES = re.compile(r"denois|inpaint|degrad|restor", re.I)
"""Of a data set or a function: the target is the sample before it was spoilt."""
TRANSFORM_LIBRARIES = frozenset("torchvision albumentations kornia monai".split())
_SLOT = re.compile(r"_?(train_?)?(transforms?|augment\w*)", re.I)
"""An attribute of a data set that changes the samples."""
_NO_AUGMENTATION = re.compile(
    r"lambda|view|twice|two|simclr|byol|moco|dino|quant|binar|diffus|timestep|pick|choose|select"
    r"|caption|question|prompt|collat|__getitem__|__iter__",
    re.I,
)
"""A random change of samples that a validation may need: views of one image, dequantization."""
CHANGES = re.compile(r"epoch|step|iter|time|round|info", re.I)
"""A seed that is written so may be a different one each time that a worker starts."""
_DRAWS = re.compile(r"rand|normal|uniform|bernoulli")
_DATASET = re.compile(r"dataset|get_worker_info|\brng\b|generator")


class Draw(NamedTuple):
    """Something drawn at random while a sample is read."""

    library: str
    """The library of its global generator: `numpy`, `random`, `torch`; empty for a private one."""
    place: Location
    name: str
    """The augmentation that uses it, if there is one: `RandomFlip`, `Images.augment`; else
    empty."""
    made: Location | None = None
    """Where the user's own generator that it is from was made, if before the workers start."""


class WorkerSeed(NamedTuple):
    """The value to which a `worker_init_fn` sets a generator."""

    library: str
    constant: bool
    """It is the same each time that the worker of a number is started."""
    place: Location


def augmenting(functions: Iterable[str], transforms: Collection[str] = ()) -> str:
    """The innermost of these functions, outermost first, that augments: by its name, or as one of
    the data set's `transforms`. Empty if there is none, or if one inside of it makes the task
    (masked tokens, negative samples)."""
    held = ""
    for name in reversed([*functions]):
        shown = name.removesuffix(".__call__").removesuffix(".forward")
        last = shown.rpartition(".")[2]
        if _TASKS.search(last) or _RESTORES.search(shown):
            return ""
        if AUGMENTS.search(name):
            return shown
        if last in transforms and not _NO_AUGMENTATION.search(shown):
            held = held or shown
    return held


def holds_transform(attribute: str) -> bool:
    """An attribute of a data set says by its name that it changes the samples."""
    return _SLOT.fullmatch(attribute) is not None


def is_random_transform(library: str, kind: str) -> bool:
    """A library's transform that draws at random, by the name of its class."""
    if library not in TRANSFORM_LIBRARIES:
        return False
    return kind.startswith("Random") or kind in RANDOM_TRANSFORMS


def mentions_dataset(function: ast.AST) -> bool:
    """A `worker_init_fn` that may reach into the data set itself."""
    return bool(_DATASET.search(ast.unparse(function)))


def draws(expression: ast.AST) -> bool:
    """It calls a function that draws random numbers, by its name. A frozen tensor of them has to be
    saved, while one of frequencies is computed again."""
    called = (each.func for each in walk(expression) if isinstance(each, ast.Call))
    return any(_DRAWS.search(last_part(each)) for each in called)
