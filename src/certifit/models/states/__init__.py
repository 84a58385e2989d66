"""What a model file stores of each family of models, declared as data."""
