"""Huber regression."""
