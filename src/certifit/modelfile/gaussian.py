"""Gaussian classes in a file: discriminant analysis and Gaussian naive Bayes.

    state.priors      (K,)                      state.means   (K, p)
    state.covariance  (p, p) of all classes, (K, p, p) of each, or (K, p) variances
    state.roots       lower triangles T with covariance^-1 = T'T: (1, p, p), (K, p, p) or (K, 1, p); not of naive Bayes
    state.redundant   places of the columns that are left out: their rows of T are 0
    boundary.coef, boundary.intercept   of linear scores, where one covariance makes them: one row of two classes

Naive Bayes goes on with rows that come later, for which it needs sums in scaled units beside its state:

    sums.scale, sums.shift   of every column, scales are powers of two     sums.rows   rows of every class
    sums.scatter             sum of weight (x scale - mean)^2 of every class and column
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.modelfile.agreement import SAME, TINY, UNIT, agree, are_inverse_roots
from certifit.modelfile.classes import Kind, check_priors, family, redundant_places
from certifit.modelfile.family import Arrays, Metadata
from certifit.modelfile.schema import NUMBER_FROM_0, Array, Check, Spec, refuse_any

POWER = Check("a power of two", lambda value: type(value) is float and 0 < value < np.inf and _is_power(value))
SUMS: Mapping[str, Spec] = {"epsilon": NUMBER_FROM_0, "weight_scale": POWER}

# In standard deviations. Numbers of a column differ by their own rounding or not at all: only weights make it more.
MOST_ROUNDED = 1e9

_SHAPES = {"shared": ("p", "p"), "class": ("K", "p", "p"), "diagonal": ("K", "p")}
_ROOTS = {"shared": ("1", "p", "p"), "class": ("K", "p", "p"), "diagonal": ("K", "1", "p")}


def _is_power(values: Any) -> Any:
    return np.frexp(values)[0] == 0.5


def _dump_discriminant(model: Any) -> tuple[Metadata, Arrays]:
    arrays = {
        "state.priors": model.priors_,
        "state.means": model.means_,
        "state.covariance": model.covariance_,
        "state.roots": model.roots_,
        "state.redundant": np.array(model.redundant_, dtype=np.int64),
    }
    if hasattr(model, "coef_"):
        arrays |= {"boundary.coef": model.coef_, "boundary.intercept": model.intercept_}
    return {}, arrays


def _discriminant_arrays(metadata: Metadata, arrays: Arrays, K: int) -> tuple[dict[str, Array], dict[str, int]]:
    kind = metadata["parameters"]["covariance"]
    specs = {
        "state.priors": Array(("K",)),
        "state.means": Array(("K", "p")),
        "state.covariance": Array(_SHAPES[kind]),
        "state.roots": Array(_ROOTS[kind]),
        "state.redundant": Array(("r",), np.int64),
    }
    if kind == "shared":
        # A prior of 0 makes an intercept infinite.
        specs["boundary.coef"] = Array(("K'", "p"))
        specs["boundary.intercept"] = Array(("K'",), may_be_infinite=True)
    return specs, {"r": _size(arrays, "state.redundant"), "K'": K if K > 2 else 1}


def _check_discriminant(metadata: Metadata, arrays: Arrays) -> None:
    check_priors(arrays["state.priors"], metadata, arrays)
    covariance, roots, means = arrays["state.covariance"], arrays["state.roots"], arrays["state.means"]
    is_diagonal = metadata["parameters"]["covariance"] == "diagonal"
    variances = covariance if is_diagonal else np.diagonal(covariance, axis1=-2, axis2=-1)
    sizes = roots[:, 0] if is_diagonal else np.diagonal(roots, axis1=1, axis2=2)
    is_left_out = _are_left_out(arrays, means.shape[1])
    refuse_any(
        {
            "fewer than two classes": len(means) < 2,
            "a variance below 0": (variances < 0).any(),
            "a covariance that is not symmetric": not is_diagonal and not _is_symmetric(covariance),
            "roots that are not lower triangles": not is_diagonal and np.triu(roots, 1).any(),
            "a root of a column that is left out": (roots.swapaxes(1, 2) if is_diagonal else roots)[
                :, is_left_out
            ].any(),
            "a column that is used and has no root": not (sizes[:, ~is_left_out] > 0).all(),
        }
    )
    refuse_any({"roots that are not those of the covariance": not _have_roots(covariance, roots, ~is_left_out)})
    if "boundary.coef" in arrays:
        _check_boundary(arrays)


def _have_roots(covariance: Any, roots: Any, is_used: Any) -> bool:
    """Whether covariance^-1 = T'T for every root T, in the columns that are used."""
    if roots.shape[1] == 1:  # variances
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            product = roots[:, 0] * (roots[:, 0] * covariance.reshape(roots[:, 0].shape))
        return bool((np.abs(product - 1)[:, is_used] <= SAME).all())
    return are_inverse_roots(roots, covariance.reshape(roots.shape), is_used)


def _check_boundary(arrays: Arrays) -> None:
    """Refuse linear scores that are not those of the priors, means and covariance."""
    from certifit.tasks.gaussian_classes import GaussianState

    priors, means, covariance, roots = (arrays[f"state.{name}"] for name in ("priors", "means", "covariance", "roots"))
    state = GaussianState(priors, means, covariance, roots)
    stored = arrays["boundary.coef"], arrays["boundary.intercept"]
    with np.errstate(all="ignore"):
        is_same = state.has_boundary(*stored, SAME)
    refuse_any({"boundaries that are not those of its priors, means and covariance": not is_same})


def _is_symmetric(matrices: Any) -> bool:
    """To the rounding of sums."""
    with np.errstate(over="ignore"):
        off = np.abs(matrices - matrices.swapaxes(-2, -1))
    return bool((off <= SAME * np.abs(matrices).max(axis=(-2, -1), keepdims=True)).all())


def _place_discriminant(model: Any, metadata: Metadata, arrays: Arrays) -> None:
    model.priors_, model.means_ = arrays["state.priors"], arrays["state.means"]
    model.covariance_, model.roots_ = arrays["state.covariance"], arrays["state.roots"]
    model.redundant_ = tuple(arrays["state.redundant"].tolist())
    if "boundary.coef" in arrays:
        model.coef_, model.intercept_ = arrays["boundary.coef"], arrays["boundary.intercept"]


def _dump_naive(model: Any) -> tuple[Metadata, Arrays]:
    sums = model._sums
    arrays = {
        "state.priors": model.class_prior_,
        "state.means": model.theta_,
        "state.covariance": model.var_,
        "state.redundant": np.array(model.redundant_, dtype=np.int64),
        "sums.rows": np.asarray(sums.n_rows, dtype=np.int64),
        "sums.scale": sums.scaling.scale,
        "sums.scatter": sums.scatter(),
        "sums.shift": sums.scaling.shift,
    }
    return {"sums": {"epsilon": float(model.epsilon_), "weight_scale": float(sums.scaling.weight_scale)}}, arrays


def _naive_arrays(metadata: Metadata, arrays: Arrays, K: int) -> tuple[dict[str, Array], dict[str, int]]:
    square = Array(("K", "p"))
    specs = {
        "state.priors": Array(("K",)),
        "state.means": square,
        "state.covariance": square,
        "state.redundant": Array(("r",), np.int64),
        "sums.rows": Array(("K",), np.int64),
        "sums.scale": Array(("p",)),
        "sums.scatter": square,
        "sums.shift": Array(("p",)),
    }
    return specs, {"r": _size(arrays, "state.redundant")}


def _check_naive(metadata: Metadata, arrays: Arrays) -> None:
    check_priors(arrays["state.priors"], metadata, arrays)
    means, variances, rows = arrays["state.means"], arrays["state.covariance"], arrays["sums.rows"]
    scale, scatter, count = arrays["sums.scale"], arrays["sums.scatter"], arrays["class_count"]
    is_left_out = _are_left_out(arrays, means.shape[1])
    refuse_any(
        {
            "scales that are not powers of two": (scale <= 0).any() or not _is_power(scale).all(),
            "a scatter below 0": (scatter < 0).any(),
            "rows of classes that do not add up": (rows < 0).any() or sum(rows.tolist()) != metadata["data"]["n_rows"],
            "a class without rows that has a weight": ((rows == 0) & (count > 0)).any(),
            "a variance below 0, or 0 of a column that is used": (variances < 0).any()
            or not (variances[:, ~is_left_out] > 0).all(),
        }
    )
    _check_sums(metadata, arrays)


def _check_sums(metadata: Metadata, arrays: Arrays) -> None:
    """Refuse sums of which the state is not that of a fit."""
    sums, epsilon = _sums(metadata, arrays), metadata["sums"]["epsilon"]
    with np.errstate(all="ignore"):
        wanted = np.where(sums.weight[:, None] > 0, sums.variances + epsilon, 1.0)
        total = sums.total_variances()
        added = float(metadata["parameters"]["var_smoothing"]) * float(total.max())
        # Means are rounded, and the spread between classes is what is left of them.
        rounded = UNIT * np.abs(arrays["state.means"]).max(axis=0) / np.sqrt(total)
        most = float(rounded[total > 0].max(initial=0.0))
        lost = SAME + 16 * most
        refuse_any(
            {
                "means whose rounding is beyond every spread": not most < MOST_ROUNDED,
                "a scatter that is within rounding of 0 and not 0": sums.scatter().tobytes() != sums.squares.tobytes(),
                "variances that are not those of its sums": not np.allclose(
                    arrays["state.covariance"], wanted, rtol=SAME, atol=TINY
                ),
                "an epsilon that is not the share of the largest variance asked for": not agree(epsilon, added, lost),
            }
        )


def _sums(metadata: Metadata, arrays: Arrays) -> Any:
    """The sums that rows which come later are added to, about the means of the classes."""
    from certifit.statistics.cell_sums import CellMoments
    from certifit.statistics.gram import Scaling

    scale, weight_scale, means = arrays["sums.scale"], metadata["sums"]["weight_scale"], arrays["state.means"]
    scaling = Scaling(scale, arrays["sums.shift"], 1.0, 0.0, weight_scale)
    with np.errstate(over="ignore", under="ignore"):
        weight, centre = arrays["class_count"] * weight_scale, means * scale
    return CellMoments(weight, np.zeros_like(means), arrays["sums.scatter"], centre, scaling, arrays["sums.rows"])


def _place_naive(model: Any, metadata: Metadata, arrays: Arrays) -> None:
    model.class_prior_, model.theta_, model.var_ = (
        arrays[f"state.{name}"] for name in ("priors", "means", "covariance")
    )
    model.redundant_ = tuple(arrays["state.redundant"].tolist())
    model.epsilon_ = metadata["sums"]["epsilon"]
    model._sums = _sums(metadata, arrays)


def _are_left_out(arrays: Arrays, p: int) -> Any:
    found = np.zeros(p, dtype=bool)
    found[list(redundant_places(arrays, p))] = True
    return found


def _size(arrays: Arrays, name: str) -> int:
    """The size of an array that `check_arrays` will ask for."""
    return arrays[name].size if name in arrays else 0


DISCRIMINANT = family(
    Kind("priors", True, _dump_discriminant, _discriminant_arrays, _check_discriminant, _place_discriminant)
)
GAUSSIAN_NAIVE = family(Kind("priors", True, _dump_naive, _naive_arrays, _check_naive, _place_naive))
