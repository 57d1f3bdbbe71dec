import warnings

import torch
from torch.utils.data import IterableDataset

import trueloop


class Lines(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(2_600.0).split(1))


before = trueloop.Feed(Lines(), 2)
batches = before.epoch(0)
for _ in range(1_200):
    next(batches)
after = trueloop.Feed(Lines(), 2)
after.load_state_dict(before.state_dict())
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    next(iter(after.epoch(0, start=1_200)))
print(said[-1].message)
