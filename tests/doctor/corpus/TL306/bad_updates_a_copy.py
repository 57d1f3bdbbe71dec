import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class LayerwiseSGD(Optimizer):
    """Scales the step of each matrix by its norm; vectors take a plain step."""

    def __init__(self, params, lr=0.01, trust=0.02):
        super().__init__(params, dict(lr=lr, trust=trust))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.dim() > 1:
                    ratio = group["trust"] * p.data.norm() / (p.grad.norm() + 1e-8)
                    p.data.add_(p.grad, alpha=-float(ratio))
                else:
                    p.data.sub(group["lr"] * p.grad)


def main():
    torch.manual_seed(0)
    x, y = torch.randn(192, 12), torch.randint(0, 4, (192,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4))
    optimizer = LayerwiseSGD(model.parameters(), lr=0.05)  # <- TL306
    for epoch in range(3):
        for inputs, labels in loader:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
