"""Generalised linear models, logistic and softmax regression."""
