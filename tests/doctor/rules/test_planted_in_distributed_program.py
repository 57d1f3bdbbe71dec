"""A program as it is found in public, with every option of a large one: right as it stands, and
each fault of data, checkpoints and ranks is found in it when one line is changed."""

from __future__ import annotations

import pytest

from trueloop.doctor.static import check_text

PROGRAM = """
import argparse
import os
import random
import shutil

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms

parser = argparse.ArgumentParser(description="ImageNet training")
parser.add_argument("data", nargs="?", default="imagenet")
parser.add_argument("-a", "--arch", default="resnet18")
parser.add_argument("-j", "--workers", default=4, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("--start-epoch", default=0, type=int)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--world-size", default=-1, type=int)
parser.add_argument("--rank", default=-1, type=int)
parser.add_argument("--seed", default=None, type=int)
parser.add_argument("--gpu", default=None, type=int)
parser.add_argument("--multiprocessing-distributed", action="store_true")
best_acc1 = 0


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True
    args.distributed = args.world_size > 1 or args.multiprocessing_distributed
    ngpus_per_node = torch.cuda.device_count()
    if args.multiprocessing_distributed:
        args.world_size = ngpus_per_node * args.world_size
        mp.spawn(main_worker, nprocs=ngpus_per_node, args=(ngpus_per_node, args))
    else:
        main_worker(args.gpu, ngpus_per_node, args)


def main_worker(gpu, ngpus_per_node, args):
    global best_acc1
    args.gpu = gpu
    if args.distributed:
        if args.rank == -1:
            args.rank = int(os.environ["RANK"])
        if args.multiprocessing_distributed:
            args.rank = args.rank * ngpus_per_node + gpu
        dist.init_process_group("nccl", world_size=args.world_size, rank=args.rank)
    model = models.__dict__[args.arch]()
    if args.distributed:
        if args.gpu is not None:
            torch.cuda.set_device(args.gpu)
            model.cuda(args.gpu)
            args.batch_size = int(args.batch_size / ngpus_per_node)
            model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        else:
            model.cuda()
            model = nn.parallel.DistributedDataParallel(model)
    else:
        model = nn.DataParallel(model).cuda()

    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    if args.resume:
        if os.path.isfile(args.resume):
            checkpoint = torch.load(args.resume)
            args.start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
        else:
            print(f"no checkpoint found at {args.resume!r}")

    train_dataset = datasets.ImageFolder(
        os.path.join(args.data, "train"),
        transforms.Compose([
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
        ]),
    )
    val_dataset = datasets.ImageFolder(
        os.path.join(args.data, "val"),
        transforms.Compose([transforms.CenterCrop(224), transforms.ToTensor()]),
    )
    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset)
        val_sampler = torch.utils.data.distributed.DistributedSampler(val_dataset, shuffle=False)
    else:
        train_sampler = None
        val_sampler = None
    train_loader = torch.utils.data.DataLoader(
        train_dataset, batch_size=args.batch_size, shuffle=(train_sampler is None),
        num_workers=args.workers, pin_memory=True, sampler=train_sampler)
    val_loader = torch.utils.data.DataLoader(
        val_dataset, batch_size=args.batch_size, shuffle=False,
        num_workers=args.workers, pin_memory=True, sampler=val_sampler)

    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, args)
        acc1 = validate(val_loader, model, args)
        scheduler.step()
        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if not args.multiprocessing_distributed or args.rank % ngpus_per_node == 0:
            save_checkpoint({
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }, is_best)


def train(train_loader, model, criterion, optimizer, args):
    model.train()
    for images, target in train_loader:
        images = images.cuda(args.gpu, non_blocking=True)
        target = target.cuda(args.gpu, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def validate(val_loader, model, args):
    model.eval()
    correct = torch.zeros(2).cuda(args.gpu)
    with torch.no_grad():
        for images, target in val_loader:
            images = images.cuda(args.gpu, non_blocking=True)
            target = target.cuda(args.gpu, non_blocking=True)
            predicted = model(images).argmax(1)
            correct[0] += (predicted == target).sum()
            correct[1] += len(target)
    if args.distributed:
        dist.all_reduce(correct)
    return (correct[0] / correct[1]).item()


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


if __name__ == "__main__":
    main()
"""
TRAIN_LOADER = """shuffle=(train_sampler is None),
        num_workers=args.workers, pin_memory=True, sampler=train_sampler)"""
CHANGES = {
    "TL703": ("shuffle=(train_sampler is None)", "shuffle=False"),
    "TL704": ("            train_sampler.set_epoch(epoch)", "            pass"),
    "TL712": (
        "        scheduler.step()\n",
        "        scheduler.step()\n        torch.manual_seed(0)\n",
    ),
    "TL713": (
        "    if args.distributed:\n        train_sampler",
        "    parts = torch.utils.data.random_split(train_dataset, [0.9, 0.1])\n"
        "    train_dataset, val_dataset = parts\n"
        "    if args.distributed:\n        train_sampler",
    ),
    "TL801": ('            optimizer.load_state_dict(checkpoint["optimizer"])\n', ""),
    "TL802": ("torch.load(args.resume)", "torch.load(args.resume, weights_only=False)"),
    "TL803": ("model.state_dict()", "model"),
    "TL807": ('(checkpoint["state_dict"])', '(checkpoint["state_dict"], strict=False)'),
    "TL901": ("        output = model(images)", "        output = model.module(images)"),
    "TL902": (
        "if not args.multiprocessing_distributed or args.rank % ngpus_per_node == 0:",
        "if True:",
    ),
    "TL903": (TRAIN_LOADER, "shuffle=True,\n        num_workers=args.workers, pin_memory=True)"),
    "TL905": (
        "            model = nn.parallel.DistributedDataParallel(model)",
        "            model = nn.parallel.DistributedDataParallel(model)\n            model.half()",
    ),
}


def codes(text: str) -> list[str]:
    return [found.code for found in check_text(text, "main.py", strict=True).findings]


def test_the_program_as_it_is_has_no_findings() -> None:
    assert codes(PROGRAM) == []


@pytest.mark.parametrize("code", sorted(CHANGES))
def test_one_changed_line_is_one_finding(code: str) -> None:
    old, new = CHANGES[code]
    assert PROGRAM.count(old) == 1
    assert codes(PROGRAM.replace(old, new)) == [code]
