"""Outputs for tensors, with the model in this folder; needs torch.

python predict.py inputs.pt outputs.pt

In a program: `model = TensorPredictor(); model(inputs)`. `inputs.pt` has what the network takes:
one tensor, or a tuple of tensors, with the samples first. Of classes the outputs are logits, and
`task.json` names them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent


class TensorPredictor:
    """The trained network, as `torch.export` keeps it."""

    def __init__(self, folder: Path = HERE) -> None:
        self.task: dict[str, Any] = json.loads((folder / "task.json").read_text("utf-8"))
        self.network = torch.export.load(folder / "model.pt2").module()

    def __call__(self, *inputs: torch.Tensor) -> Any:
        """The network's outputs."""
        with torch.no_grad():
            return self.network(*inputs)


def main() -> None:
    """Read the inputs, and write the outputs."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python predict.py inputs.pt outputs.pt")
    inputs = torch.load(sys.argv[1], weights_only=True)
    outputs = TensorPredictor()(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
    torch.save(outputs, sys.argv[2])


if __name__ == "__main__":
    main()
