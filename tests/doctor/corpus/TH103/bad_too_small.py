"""The rate of fine-tuning a language model, for a small network from scratch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(16, 64), nn.Linear(64, 5)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def main():
    torch.manual_seed(0)
    x = torch.randn(960, 16)
    y = x[:, :5].argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for epoch in range(8):
        for inputs, labels in loader:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()  # <- TH103
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
