class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.value = nn.Linear(4, 8), nn.Linear(4, 8)

    def forward(self, x):
        return self.query(x) * self.value(x)


model = nn.Sequential(Attention(), nn.Linear(8, 3))
REPLACED = {"rank=8": "rank=2"}
from collections import OrderedDict

backbone, width, classes = Attention(), 8, 3
