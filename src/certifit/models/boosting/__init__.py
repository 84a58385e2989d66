"""Gradient boosting of trees for any family: Newton steps on the losses of generalised linear models."""
