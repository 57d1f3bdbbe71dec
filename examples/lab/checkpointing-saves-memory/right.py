"""Stacks of 2 to 32 blocks, each behind torch's checkpoint: a block's inside is computed again.

Counted for every depth: the bytes that lie between forward and backward (each storage once, the
parameters left out), how often a block runs, the floating-point operations of forward and
backward; and whether the gradients are bitwise those of the plain stack.
"""

import json
import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        return x + self.inside(x)


def gradients(blocks, x, through):
    """The gradients of one backward, the bytes kept for it, and the operations."""
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    own = {p.untyped_storage().data_ptr() for p in blocks.parameters()}
    blocks.zero_grad()
    with FlopCounterMode(display=False) as flops:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            h = x
            for block in blocks:
                h = through(block, h)
            loss = h.square().mean()
        size = sum(t.untyped_storage().nbytes() for at, t in kept.items() if at not in own)
        loss.backward()
    return [p.grad.clone() for p in blocks.parameters()], size, flops.get_total_flops()


def plain(block, h):
    return block(h)


def checkpointed(block, h):
    return checkpoint(block, h, use_reentrant=False)


kept, runs, operations, same = [], [], [], []
for depth in (2, 4, 8, 16, 32):
    blocks = nn.ModuleList(Block() for _ in range(depth))
    x = torch.randn(128, 32)
    grads, size, flops = gradients(blocks, x, through=checkpointed)
    kept.append(size)
    runs.append(sum(block.runs for block in blocks) / depth)
    expected, _, plain_flops = gradients(blocks, x, through=plain)
    operations.append(flops / plain_flops)
    same.append(all(map(torch.equal, grads, expected)))
print(
    json.dumps(
        {
            "kept_32": kept[-1],
            "per_block": (kept[-1] - kept[0]) / 30,
            "runs": runs[-1],
            "operations": operations[-1],
            "same": sum(same) / len(same),
            "kept": kept,
        }
    )
)
