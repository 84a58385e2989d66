"""Which rows a model is fitted to and which it is scored on, and the scores."""
