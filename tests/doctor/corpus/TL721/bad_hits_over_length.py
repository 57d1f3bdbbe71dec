import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, n=12):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"ids": torch.tensor([i % 5, i % 3, i % 2]), "mask": torch.ones(3), "y": i % 2}


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 2))
    optimizer = torch.optim.Adam(model.parameters())
    accuracies = []
    for epoch in range(2):
        for batch in DataLoader(Sentences(), batch_size=6, shuffle=True):
            logits = model(batch["ids"])
            loss = nn.functional.cross_entropy(logits, batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits = (logits.argmax(1) == batch["y"]).sum().item()
            accuracies.append(hits / len(batch))  # <- TL721
    print(sum(accuracies) / len(accuracies))


main()
