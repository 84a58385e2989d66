"""The standing hunt: every claim of a fit, checked against exact and 300-bit references on nasty problems.

generate.py makes the problems, references/ the truth, estimators.py says what each model claims, judge.py compares,
runner.py runs many cases. The references take NumPy arrays and give numbers; they share no code with the package.
"""
