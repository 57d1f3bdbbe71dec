import torch
from torch import nn


class Distiller:
    def __init__(self, student, projector):
        self.student, self.projector = student, projector
        self.opt_student = torch.optim.SGD(student.parameters(), lr=0.1)
        self.opt_projector = torch.optim.SGD(projector.parameters(), lr=0.1)  # <- TL309
        self.freeze(self.projector)

    @staticmethod
    def freeze(module):
        for p in module.parameters():
            p.requires_grad = False

    def fit(self, batches):
        for x, y in batches:
            self.opt_student.zero_grad()
            self.opt_projector.zero_grad()
            loss = (self.projector(self.student(x)) - y).abs().mean()
            loss.backward()
            self.opt_student.step()
            self.opt_projector.step()
        return loss.item()


torch.manual_seed(0)
batches = [(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(4)]
print(Distiller(nn.Linear(4, 6), nn.Linear(6, 2)).fit(batches))
