"""The compiled losses are the Python ones, row by row, near and far."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.data.source import Block
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, NegativeBinomialLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, Squared

LOSSES = [Logistic(), PoissonLog(), GammaLog(), Squared(), TweedieLog(1.3), NegativeBinomialLog(0.2)]
LOSSES += [NegativeBinomialLog(1e-6), NegativeBinomialLog(50.0)]
SCORES = [-600.0, -40.0, -3.0, -0.1, 0.0, 0.7, 5.0, 40.0, 300.0]


@pytest.mark.parametrize("y", [0.0, 1.0, 17.0, 1e5])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_compiled_loss_is_the_python_one(core, loss, y):
    y = min(y, 1.0) if isinstance(loss, Logistic) else max(y, 0.5) if isinstance(loss, GammaLog) else y
    for z in SCORES:
        X, one = np.zeros((1, 1)), np.ones(1)
        found = core.oracle(
            Block(X, None, None).rows, np.array([y]), None, np.array([z]), one, np.zeros(1), 1.0, np.zeros(1), 0.0,
            loss.code, loss.parameter, with_hessian=True, block_rows=256, threads=1,
        )  # fmt: skip
        at = np.array([y]), np.array([z])
        size = float(np.abs(y * z) + y)  # terms that may cancel
        np.testing.assert_allclose(found[0], loss.value(*at), rtol=1e-12, atol=1e-14 * size)
        np.testing.assert_allclose(found[1][0, 1], loss.slope(*at)[0], rtol=1e-12, atol=1e-15 * y)
        np.testing.assert_allclose(found[2][0, 1, 1], loss.curvature(*at)[0], rtol=1e-12)
