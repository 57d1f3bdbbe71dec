import torch

model = torch.nn.Linear(8, 1)


def inner(batch):
    return [model(batch), model(batch), model(batch), model(batch)]


def outer(batch):
    return [inner(batch), inner(batch), inner(batch), inner(batch)]


for a in range(10):
    for b in range(10):
        for c in range(10):
            for d in range(10):
                for e in range(10):
                    for f in range(10):
                        for g in range(10):
                            for h in range(10):
                                for i in range(10):
                                    for j in range(10):
                                        outer([a, b, c, d, e, f, g, h, i, j])
