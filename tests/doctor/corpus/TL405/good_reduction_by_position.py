"""A symmetric divergence between clean and noised inputs, its reduction given by position."""

import torch
from torch import nn
from torch.nn import functional as F


def symmetric_divergence(noised, clean):
    return (
        F.kl_div(
            F.log_softmax(noised, dim=-1, dtype=torch.float32),
            F.softmax(clean, dim=-1, dtype=torch.float32),
            None,
            None,
            "sum",
        )
        + F.kl_div(
            F.log_softmax(clean, dim=-1, dtype=torch.float32),
            F.softmax(noised, dim=-1, dtype=torch.float32),
            None,
            None,
            "sum",
        )
    ) / noised.size(0)


torch.manual_seed(0)
embed, head = nn.Embedding(20, 8), nn.Linear(8, 3)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=1e-3)
plain = nn.KLDivLoss(None, None, "batchmean")
for _ in range(6):
    tokens, labels = torch.randint(0, 20, (16, 5)), torch.randint(0, 3, (16,))
    vectors = embed(tokens)
    clean = head(vectors.mean(dim=1))
    noised = head((vectors + 1e-2 * torch.randn_like(vectors)).mean(dim=1))
    loss = F.cross_entropy(clean, labels) + symmetric_divergence(noised, clean)
    loss = loss + 0.1 * plain(noised.log_softmax(dim=-1), clean.detach().softmax(dim=-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
