"""What two workers draw from numpy's global generator, in two epochs."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.randint(1000)


torch.manual_seed(0)
loader = DataLoader(Draws(), batch_size=2, num_workers=2, multiprocessing_context="fork")
for epoch in (1, 2):
    first, second = (batch.tolist() for batch in loader)
    print(f"epoch {epoch}: worker 0 draws {first}, worker 1 draws {second}")
