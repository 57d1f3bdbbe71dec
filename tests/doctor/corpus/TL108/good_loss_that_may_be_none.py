import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(20, (count, 6))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"tokens": self.tokens[index], "label": index % 2}


def collate(samples):
    return {
        "tokens": torch.stack([each["tokens"] for each in samples]),
        "labels": torch.tensor([each["label"] for each in samples]),
    }


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Embedding(20, 8), nn.Linear(8, 2)

    def forward(self, tokens, labels=None):
        logits = self.head(self.body(tokens).mean(1))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


torch.manual_seed(0)
loader = DataLoader(Reviews(24), batch_size=8, shuffle=True, collate_fn=collate)
model = Tagger()
named = list(model.named_parameters())
optimizer = torch.optim.AdamW(
    [
        {"params": [p for n, p in named if "bias" not in n], "weight_decay": 0.01},
        {"params": [p for n, p in named if "bias" in n], "weight_decay": 0.0},
    ]
)
for epoch in range(2):
    for batch in loader:
        batch = {key: value.to("cpu") for key, value in batch.items()}
        loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
