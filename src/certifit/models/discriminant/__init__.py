"""Gaussian discriminant analysis."""
