"""AdaBoost of stumps."""
