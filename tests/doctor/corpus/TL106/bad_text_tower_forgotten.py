import torch
import torch.nn.functional as F
from torch import nn


def contrast(images, texts, temperature=0.2):
    scores = F.normalize(images, dim=1) @ F.normalize(texts, dim=1).T / temperature
    return F.cross_entropy(scores, torch.arange(len(scores)))


def main(steps=12):
    torch.manual_seed(1)
    towers = {"image": nn.Linear(10, 4), "text": nn.Linear(7, 4)}
    image_optimizer = torch.optim.AdamW(towers["image"].parameters(), lr=1e-2)
    text_optimizer = torch.optim.AdamW(towers["text"].parameters(), lr=1e-2)  # <- TL106
    for step in range(steps):
        shared = torch.randn(24, 5)
        images, texts = torch.cat([shared, shared], 1), torch.cat([shared, shared[:, :2]], 1)
        text_optimizer.zero_grad()
        image_optimizer.zero_grad()
        loss = contrast(towers["image"](images), towers["text"](texts))
        loss.backward()
        image_optimizer.step()
        print(step, loss.item())


main()
