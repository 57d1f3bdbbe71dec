import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Fitter:
    def __init__(self, net, data, lr=0.01):
        self.net, self.data = net, data
        self.opt = torch.optim.AdamW(net.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.opt, gamma=0.9)

    def run_epoch(self):
        total = 0.0
        for features, answer in self.data:
            self.opt.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(self.net(features), answer)
            loss.backward()
            self.opt.step()
            total += loss.item()
        self.sched.step()
        return total / len(self.data)

    def fit(self, epochs):
        for number in range(epochs):
            loss = self.run_epoch()
            self.sched.step()  # <- TL608
            print(f"{number} {loss:.4f} lr {self.sched.get_last_lr()[0]:.5f}")


pairs = [(torch.randn(16, 3), torch.randn(16, 1)) for _ in range(5)]
Fitter(nn.Linear(3, 1), pairs).fit(6)
