import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Jittered(Dataset):
    def __init__(self, data, seed=0):
        self.data = data
        self.rng = np.random.default_rng(seed)

    def __getitem__(self, index):
        x = self.data[index]
        return x + float(self.rng.normal(0, 0.01)), x.sum()

    def __len__(self):
        return len(self.data)


def reseed(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def main():
    torch.manual_seed(0)
    loader = DataLoader(
        Jittered(torch.randn(32, 4)), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=reseed
    )
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x).squeeze(-1), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
