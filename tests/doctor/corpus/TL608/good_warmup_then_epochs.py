import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR, MultiStepLR


class Loop:
    """Warm-up per batch in the first epoch, milestones per epoch: two schedules, two clocks."""

    def __init__(self, net, data):
        self.net, self.data = net, data
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.main = MultiStepLR(self.optimizer, milestones=[3, 5], gamma=0.1)

    def epoch(self, index):
        warmup = None
        if index == 0:
            warmup = LinearLR(self.optimizer, start_factor=1e-3, total_iters=len(self.data) - 1)
        self.net.train()
        for images, labels in self.data:
            loss = nn.functional.cross_entropy(self.net(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if warmup is not None:
                warmup.step()
        return loss.item()

    def run(self, epochs=6):
        for index in range(epochs):
            loss = self.epoch(index)
            self.main.step()
            print(index, loss, self.optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(96, 6)
    y = x[:, :3].argmax(dim=1)
    dataset = torch.utils.data.TensorDataset(x, y)
    Loop(nn.Linear(6, 3), torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)).run()
