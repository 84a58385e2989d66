"""Classifiers with a closed form in a file: labels, priors and weights of classes, and the columns left out.

Naive Bayes shares this record; that of Gaussian discriminant analysis adds its covariances.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certifit.models.file_checks import SAME, Floats, agree, are_inverse_roots
from certifit.models.record import (
    CLAIM,
    FLAG,
    LABELLED,
    MAGNITUDE,
    ROWS,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Metadata,
    Model,
    Object,
    Problems,
    Record,
    Setting,
    Shown,
    fault_problems,
    fields_at,
)

MOST_OFF = 1e-8  # largest difference between the sum of the user's priors and 1, as the models allow
REDUNDANT = Array(("r",), "int64", at="redundant_", is_tuple=True)


LIKELIHOOD = "models.discriminant.likelihood:LikelihoodCertificate"


def closed_form(priors: str, state: str, has_rank: bool = True) -> Record:
    """What all such classifiers have. priors: the name of the parameter; state: the array of the priors used.

    has_rank: whether its certificate has a rank and a condition. The format has a condition, 1, where it has none.
    """
    condition = Field(MAGNITUDE, "certificate_.condition") if has_rank else Field(MAGNITUDE, get=lambda model: 1.0)

    def asked(model: Model) -> Floats | None:
        stated = getattr(model, priors)
        try:
            return None if stated is None else np.asarray(stated, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{priors} must be one number per class. Got {stated!r:.60}.") from None

    def used(content: Content) -> Floats:
        stored: Floats = content.arrays[state]
        return np.exp(stored) if state == "state.log_priors" else stored

    def show(content: Content) -> Shown:
        left_out = [content.columns[j] for j in _redundant(content)]
        shown = {
            "priors": used(content).tolist(),
            "are_priors_given": content.metadata["has_priors"],
            "weights": content.arrays["class_count"].tolist(),
            "n_columns": len(content.columns),
            "left_out": left_out,
        }
        return {"classes": shown}

    return LABELLED | Record(
        fields={
            "certificate": {
                **fields_at("certificate_.*", {**CLAIM, "fault": TEXT, "kind": TEXT}),
                "condition": condition,
            },
            "data": ROWS,
            "has_priors": Field(FLAG, get=lambda model: getattr(model, priors) is not None),
            **TARGET_NAME,
        },
        arrays={
            "class_count": Array(("K",), at="class_count_"),
            "priors": Array(("K",), get=asked, when=lambda metadata: metadata["has_priors"]),
        },
        objects={
            "certificate_": Object(
                "models.discriminant.likelihood:LikelihoodCertificate", _certificate if has_rank else None
            )
        },
        settings={priors: Setting(asked, lambda content: content.arrays.get("priors"))},
        checks=(lambda content: _prior_problems(content, used(content)), fault_problems),
        shown=(show,),
        counts="labelled",
    )


def are_left_out(content: Content) -> NDArray[np.bool_]:
    """Whether each column is left out of the fit."""
    left_out = np.zeros(len(content.columns), dtype=bool)
    left_out[list(_redundant(content))] = True
    return left_out


def _redundant(content: Content) -> list[int]:
    """Places of columns that are left out: sorted, each its own, some column left."""
    p = len(content.columns)
    places: list[int] = content.arrays.get("state.redundant", np.zeros(0, dtype=np.int64)).tolist()
    if not all(low < high for low, high in zip([-1, *places], [*places, p], strict=True)):
        raise ValueError(f"redundant columns that are not places from 0 to {p - 1}, sorted.")
    return places


def _certificate(content: Content) -> dict[str, object]:
    redundant, p = _redundant(content), len(content.columns)
    return {"rank": p - len(redundant), "n_columns": p, "dependent": tuple(content.columns[j] for j in redundant)}


def _prior_problems(content: Content, priors: Floats) -> Iterator[Problems]:
    """Priors that are none, or that are neither those given nor the classes' shares."""
    stored, count = content.arrays.get("priors"), content.arrays["class_count"]
    with np.errstate(over="ignore"):
        total, sum_of_given = count.sum(), 1.0 if stored is None else stored.sum()
    sum_weight = content.metadata["data"]["sum_weight"]
    yield {
        "a class of negative weight": (count < 0).any(),
        "weights of classes whose sum is 0 or infinite": not (0 < total < np.inf),
        "classes whose weights do not add up to that of the rows": not agree(total, sum_weight),
    }
    wanted = count / total if stored is None else stored
    is_uniform = content.parameters.get("fit_prior", True) is False and stored is None
    wanted = np.full(len(count), 1.0 / len(count)) if is_uniform else wanted
    yield {
        "given priors that are negative or do not add up to 1": stored is not None
        and not ((stored >= 0).all() and abs(sum_of_given - 1) <= MOST_OFF),
        "priors that are not those given, or the classes' shares": not agree(priors, wanted),
    }


# ---- Gaussian discriminant analysis ----------------------------------------------------------------------------------
# state.covariance  (p, p) of all classes, (K, p, p) of each, or (K, p) variances
# state.roots       lower triangles T with covariance^-1 = T'T: (1, p, p), (K, p, p) or (K, 1, p)
# state.redundant   places of the columns that are left out: their rows of T are 0
# boundary.*        of linear scores, where one covariance makes them: B rows, 1 of two classes

_SHAPES = {"shared": ("p", "p"), "class": ("K", "p", "p"), "diagonal": ("K", "p")}
_ROOTS = {"shared": ("1", "p", "p"), "class": ("K", "p", "p"), "diagonal": ("K", "1", "p")}


def _is_shared(metadata: Metadata) -> bool:
    return bool(metadata["parameters"]["covariance"] == "shared")


def _problems(content: Content) -> Iterator[Problems]:
    arrays = content.arrays
    covariance, roots, means = arrays["state.covariance"], arrays["state.roots"], arrays["state.means"]
    is_diagonal = content.parameters["covariance"] == "diagonal"
    variances = covariance if is_diagonal else np.diagonal(covariance, axis1=-2, axis2=-1)
    sizes = roots[:, 0] if is_diagonal else np.diagonal(roots, axis1=1, axis2=2)
    is_left_out = are_left_out(content)
    rows_of_roots = roots.swapaxes(1, 2) if is_diagonal else roots
    yield {
        "fewer than two classes": len(means) < 2,
        "a variance below 0": (variances < 0).any(),
        "a covariance that is not symmetric": not is_diagonal and not _is_symmetric(covariance),
        "roots that are not lower triangles": not is_diagonal and np.triu(roots, 1).any(),
        "a root of a column that is left out": rows_of_roots[:, is_left_out].any(),
        "a column that is used and has no root": not (sizes[:, ~is_left_out] > 0).all(),
    }
    yield {"roots that are not those of the covariance": not _have_roots(covariance, roots, ~is_left_out)}
    if _is_shared(content.metadata):
        yield {"boundaries that are not those of its priors, means and covariance": not _has_boundary(content)}


def _have_roots(covariance: Floats, roots: Floats, is_used: NDArray[np.bool_]) -> bool:
    """Whether covariance^-1 = T'T for every root T, in the columns that are used."""
    if roots.shape[1] == 1:  # variances
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            product = roots[:, 0] * (roots[:, 0] * covariance.reshape(roots[:, 0].shape))
        return bool((np.abs(product - 1)[:, is_used] <= SAME).all())
    return are_inverse_roots(roots, covariance.reshape(roots.shape), is_used)


def _has_boundary(content: Content) -> bool:
    """Whether the linear scores are those of the priors, means and covariance."""
    from certifit.models.discriminant.task import GaussianState

    arrays = content.arrays
    priors, means, covariance, roots = (arrays[f"state.{name}"] for name in ("priors", "means", "covariance", "roots"))
    state = GaussianState(priors, means, covariance, roots)
    with np.errstate(all="ignore"):
        return bool(state.has_boundary(arrays["boundary.coef"], arrays["boundary.intercept"], SAME))


def _is_symmetric(matrices: Floats) -> bool:
    """To the rounding of sums."""
    with np.errstate(over="ignore"):
        off = np.abs(matrices - matrices.swapaxes(-2, -1))
    return bool((off <= SAME * np.abs(matrices).max(axis=(-2, -1), keepdims=True)).all())


def _sizes(metadata: Metadata) -> dict[str, int]:
    n_classes = metadata["labels"]["count"]
    return {"B": n_classes if n_classes > 2 else 1}


RECORD = closed_form("priors", "state.priors") | Record(
    arrays={
        "state.priors": Array(("K",), at="priors_"),
        "state.means": Array(("K", "p"), at="means_"),
        "state.covariance": Array(lambda metadata: _SHAPES[metadata["parameters"]["covariance"]], at="covariance_"),
        "state.roots": Array(lambda metadata: _ROOTS[metadata["parameters"]["covariance"]], at="roots_"),
        "state.redundant": REDUNDANT,
        "boundary.coef": Array(("B", "p"), at="coef_", when=_is_shared),
        # A prior of 0 makes an intercept infinite.
        "boundary.intercept": Array(("B",), may_be_infinite=True, at="intercept_", when=_is_shared),
    },
    sizes=(_sizes,),
    checks=(_problems,),
)
