import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, n=60):
        self.ids = torch.randint(1, 30, (n, 6))
        self.labels = (self.ids.sum(1) % 2).float()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "label": self.labels[i]}


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.EmbeddingBag(30, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, input_ids):
        return self.out(self.emb(input_ids)).squeeze(-1)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optim = optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.BCEWithLogitsLoss()

    def train_epoch(self, loader):
        self.model.train()
        for batch in loader:
            logits = self.model(batch["input_ids"])
            loss = self.loss_fn(logits, batch["label"])
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optim.step()  # <- TL102
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(5)
    trainer = Trainer(BagOfWords(), lr=1e-2)
    loader = DataLoader(Sentences(), batch_size=12, shuffle=True)
    for epoch in range(2):
        print(epoch, trainer.train_epoch(loader))
