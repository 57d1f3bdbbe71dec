"""Clears gradients with zero_grad(set_to_none=True), today's default: the tensors are let go.
Two jobs are timed and their memory is counted: large weights with a batch of 1, and small
weights with a large batch."""

import json
import sys
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def train(width, layers, batch, updates):
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(batch, width), torch.randn(batch, width)
    seconds = []
    for _ in range(updates):
        start = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        cleared = time.process_time()
        loss = nn.functional.mse_loss(model(x), y)
        computed = time.process_time()
        loss.backward()
        seconds.append(time.process_time() - computed + cleared - start)
        optimizer.step()
    return seconds


def peak(*job):
    """The most bytes that the job's tensors hold at once: weights, gradients, activations."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        train(*job)
    held = most = 0
    for event in record.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


seconds = train(256, 16, 1, updates=400)
batch_seconds = train(128, 8, 512, updates=60)
print(
    json.dumps(
        {
            "weights_seconds": min(seconds),
            "batch_seconds": min(batch_seconds),
            "weights_peak": peak(256, 16, 1, 3),
            "batch_peak": peak(256, 16, 256, 3),
            "seconds": seconds,
        }
    )
)
