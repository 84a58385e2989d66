"""Certificates: from a task and its solution to a proof, and from a least squares fit to its inference."""
