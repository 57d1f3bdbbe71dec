"""The optimizer is chosen by its name, gradients are clipped by hand, and one branch never steps."""
import argparse

import torch
from torch import nn


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", default="adamw", choices=["sgd", "adamw"])
    parser.add_argument("--use_fp16", action="store_true")
    parser.add_argument("--clip_grad", type=float, default=3.0)
    return parser.parse_args()


def clip_gradients(model, limit):
    norms = []
    for _, p in model.named_parameters():
        if p.grad is not None:
            norm = p.grad.data.norm(2)
            norms.append(norm.item())
            coefficient = limit / (norm + 1e-6)
            if coefficient < 1:
                p.grad.data.mul_(coefficient)
    return norms


def train(args):
    student = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 4))
    if args.optimizer == "adamw":
        optimizer = torch.optim.AdamW(student.parameters())
    elif args.optimizer == "sgd":
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
    fp16_scaler = None
    if args.use_fp16:
        fp16_scaler = torch.amp.GradScaler("cpu")
    for epoch in range(3):
        train_one_epoch(student, optimizer, fp16_scaler, args)


def train_one_epoch(student, optimizer, fp16_scaler, args):
    for x, y in [(torch.randn(8, 5), torch.randint(4, (8,))) for _ in range(3)]:
        loss = nn.functional.cross_entropy(student(x), y)
        optimizer.zero_grad()
        if fp16_scaler is None:
            loss.backward()  # <- TL106
            if args.clip_grad:
                clip_gradients(student, args.clip_grad)
        else:
            fp16_scaler.scale(loss).backward()
            if args.clip_grad:
                fp16_scaler.unscale_(optimizer)
                clip_gradients(student, args.clip_grad)
            fp16_scaler.step(optimizer)
            fp16_scaler.update()
    print(loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    train(options())
