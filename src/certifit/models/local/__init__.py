"""Local regression: a least squares fit of its own at every query."""
