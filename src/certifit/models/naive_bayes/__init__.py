"""Naive Bayes: Gaussian, Bernoulli and multinomial."""
