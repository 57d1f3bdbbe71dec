"""Programs that `trueloop export` puts beside a model: they import nothing of Trueloop."""
