"""The encoder saves memory while it trains, and its teacher, in eval mode, does not train."""

import torch
from torch import nn
from transformers import BertModel

encoder = BertModel.from_pretrained("bert-base-uncased")
teacher = BertModel.from_pretrained("bert-large-uncased")
encoder.gradient_checkpointing_enable()
teacher.gradient_checkpointing_enable()
encoder.train()
map_back = nn.Linear(768, 1024)
optimizer = torch.optim.AdamW([*encoder.parameters(), *map_back.parameters()], lr=1e-5)
for tokens in torch.load("tokens.pt"):
    with torch.no_grad():
        wanted = teacher(tokens)[1]
    loss = (map_back(encoder(tokens)[1]) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
