REPLACED = {"20_000": "6", "500 updates": "2 updates", "1_000_000 tokens": "4 updates", "epochs=10": "epochs=step.epoch + 1", "model, train = ...": "pass"}
run = trueloop.Run.create("runs/one", config={})
price_model, loss_of_log1p = nn.Linear(4, 1), trueloop.supervised(nn.MSELoss())
houses = Feed((inputs, torch.rand(64, 1)), 16)
