"""Least squares and ridge regression."""
