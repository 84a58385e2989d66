"""Data and mathematics together: what a solver minimises and a certificate judges."""
