"""How good a model is, and how sure that is: metrics, intervals, bounds and their pictures."""
