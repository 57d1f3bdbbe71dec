ema, buffer = torch.optim.swa_utils.AveragedModel(model), []

