"""How good predictions are: numbers with their intervals."""
