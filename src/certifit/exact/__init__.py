"""Certificates in ball arithmetic: what `verify(exact=True)` proves, right to the last rounding.

The rows and the stored parameters are exactly the float64 numbers that they are. Every other number is a ball, midpoint
and radius, that holds the true one (python-flint). Precision doubles until the excess of the objective is known well
enough to be compared with the tolerance and with what the certificate in float64 claims.
"""
