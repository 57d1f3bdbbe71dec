"""What names and conditions in a program tell, whether it is read or watched as it runs."""

from __future__ import annotations

import ast
import re

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


def tests_mode(definition: ast.AST) -> bool:
    """Some condition in a function asks whether the module trains."""
    for node in ast.walk(definition):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            asked: list[ast.AST] = [node.test]
        elif isinstance(node, ast.BoolOp):
            asked = list(node.values)
        else:
            continue
        for part in (inner for each in asked for inner in ast.walk(each)):
            word = getattr(part, "attr", "") or getattr(part, "id", "")
            if "train" in word or "eval" in word:
                return True
    return False
