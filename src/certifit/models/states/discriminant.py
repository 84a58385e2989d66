"""Gaussian discriminant analysis in a file.

state.covariance  (p, p) of all classes, (K, p, p) of each, or (K, p) variances
state.roots       lower triangles T with covariance^-1 = T'T: (1, p, p), (K, p, p) or (K, 1, p)
state.redundant   places of the columns that are left out: their rows of T are 0
boundary.*        of linear scores, where one covariance makes them: B rows, 1 of two classes
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certifit.models.state import Array, Content, Metadata, Problems, Record
from certifit.models.states.agreement import SAME, Floats, are_inverse_roots
from certifit.models.states.classes import REDUNDANT, are_left_out, closed_form

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
    from certifit.tasks.gaussian_classes import GaussianState

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
