"""AdaBoost of regression trees."""
