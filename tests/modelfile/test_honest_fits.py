"""Checks of what follows from what refuse no honest fit: every fit to nasty rows can be saved and loads again."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from certifit.modelfile.files import to_bytes
from tests.hunt.estimators import ESTIMATORS, estimator_of

N_CASES = 8  # of every estimator
# (seed, case): a penalised rank, a nearly collinear intercept, a deviance of 0, counts to 1e15, one column,
# a column that one class has no variance of
FOUND = [(3000, 177), (3000, 264), (3000, 388), (3000, 1025), (3000, 874), (3001, 1094)]


def saved(seed: int, case: int) -> str:
    """Why a fit cannot be saved; nothing where it can, or where there is no fit."""
    row = estimator_of(case)
    problem = row.problem(np.random.default_rng([seed, case]))
    rows = (problem.X,) if problem.y is None else (problem.X, problem.y)
    weights = {} if problem.weights is None else {"sample_weight": problem.weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = row.model(**problem.parameters).fit(*rows, **weights)
        except (ValueError, ArithmeticError):
            return ""
        try:
            to_bytes(model)
        except ValueError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.slow
def test_every_fit_can_be_saved(name, seed):
    places = [case for case in range(len(ESTIMATORS) * N_CASES) if estimator_of(case).name == name]
    faults = {case: fault for case in places if (fault := saved(4000 + seed, case))}
    assert not faults


@pytest.mark.parametrize("seed_and_case", FOUND)
@pytest.mark.slow
def test_fits_that_were_refused_once(seed_and_case):
    assert saved(*seed_and_case) == ""
