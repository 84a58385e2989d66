"""Standard errors, tests, intervals and the summary table: one for least squares and for generalised linear models."""
