import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as O


class Learner:
    def __init__(self, net, batches, epochs=4):
        self.net, self.batches, self.epochs = net, batches, epochs
        self.opt = O.SGD(net.parameters(), lr=0.2, momentum=0.9)
        self.sched = O.lr_scheduler.PolynomialLR(self.opt, len(batches), power=1.0)  # <- TL605

    def one_batch(self, xb, yb):
        loss = F.cross_entropy(self.net(xb), yb)
        loss.backward()
        self.opt.step()
        self.sched.step()
        self.opt.zero_grad()
        return loss.item()

    def fit(self):
        for epoch in range(self.epochs):
            self.net.train()
            for xb, yb in self.batches:
                loss = self.one_batch(xb, yb)
            print(epoch, loss, self.sched.get_last_lr())


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(256, 7)
    y = x[:, :3].argmax(dim=1)
    batches = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
    )
    Learner(nn.Linear(7, 3), batches).fit()
