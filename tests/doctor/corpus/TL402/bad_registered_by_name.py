"""Networks and losses are looked up in tables that decorators fill."""

import torch
from torch import nn

NETWORKS, CRITERIA = {}, {}


def entry(table, name):
    def keep(made):
        table[name] = made
        return made

    return keep


@entry(NETWORKS, "small")
class Marker(nn.Module):
    def __init__(self, marks):
        super().__init__()
        self.inner, self.outer = nn.Linear(9, 16), nn.Linear(16, marks)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x))).sigmoid()


@entry(CRITERIA, "marks")
def on_logits():
    return nn.BCEWithLogitsLoss()


def run(plan):
    torch.manual_seed(2)
    x = torch.randn(96, 9)
    y = (x[:, : plan["marks"]] > 0).float()
    net, measure = NETWORKS[plan["net"]](plan["marks"]), CRITERIA[plan["loss"]]()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for epoch in range(5):
        for rows in torch.randperm(96).split(16):
            loss = measure(net(x[rows]), y[rows])  # <- TL402
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, round(loss.item(), 3))


run({"net": "small", "loss": "marks", "marks": 4})
