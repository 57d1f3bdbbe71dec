import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def before_backward(self, trainer):
        pass

    def after_step(self, trainer):
        pass


class ClearGradients(Callback):
    def after_step(self, trainer):
        trainer.optimizer.zero_grad()


class PrintLoss(Callback):
    def after_step(self, trainer):
        if trainer.iteration % 5 == 0:
            print(trainer.iteration, trainer.last_loss)


class Trainer:
    def __init__(self, model, optimizer, loss_fn, callbacks):
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.callbacks = callbacks
        self.iteration = 0

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def run(self, loader, epochs):
        for _ in range(epochs):
            for x, y in loader:
                loss = self.loss_fn(self.model(x), y)
                self.call("before_backward")
                loss.backward()
                self.optimizer.step()
                self.last_loss = loss.item()
                self.iteration += 1
                self.call("after_step")


torch.manual_seed(0)
x = torch.randn(40, 3)
loader = DataLoader(TensorDataset(x, x.mean(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
Trainer(model, optimizer, nn.MSELoss(), [ClearGradients(), PrintLoss()]).run(loader, epochs=2)
