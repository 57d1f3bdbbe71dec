"""CLIP-like training: the softmax runs over the batch on purpose, in both directions."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, dim, out=8):
        super().__init__()
        self.projection = nn.Linear(dim, out)

    def forward(self, x):
        return F.normalize(self.projection(x), dim=-1)


def contrastive_loss(image_features, text_features, scale):
    logits = scale * image_features @ text_features.t()
    labels = torch.arange(len(logits))
    by_image = F.nll_loss(F.log_softmax(logits, dim=1), labels)
    by_text = -F.log_softmax(logits, dim=0).diagonal().mean()
    return (by_image + by_text) / 2


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images = torch.randn(128, 12)
    texts = images @ torch.randn(12, 10)
    loader = DataLoader(TensorDataset(images, texts), batch_size=32, shuffle=True, drop_last=True)
    image_encoder, text_encoder = Encoder(12), Encoder(10)
    log_scale = nn.Parameter(torch.tensor(2.0))
    optimizer = torch.optim.AdamW(
        [*image_encoder.parameters(), *text_encoder.parameters(), log_scale], lr=1e-2
    )
    for epoch in range(2):
        for image, text in loader:
            loss = contrastive_loss(image_encoder(image), text_encoder(text), log_scale.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
