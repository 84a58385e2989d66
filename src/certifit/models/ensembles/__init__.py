"""Models that are made of models."""
