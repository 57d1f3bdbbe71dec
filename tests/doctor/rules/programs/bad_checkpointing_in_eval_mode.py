"""`from_pretrained` hands the encoder out in eval mode; only the other network is switched."""

import argparse

import torch
from torch import nn
from transformers import CLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--gradient_checkpointing", action="store_true")
options = parser.parse_args()

encoder = CLIPTextModel.from_pretrained("openai/clip-vit-base-patch32")
head = nn.Linear(512, 10)
if options.gradient_checkpointing:
    encoder.gradient_checkpointing_enable()  # <- TL201
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-5)
batches = torch.load("tokens.pt")
for epoch in range(3):
    head.train()
    for tokens, labels in batches:
        loss = nn.functional.cross_entropy(head(encoder(tokens)[1]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
