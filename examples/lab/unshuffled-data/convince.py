"""How many classes a batch of 32 holds, when the data lie sorted and when they lie mixed."""

import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
mixed = torch.randint(0, 3, (600,))
for name, y in (("sorted", mixed.sort().values), ("mixed", mixed)):
    for shuffle in (True, False):
        batches = list(DataLoader(y, batch_size=32, shuffle=shuffle))
        alone = sum(len(batch.unique()) == 1 for batch in batches)
        print(f"{name}, shuffle={shuffle}: {alone} of {len(batches)} batches hold a single class")
