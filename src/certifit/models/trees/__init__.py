"""Decision trees: grown greedily, two leaves at a time."""
