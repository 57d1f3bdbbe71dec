"""A gradient for each sample is put on the parameters; a private optimizer makes its own of them."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap


def with_noise(parameter):
    clipped = parameter.grad_sample.clamp(-1, 1)
    return clipped.mean(0) + 0.01 * torch.randn_like(parameter)


def gather(optimizer, *_):
    """What a private optimizer does before its step."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = with_noise(parameter)


def train(model, optimizer, by_sample):
    def loss_of(parameters, x, y):
        return (functional_call(model, parameters, (x[None],)) - y).pow(2).mean()

    of_samples = vmap(grad(loss_of), in_dims=(None, 0, 0))
    for step in range(100):
        x = torch.randn(16, 4)
        y = x.sum(1, keepdim=True)
        output = model(x)
        if by_sample:
            named = {name: each.detach() for name, each in model.named_parameters()}
            found = of_samples(named, x, y)
            for name, parameter in model.named_parameters():
                parameter.grad_sample = found[name]
        else:
            (output - y).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 25 == 0:
            print((output.detach() - y).pow(2).mean().item())


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.register_step_pre_hook(gather)
train(model, optimizer, by_sample=True)
