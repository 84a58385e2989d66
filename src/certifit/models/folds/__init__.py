"""Fits to the training rows of all splits at once: what cross-validation asks a model for."""
