"""A network that is built from its configuration is in train mode."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

net = GPT2LMHeadModel(GPT2Config(n_layer=4))
net.gradient_checkpointing_enable()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
for tokens in torch.load("tokens.pt"):
    loss = net(tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
