"""What is added: statistics of blocks that sum over rows, and the factor of a Gram matrix."""
