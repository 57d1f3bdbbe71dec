"""`trueloop tune`: measures how a training is made faster, and then says it."""
