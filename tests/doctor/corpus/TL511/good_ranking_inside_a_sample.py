import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
# Each sample is a question with eight answers, in batches of eight.
data = TensorDataset(torch.randn(64, 8, 5), torch.rand(64, 8))
loader = DataLoader(data, 8, shuffle=True)
scorer = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(scorer.parameters())
for epoch in range(4):
    for i, (answers, relevance) in enumerate(loader):
        scores = scorer(answers).squeeze(-1)
        ahead = (relevance[:, :, None] > relevance[:, None, :]).float()
        difference = scores[:, :, None] - scores[:, None, :]
        loss = (F.softplus(-difference) * ahead).mean()
        (loss / 2).backward()
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
