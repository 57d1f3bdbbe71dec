class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


model = nn.Sequential(Block(), Block(), Block(), Block())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
