"""Folds, cross-validation, forward and backward selection of features."""
