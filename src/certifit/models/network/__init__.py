"""Multi-layer perceptrons of numbers and of classes."""
