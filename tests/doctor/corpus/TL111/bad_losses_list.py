import torch
from torch import nn


class Learner:
    def __init__(self, net, train_dl):
        self.net, self.train_dl = net, train_dl
        self.optim = torch.optim.AdamW(net.parameters(), lr=1e-3)
        self.loss = nn.L1Loss()

    def epoch(self):
        losses = []
        self.net.train()
        for xb, yb in self.train_dl:
            out = self.net(xb)
            batch_loss = self.loss(out, yb)
            self.optim.zero_grad()
            batch_loss.backward()
            self.optim.step()
            losses.append(batch_loss.item())
            return sum(losses) / len(losses)  # <- TL111

    def fit(self, epochs):
        return [self.epoch() for _ in range(epochs)]


torch.manual_seed(0)
torch.set_num_threads(1)
pairs = torch.utils.data.TensorDataset(torch.randn(30, 2), torch.randn(30, 1))
print(Learner(nn.Linear(2, 1), torch.utils.data.DataLoader(pairs, batch_size=6)).fit(2))
