"""Models of kernels: kernel ridge regression."""
