"""What two workers draw in two epochs, when each is seeded with 42 plus its number."""

import numpy as np
from torch.utils.data import DataLoader, Dataset


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.randint(1000)


def seed_worker(worker):
    np.random.seed(42 + worker)


loader = DataLoader(
    Draws(), batch_size=2, num_workers=2, worker_init_fn=seed_worker, multiprocessing_context="fork"
)
for epoch in (1, 2):
    first, second = (batch.tolist() for batch in loader)
    print(f"epoch {epoch}: worker 0 draws {first}, worker 1 draws {second}")
