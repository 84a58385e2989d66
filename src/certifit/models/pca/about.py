"""Directions of largest variance."""

from __future__ import annotations

from certifit.models.learner import LARGEST, Answer, Learner, Told, Words, always, choice, count, either, flag, number
from certifit.models.parameters import MAPS, MAX_TIME, STANDARDIZE, TOL


def _pca(told: Told) -> str:
    """Directions of largest variance."""
    z = "(x - mean)" if told.params["center"] else "x"
    scale = " / scale" if told.params["standardize"] else ""
    return f"maximised: trace V'AV over V'V = I, A = mean of z z', z = {z}{scale}"


ROWS = (
    Learner(
        "pca",
        "models.pca.model:PCA",
        _pca,
        Words("principal components", "variance", goal=LARGEST),
        {
            "n_components": either(
                "a whole number >= 1, a share above 0 and at most 1, 'mle'",
                None,
                count(1),
                number(None, most=1.0, is_above=True),
                choice("mle", "mle"),
                or_none=True,
            ),
            "center": flag(True),
            "standardize": STANDARDIZE,
            "whiten": flag(False),
            "solver": choice("auto", "auto", "exact", "columns", "rows", "randomized"),
            "ddof": number(1, most=1.0),
            "tol": TOL,
            "max_iter": count(100),
            "max_time": MAX_TIME,
            "random_state": count(0, least=0),
        },
        MAPS,
        always(Answer.NONE),
        exact="components",
        record="models.pca.modelfile:RECORD",
    ),
)
