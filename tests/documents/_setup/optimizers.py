matrices = [model[0].weight]
others = [p for p in model.parameters() if p is not model[0].weight]
