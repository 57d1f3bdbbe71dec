import torch
from accelerate import Accelerator
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(50, 7)

    def forward(self, x):
        return self.out(self.drop(x))


def main(train_data, val_data):
    accelerator = Accelerator()
    tagger = Tagger()
    optimizer = torch.optim.Adam(tagger.parameters())
    train_loader = torch.utils.data.DataLoader(train_data, batch_size=16, shuffle=True)
    val_loader = torch.utils.data.DataLoader(val_data, batch_size=16)
    tagger, optimizer, train_loader, val_loader = accelerator.prepare(
        tagger, optimizer, train_loader, val_loader
    )
    tagger.train()
    for epoch in range(3):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(tagger(x), y)  # <- TL201
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        tagger.eval()
        right = seen = 0
        for x, y in val_loader:
            with torch.no_grad():
                guess = tagger(x).argmax(-1)
            guess, y = accelerator.gather_for_metrics((guess, y))
            right += (guess == y).sum().item()
            seen += len(y)
        accelerator.print(epoch, right / seen)
