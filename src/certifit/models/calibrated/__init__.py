"""Probabilities from scores of any classifier."""
