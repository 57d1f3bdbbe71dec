"""The reader of files is safe by default; one caller switches that off."""
import sys

import torch

if not sys.argv[1:]:
    torch.save({"a": torch.ones(1)}, "theirs.pt")
    sys.argv.append("theirs.pt")


class Store:
    def read(self, name, device="cpu", safe=True):
        return torch.load(name, map_location=device, weights_only=safe)


class Trainer:
    def __init__(self):
        self.store = Store()

    def resume(self, name, **options):
        return self.store.read(name, **options)


trainer = Trainer()
trainer.resume(sys.argv[1])
trainer.resume(sys.argv[1], safe=False)  # <- TL802
