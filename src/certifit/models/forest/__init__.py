"""Random forests."""
