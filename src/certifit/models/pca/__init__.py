"""Principal component analysis."""
