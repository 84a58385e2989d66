"""Models of kernels: kernel ridge regression, kernel LMS, kernel principal components."""
