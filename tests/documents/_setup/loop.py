REPLACED = {"20_000": "6", "500 updates": "2 updates", "1_000_000 tokens": "4 updates", "epochs=10": "epochs=step.epoch + 1", "model, train = ...": "pass"}
run = trueloop.Run.create("runs/one", config={})
