"""The same samples are drawn for the pictures of each epoch, and training goes on as if not."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 5))

    def forward(self, z):
        return self.net(z)


def pictures(model):
    model.eval()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        return model(torch.randn(4, 2))


def pictures_by_hand(model):
    state = torch.get_rng_state()
    torch.manual_seed(0)
    model.eval()
    with torch.no_grad():
        out = model(torch.randn(4, 2))
    torch.set_rng_state(state)
    return out


def main():
    loader = DataLoader(TensorDataset(torch.randn(60, 5)), batch_size=15, shuffle=True)
    model = Decoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train()
        for (x,) in loader:
            z = torch.randn(len(x), 2)
            loss = nn.functional.mse_loss(model(z), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(pictures(model).mean().item(), pictures_by_hand(model).mean().item())


if __name__ == "__main__":
    main()
