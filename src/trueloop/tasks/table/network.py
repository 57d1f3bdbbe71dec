"""The network of the table task: embedded numbers and categories, then a plain MLP.

This file needs only torch, so that a trained model can go where Trueloop is not installed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_MOST_WAVES = 1 << 24
"""Angles in memory at once where no gradient is asked for: 64 MiB."""


class PeriodicEmbedding(nn.Module):
    """Each number as a small vector: ReLU(linear(cos, sin of learned frequencies, the number)).

    The periodic embedding of Gorishniy, Rubachev and Babenko ("On embeddings for numerical features
    in tabular deep learning", NeurIPS 2022), with the number itself beside its waves as in RealMLP.
    It lets an MLP follow steps and bends in a single column as closely as trees do.

    Input float (rows, inputs), output (rows, inputs * width).
    """

    def __init__(self, inputs: int, waves: int = 24, width: int = 12, sigma: float = 0.2) -> None:
        super().__init__()
        features = 2 * waves + 1
        self.frequency = nn.Parameter(sigma * torch.randn(inputs, waves))
        self.weight = nn.Parameter(torch.randn(inputs, features, width) / math.sqrt(2 * waves))
        self.bias = nn.Parameter(torch.zeros(inputs, width))

    def forward(self, numbers: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return self._embed(numbers, slice(None))
        # Without a backward, the waves of a few columns at a time take little memory.
        inputs, waves = self.frequency.shape
        some = max(1, _MOST_WAVES // max(1, len(numbers) * waves))
        parts = [self._embed(numbers, slice(k, k + some)) for k in range(0, inputs, some)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _embed(self, numbers: Tensor, columns: slice) -> Tensor:
        some = numbers[:, columns].unsqueeze(-1)
        angle = 2 * math.pi * some * self.frequency[columns]
        features = torch.cat((angle.cos(), angle.sin(), some), dim=-1)
        embedded = torch.einsum("nfk,fkd->nfd", features, self.weight[columns])
        return torch.relu(embedded + self.bias[columns]).flatten(1)


class CategoryEmbedding(nn.Module):
    """Each category index as a small vector; input int64 (rows, columns), output float (rows,
    `width`).

    Columns whose vectors are of one width share a table, so that thousands of columns take a few
    look-ups; the output has them in the order of their widths.
    """

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        columns: dict[int, list[int]] = {}
        for column, size in enumerate(sizes):
            columns.setdefault(min(32, math.ceil(1.6 * size**0.56)), []).append(column)
        self.width = sum(width * len(group) for width, group in columns.items())
        self.tables = nn.ModuleList()
        for k, width in enumerate(sorted(columns)):
            group = torch.tensor(columns[width])
            ends = torch.tensor([sizes[column] for column in columns[width]]).cumsum(0)
            starts = torch.cat((ends.new_zeros(1), ends[:-1]))
            table = nn.Embedding(int(sum(sizes[column] for column in columns[width])), width)
            # Unknown (0) and missing (1): what training never shows stays at the middle of the
            # known values, not at random.
            with torch.no_grad():
                table.weight[torch.cat((starts, starts + 1))] = 0.0
            self.tables.append(table)
            self.register_buffer(f"columns{k}", group, persistent=False)
            self.register_buffer(f"starts{k}", starts, persistent=False)

    def forward(self, indices: Tensor) -> Tensor:
        vectors = []
        for k, table in enumerate(self.tables):
            columns, starts = self.get_buffer(f"columns{k}"), self.get_buffer(f"starts{k}")
            vectors.append(table(indices[:, columns] + starts).flatten(1))
        return (
            torch.cat(vectors, dim=1) if vectors else indices.new_empty(indices.shape[0], 0).float()
        )


class TableNet(nn.Module):
    """`forward(numbers, categories)`: float (rows, inputs) and int64 (rows, columns).

    Returns (rows, outputs), or (rows,) for `outputs=1`: logits, or with `mean` the prediction in
    the target's own unit. Several outputs with `mean` are quantiles, which in eval mode are sorted,
    so that they never cross: each row's loss stays the same or becomes less (Chernozhukov,
    Fernández-Val and Galichon, Econometrica 2010). A run's `task.json` has the
    arguments under `network`.

    Args:
        inputs: numbers of a row, flags of missing ones among them.
        sizes: how many indices each category column has; 0 is unknown and 1 missing.
        outputs: classes, or quantiles; 1 for two classes and for a plain regression.
        width: units of a hidden layer.
        layers: hidden layers.
        dropout: share of the hidden units that training drops, 0 to below 1.
        mean: of a regression, the mean of the training targets; None for classes.
        deviation: of a regression, the standard deviation of the training targets.
        log: whether `mean` and `deviation` are those of the targets' logarithms.
    """

    def __init__(
        self,
        inputs: int,
        sizes: list[int],
        outputs: int,
        *,
        width: int = 256,
        layers: int = 3,
        dropout: float = 0.0,
        mean: float | None = None,
        deviation: float = 1.0,
        log: bool = False,
    ) -> None:
        super().__init__()
        self.numbers = PeriodicEmbedding(inputs) if inputs else None
        self.categories = CategoryEmbedding(sizes)
        features = self.categories.width
        if self.numbers is not None:
            features += self.numbers.bias.numel()
        parts: list[nn.Module] = []
        for _ in range(layers):
            parts += [nn.Linear(features, width), nn.ReLU(), nn.Dropout(dropout)]
            features = width
        self.layers = nn.Sequential(*parts, nn.Linear(features, outputs))
        self.ordered = mean is not None and outputs > 1
        self.head = nn.Identity() if mean is None else TargetScale(mean, deviation, log)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        vectors = self.categories(categories)
        if self.numbers is not None:
            vectors = torch.cat((self.numbers(numbers), vectors), dim=1)
        outputs = self.layers(vectors)
        result: Tensor = self.head(outputs.squeeze(1) if outputs.shape[1] == 1 else outputs)
        return result.sort(dim=1).values if self.ordered and not self.training else result


class TargetScale(nn.Module):
    """From the network's standardised output to the target's own unit, and the error back again.

    `centre` and `scale` are mean and standard deviation of the training targets, or of their
    logarithms if `log`.
    """

    def __init__(self, centre: float, scale: float, log: bool) -> None:
        super().__init__()
        self.register_buffer("centre", torch.tensor(centre, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.log = log
        self.centre: Tensor
        self.scale: Tensor

    def forward(self, standardised: Tensor) -> Tensor:
        # In float32 also under autocast: a price of 12,345 does not fit bfloat16.
        values = standardised.float() * self.scale + self.centre
        # exp overflows above 88; no target in float32 lies beyond.
        return values.clamp(-87.0, 87.0).exp() if self.log else values


class ScaledSquaredError(nn.Module):
    """Mean squared error in units of the training targets' variance: 1 is as good as their mean.

    With `log`, the error between the logarithms, in units of their variance. Both arguments are
    float (rows,), in the target's own unit.
    """

    def __init__(self, scale: float, log: bool) -> None:
        super().__init__()
        self.scale = scale
        self.log = log

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        if self.log:
            outputs, targets = outputs.log(), targets.log()
        return ((outputs - targets) / self.scale).square().mean()
