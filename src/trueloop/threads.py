"""How many CPU threads a training is best computed on, by the work of one update.

torch spreads each operation over all cores and waits for the last of them. For small operations the
waiting costs more than the sharing gains, and if a different process is busy on a core, each of
them waits until that core is free again: many times as long as one thread would take. The number is
a function of only the model and the batch size, never of the clock: threads change the order of
floating-point sums, and a run that is started again must be bitwise the same.
"""

from __future__ import annotations

import copy
import os
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten
from torch.utils.data import Dataset, IterableDataset

from trueloop import ranks
from trueloop.losses import apply_model
from trueloop.seed import rng_preserved

WORK_PER_THREAD = 2.5e8
"""Floating-point operations in an update from which on a further thread pays, measured by
benchmarks/threads.py."""
_BACKWARD = 2
"""The backward does each product of the forward twice: for the inputs and for the weights."""
_OPTIMIZER = 16
"""Operations of AdamW on each weight, in round figures."""


def most_threads() -> int:
    """CPU threads that this process may take: torch's number, or of several ranks on one host an
    even share of the cores.

    `torchrun` writes OMP_NUM_THREADS=1 where nothing is written, so that a 1 says nothing; any
    other number is the user's.
    """
    local = ranks.local_world_size()
    if local == 1 or os.environ.get("OMP_NUM_THREADS", "1").strip() != "1":
        return torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max((cores or 1) // local, 1)


def threads_for(work: float, most: int) -> int:
    """So many threads that each has `WORK_PER_THREAD` to do: 1 to `most`."""
    return int(max(1, min(most, work // WORK_PER_THREAD)))


def example_inputs(data: Any, samples: int) -> Any | None:
    """Inputs for so many samples, of the shapes and dtypes of a split's first sample, without
    memory; None for a split that is not a tuple of tensors or a map-style data set of (inputs,
    targets), or whose samples are not tensors."""
    if isinstance(data, (tuple, list)):
        tensors, rows = data[0], 1
    elif isinstance(data, Dataset) and not isinstance(data, IterableDataset):
        with rng_preserved():
            try:
                first = data[0]
            except Exception:  # the training itself comes to it, and says what is wrong
                return None
        if not isinstance(first, (tuple, list)) or not first:
            return None
        tensors, rows = first[0], 0
    else:
        return None
    leaves, structure = tree_flatten(tensors)
    if not all(isinstance(leaf, Tensor) and leaf.dim() >= rows for leaf in leaves):
        return None
    made = [leaf.new_empty((samples, *leaf.shape[rows:]), device="meta") for leaf in leaves]
    return tree_unflatten(made, structure)


def work_of_update(model: nn.Module, inputs: Any) -> float | None:
    """Floating-point operations of one update, counted on torch's meta device, where nothing is
    computed: matrix products and convolutions, forward and backward, and the optimizer.

    `inputs` are the model's: a tensor, a tuple of them or a mapping, of which the shapes and
    dtypes count. None for a model that cannot run there, such as one that looks at values.
    """
    from torch.utils.flop_counter import FlopCounterMode

    try:
        twin = copy.deepcopy(model).to("meta").eval()
        batch = tree_map_only(Tensor, _on_meta, inputs)
        with torch.no_grad(), rng_preserved(), FlopCounterMode(display=False) as counter:
            apply_model(twin, batch)
    except Exception:  # whatever somebody's model raises where there are no values
        return None
    weights = sum(parameter.numel() for parameter in model.parameters())
    return float((1 + _BACKWARD) * counter.get_total_flops() + _OPTIMIZER * weights)


def _on_meta(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, device="meta")
