import torch
from torch import nn


class Recipes(nn.Module):
    def __init__(self, vectors, kinds):
        super().__init__()
        self.emb = nn.Embedding.from_pretrained(vectors)
        self.rnn = nn.GRU(vectors.shape[1], 8, batch_first=True)
        self.out = nn.Linear(8, kinds)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[1][-1])


torch.manual_seed(9)
model = Recipes(torch.randn(40, 6), 3)
dense = [p for n, p in model.named_parameters() if not n.startswith("emb.")]
slow = torch.optim.Adagrad(model.emb.parameters(), lr=0.05)  # <- TL309
fast = torch.optim.Adam(dense, lr=5e-3)
for _ in range(8):
    ids = torch.randint(0, 40, (16, 5))
    slow.zero_grad()
    fast.zero_grad()
    nn.functional.cross_entropy(model(ids), ids[:, 0] % 3).backward()
    slow.step()
    fast.step()
