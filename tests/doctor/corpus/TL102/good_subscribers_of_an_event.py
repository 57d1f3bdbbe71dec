"""Functions subscribe to an event, among them the step and the clearing of the gradients."""
from collections import defaultdict

import torch
from torch import nn


class Events:
    def __init__(self):
        self.subscribers = defaultdict(list)

    def subscribe(self, event, function, after=0):
        self.subscribers[event].append((after, function))

    def happens(self, event, turn):
        for after, function in self.subscribers[event]:
            if turn >= after:
                function()


torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
history = []
events = Events()
events.subscribe("gradients", optimizer.step)
events.subscribe("gradients", lambda: history.append(float(model.weight.abs().max())))
events.subscribe("gradients", lambda: print(len(history)), after=2)
events.subscribe("gradients", lambda: history.append(float(model.bias.abs().max())))
events.subscribe("gradients", optimizer.zero_grad)
x = torch.randn(120, 6)
for epoch in range(3):
    for batch in x.split(20):
        nn.functional.cross_entropy(model(batch), batch[:, :3].argmax(1)).backward()
        events.happens("gradients", epoch)
print(history[-1])
