"""An epoch of 4 batches, killed after 2 and resumed: which samples are read."""

import torch
from torch.utils.data import DataLoader

for counts in ("epochs", "updates"):
    read = []
    for process in ("killed", "resumed"):
        loader = DataLoader(
            range(8), batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(0)
        )
        for batch in loader:
            read += batch.tolist()
            stop = 4 if process == "killed" else 8 if counts == "updates" else None
            if len(read) == stop:
                break
    missed = sorted(set(range(8)) - set(read))
    print(f"counting {counts}: reads {read}, never {missed}")
