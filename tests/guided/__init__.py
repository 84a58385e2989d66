"""Coverage-guided fuzzing; see __main__."""
