"""Losses, penalties, families of distributions and kernels: formulas without data."""
