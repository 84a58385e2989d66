"""Lasso and elastic net."""
