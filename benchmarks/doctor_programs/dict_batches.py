"""Batches as dicts, a collate function, parameter groups, a warm-up per batch."""

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(1, 20, (count, 6), generator=generator)
        self.labels = (self.tokens.float().mean(1) > 10).long()

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "label": self.labels[index]}


def collate(samples):
    return {
        "input_ids": torch.stack([s["input_ids"] for s in samples]),
        "labels": torch.stack([s["label"] for s in samples]),
    }


class Encoder(nn.Module):
    def __init__(self, vocabulary=20, width=16, classes=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, batch_first=True)
        self.classifier = nn.Linear(width, classes)

    def forward(self, input_ids, labels=None):
        hidden = self.layer(self.embedding(input_ids)).mean(dim=1)
        logits = self.classifier(hidden)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def get_optimizer(model, lr, weight_decay):
    no_decay = ["bias", "norm"]
    groups = [
        {
            "params": [
                p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)
            ],
            "weight_decay": weight_decay,
        },
        {
            "params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)],
            "weight_decay": 0.0,
        },
    ]
    return AdamW(groups, lr=lr)


def get_linear_schedule(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, (total - step) / max(1, total - warmup))

    return LambdaLR(optimizer, factor)


def main(epochs=3, batch_size=10):
    torch.manual_seed(11)
    train_loader = DataLoader(
        Sequences(60, 0), batch_size=batch_size, shuffle=True, collate_fn=collate
    )
    eval_loader = DataLoader(Sequences(20, 1), batch_size=batch_size, collate_fn=collate)
    model = Encoder()
    optimizer = get_optimizer(model, lr=5e-3, weight_decay=0.01)
    num_training_steps = epochs * len(train_loader)
    lr_scheduler = get_linear_schedule(optimizer, 3, num_training_steps)

    for epoch in range(epochs):
        model.train()
        for batch in train_loader:
            batch = {k: v.to("cpu") for k, v in batch.items()}
            outputs = model(**batch)
            loss = outputs["loss"]
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()

        model.eval()
        correct = total = 0
        for batch in eval_loader:
            with torch.no_grad():
                outputs = model(**batch)
            predictions = outputs["logits"].argmax(dim=-1)
            correct += (predictions == batch["labels"]).sum().item()
            total += len(predictions)
        print(f"epoch {epoch}: accuracy {correct / total:.3f}")


if __name__ == "__main__":
    main()
