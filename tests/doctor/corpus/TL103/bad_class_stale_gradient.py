import torch
import torch.nn.functional as F


class LogisticRegression(torch.nn.Module):
    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.linear = torch.nn.Linear(n_inputs, n_outputs)

    def forward(self, x):
        return self.linear(x)


class Learner:
    def __init__(self, model, lr=0.1):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)

    def one_batch(self, xb, yb):
        loss = F.cross_entropy(self.model(xb), yb)
        self.opt.step()  # <- TL103
        self.opt.zero_grad()
        loss.backward()
        return loss.item()

    def fit(self, data, epochs):
        for epoch in range(epochs):
            for xb, yb in data:
                loss = self.one_batch(xb, yb)
            print(epoch, loss)


torch.manual_seed(0)
data = [(torch.randn(16, 2), torch.randint(0, 2, (16,))) for _ in range(6)]
Learner(LogisticRegression(2, 2)).fit(data, epochs=3)
