"""Estimators: parameters, docstring, task."""
