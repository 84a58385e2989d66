"""Ordinary problems: random rows and columns of real tables, with the columns that people add to them.

Every claim of a fit is compared with the references of `tests.hunt`, which share no code with the package.
"""
