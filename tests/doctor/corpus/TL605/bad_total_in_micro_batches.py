import argparse

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=5e-3)
    args = parser.parse_args()

    torch.manual_seed(42)
    torch.set_num_threads(1)
    tokens = torch.randint(0, 40, (256, 6))
    labels = tokens[:, 0] % 2
    train_dataloader = DataLoader(
        TensorDataset(tokens, labels), batch_size=8, shuffle=True, drop_last=True
    )

    model = nn.Sequential(nn.EmbeddingBag(40, 16), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    t_total = len(train_dataloader) * args.num_train_epochs
    scheduler = LinearLR(optimizer, 1.0, 0.0, total_iters=t_total)  # <- TL605
    criterion = nn.CrossEntropyLoss()

    model.zero_grad()
    for epoch in range(args.num_train_epochs):
        model.train()
        for step, (input_ids, target) in enumerate(train_dataloader):
            loss = criterion(model(input_ids), target)
            loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                model.zero_grad()
        print(epoch, loss.item() * args.gradient_accumulation_steps, scheduler.get_last_lr())


if __name__ == "__main__":
    main()
