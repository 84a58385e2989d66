"""A legal call of every function of the compiled core, drawn at random: what the binding fuzz damages.

CALLS: {function: draw}, draw(rng) -> the arguments by name. Sizes are small, empty ones among them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.runtime import core

Rng = np.random.Generator
Arguments = dict[str, Any]
CALLS: dict[str, Callable[[Rng], Arguments]] = {}

NUMBERS = (np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8)
WORDS = ("a", "ab", "the", "straße", "x1", "ÉTÉ", "", "日本", "long" * 9)


def call(name: str) -> Callable[[Any], Any]:
    def register(draw: Callable[[Rng], Arguments]) -> Callable[[Rng], Arguments]:
        CALLS[name] = draw
        return draw

    return register


def vector(rng: Rng, n: int) -> Any:
    return rng.normal(size=n)


def maybe(rng: Rng, value: Any) -> Any:
    return value if rng.random() < 0.5 else None


def threads(rng: Rng) -> int:
    return int(rng.integers(1, 4))


def block_rows(rng: Rng) -> int:
    return int(rng.choice([1, 2, 7, 1024]))


# Segments of rows, as `HeldRows` takes them.


def _dense(rng: Rng, n: int) -> tuple[Any, ...]:
    array = rng.normal(scale=3, size=(n, int(rng.integers(0, 6)))).astype(rng.choice(NUMBERS))
    return ("dense", np.asfortranarray(array) if rng.random() < 0.3 else array)


def _csr(rng: Rng, n: int) -> tuple[Any, ...]:
    d = int(rng.choice([1, 3, 32, 33, 60]))
    sizes = rng.integers(0, min(d, 5) + 1, size=n)
    indices = [np.sort(rng.choice(d, size=size, replace=False)) for size in sizes]
    index = rng.choice([np.int32, np.int64])
    values = rng.normal(scale=3, size=int(sizes.sum())).astype(rng.choice([np.float64, np.float32, np.int32, np.int64]))
    columns = np.concatenate([*indices, np.empty(0)]).astype(index)
    return ("csr", values, columns, np.concatenate([[0], np.cumsum(sizes)]).astype(index), d)


def _bitmap(rng: Rng, n: int) -> tuple[Any, int]:
    if rng.random() < 0.3:
        return None, 0
    offset = int(rng.integers(0, 12))
    return rng.integers(0, 256, size=(offset + n + 7) // 8).astype(np.uint8), offset


def _number(rng: Rng, n: int) -> tuple[Any, ...]:
    return ("number", rng.normal(scale=3, size=n).astype(rng.choice(NUMBERS)), *_bitmap(rng, n), float(rng.normal()))


def _bits(rng: Rng, n: int) -> tuple[Any, ...]:
    return ("bits", rng.integers(0, 256, size=(n + 7) // 8).astype(np.uint8), 0, *_bitmap(rng, n), 0.5)


def _missing(rng: Rng, n: int) -> tuple[Any, ...]:
    return ("missing", *_bitmap(rng, n))


def _codes(rng: Rng, n: int) -> tuple[Any, ...]:
    n_codes = int(rng.integers(1, 5))
    codes = rng.integers(0, n_codes, size=n).astype(rng.choice(NUMBERS[2:]))
    columns = np.arange(-1, n_codes - 1).astype(np.int32)
    return ("codes", codes, columns, n_codes, *_bitmap(rng, n), int(rng.integers(-1, n_codes)))


_WIDTH = {"dense": lambda s: s[1].shape[1], "csr": lambda s: s[4], "codes": lambda s: s[3]}


def rows(rng: Rng, kinds: Any = (_dense, _csr, _number, _bits, _missing, _codes)) -> tuple[Any, int, int]:
    """(segments, number of rows, number of columns)"""
    n = int(rng.choice([0, 1, 2, 9, 40]))
    segments = [rng.choice(kinds)(rng, n) for _ in range(rng.integers(1, 4))]
    d = sum(_WIDTH.get(segment[0], lambda s: 1)(segment) for segment in segments)
    return [("rows", n), *segments], n, d


def thin_rows(rng: Rng) -> tuple[Any, int, int]:
    x, n, d = rows(rng, (_codes,))
    if rng.random() < 0.6:
        n = int(rng.choice([0, 1, 9, 40]))
        segment = _csr(rng, n)
        segment = (*segment[:4], max(segment[4], 40))
        return [segment], n, segment[4]
    return x, n, d


def _scaled(rng: Rng, d: int) -> Arguments:
    return {"scale": np.abs(vector(rng, d)), "shift": vector(rng, d), "weight_scale": 1.0}


def _sized(rng: Rng) -> Arguments:
    return {"block_rows": block_rows(rng), "threads": threads(rng)}


def _cells(rng: Rng, n: int, n_cells: int) -> Any:
    return rng.integers(-1, n_cells, size=n).astype(np.int32)


@call("column_sizes")
def _(rng: Rng) -> Arguments:
    return {"x": rows(rng)[0]}


@call("column_shifts")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    return {"x": x, "scale": np.ones(d), "exact": bool(rng.random() < 0.5)}


@call("gram")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    y = {"x": x, "y": maybe(rng, vector(rng, n)), "weight": maybe(rng, np.abs(vector(rng, n))), "y_scale": 1.0}
    twofold = bool(rng.random() < 0.5)
    cells = {"cells": _cells(rng, n, 3), "n_cells": 3} if rng.random() < 0.3 else {}
    return {**y, **_scaled(rng, d), "y_shift": 0.5, "twofold": twofold, **_sized(rng), **cells}


@call("residual")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    scaled = _scaled(rng, d)
    del scaled["shift"]
    return {
        "x": x, "y": vector(rng, n), "weight": maybe(rng, np.abs(vector(rng, n))), "y_scale": 1.0, **scaled,
        "weights": vector(rng, d), "intercept": 0.5, **_sized(rng),
    }  # fmt: skip


@call("residual_rows")
def _(rng: Rng) -> Arguments:
    has_low = rng.random() < 0.5
    x, n, d = rows(rng, (_dense, _number, _bits, _missing)) if has_low else rows(rng)
    numbers = {"y": vector(rng, n), "scale": np.abs(vector(rng, d)), "weights": vector(rng, d)}
    low = vector(rng, d) if has_low else None
    return {"x": x, **numbers, "y_scale": 1.0, "intercept": 0.5, "threads": threads(rng), "low": low}


@call("moved_fits")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng, (_dense, _number, _bits, _missing))
    numbers = {"multipliers": vector(rng, d), "less": vector(rng, n), "start": vector(rng, n)}
    return {"x": x, **numbers, "scale": 1.0, **_sized(rng)}


@call("number_facts")
def _(rng: Rng) -> Arguments:
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 600))
    keys = rng.integers(0, 1 << 63, size=(n if rng.random() < 0.5 else 1, m), dtype=np.uint64)
    return {"x": rng.normal(size=(n, m)), "keys": keys}


@call("project")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    directions = rng.normal(size=(d, int(rng.integers(0, 9))))
    return {
        "x": x, "scale": np.abs(vector(rng, d)), "shift": vector(rng, d), "directions": directions,
        "threads": threads(rng),
    }  # fmt: skip


@call("is_canonical_csr")
def _(rng: Rng) -> Arguments:
    _, _, indices, offsets, d = _csr(rng, 9)
    return {"indices": indices, "offsets": offsets, "n_columns": d, "threads": threads(rng)}


@call("exact_signs")
@call("scores")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    return {"x": x, "weights": vector(rng, d), "intercept": 0.5, "threads": threads(rng)}


@call("row_squares")
def _(rng: Rng) -> Arguments:
    return {"x": rows(rng)[0], "threads": threads(rng)}


@call("row_hashes")
def _(rng: Rng) -> Arguments:
    x, n, _ = rows(rng)
    return {"x": x, "y": maybe(rng, vector(rng, n)), "offset": maybe(rng, vector(rng, n)), "threads": threads(rng)}


@call("cell_sums")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    k = int(rng.integers(1, 4))
    shift = rng.normal(size=(k, d))
    options = {"squares": bool(rng.random() < 0.5), "threshold": maybe(rng, 0.0)}
    weight = maybe(rng, np.abs(vector(rng, n)))
    numbers = {**_scaled(rng, d), "shift": shift, "cells": _cells(rng, n, k)}
    return {"x": x, "weight": weight, **numbers, **options, **_sized(rng)}


@call("linear_scores")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    k = int(rng.integers(0, 7))
    return {"x": x, "weights": rng.normal(size=(k, d)), "intercepts": vector(rng, k), "threads": threads(rng)}


@call("quadratic_scores")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    k = int(rng.integers(0, 4))
    roots = rng.normal(size=(k, 1 if rng.random() < 0.5 else d, d))
    numbers = {"means": rng.normal(size=(k, d)), "roots": roots, "constants": vector(rng, k)}
    return {"x": x, **numbers, "threads": threads(rng)}


def _codes_of(rng: Rng, n: int, k: int) -> Any:
    return rng.integers(0, k, size=n).astype(np.float64)


def _many(rng: Rng, d: int, k: int) -> Arguments:
    return {**_scaled(rng, d), "weights": rng.normal(size=(d, k)), "intercepts": vector(rng, k), **_sized(rng)}


@call("softmax_oracle")
def _(rng: Rng) -> Arguments:
    (x, n, d), k = rows(rng), int(rng.integers(1, 7))
    return {"x": x, "y": _codes_of(rng, n, k), "weight": maybe(rng, np.abs(vector(rng, n))), **_many(rng, d, k)}


@call("softmax_dual")
def _(rng: Rng) -> Arguments:
    (x, n, d), k = rows(rng), int(rng.integers(1, 7))
    mixed = {"lift": vector(rng, k), "mix": np.full(k, 1 / k), "share": 0.5}
    weight = maybe(rng, np.abs(vector(rng, n)))
    return {"x": x, "y": _codes_of(rng, n, k), "weight": weight, **_many(rng, d, k), **mixed}


@call("softmax_product")
def _(rng: Rng) -> Arguments:
    (x, n, d), k = rows(rng), int(rng.integers(1, 7))
    direction = {"ways": rng.normal(size=(d, k)), "levels": vector(rng, k)}
    return {"x": x, "weight": maybe(rng, np.abs(vector(rng, n))), **_many(rng, d, k), **direction}


@call("softmax_pairs")
def _(rng: Rng) -> Arguments:
    (x, n, d), k = rows(rng), int(rng.integers(1, 5))
    return {"x": x, "weight": maybe(rng, np.abs(vector(rng, n))), **_many(rng, d, k)}


def _loss(rng: Rng) -> Arguments:
    return {"loss": int(rng.integers(0, 4)), "parameter": 1.0}


@call("fold_oracle")
def _(rng: Rng) -> Arguments:
    (x, n, d), k, cells = rows(rng), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    folds = {"train": np.ones((k, cells)), "validation": np.ones((k, cells)), "cells": _cells(rng, n, cells)}
    beside = {"weight": maybe(rng, np.abs(vector(rng, n))), "offset": maybe(rng, vector(rng, n))}
    options = {**_loss(rng), "with_value": bool(rng.random() < 0.5)}
    return {"x": x, "y": _codes_of(rng, n, 2), **beside, **_many(rng, d, k), **folds, **options}


@call("oracle")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    beside = {"weight": maybe(rng, np.abs(vector(rng, n))), "offset": maybe(rng, vector(rng, n))}
    cells = {"cells": _cells(rng, n, 3), "n_cells": 3} if rng.random() < 0.3 else {}
    options = {**_loss(rng), "with_hessian": bool(rng.random() < 0.5), **_sized(rng)}
    weights = {"weights": vector(rng, d), "intercept": 0.5}
    return {"x": x, "y": _codes_of(rng, n, 2), **beside, **_scaled(rng, d), **weights, **options, **cells}


@call("weighted_sums")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    beside = {"curvatures": maybe(rng, np.abs(vector(rng, n))), "weight": maybe(rng, np.abs(vector(rng, n)))}
    cells = {"cells": _cells(rng, n, 3), "n_cells": 3} if rng.random() < 0.3 else {}
    return {"x": x, "slopes": vector(rng, n), **beside, **_scaled(rng, d), **_sized(rng), **cells}


@call("thin_oracle")
def _(rng: Rng) -> Arguments:
    x, n, d = thin_rows(rng)
    scaled = _scaled(rng, d)
    del scaled["shift"]
    beside = {"weight": maybe(rng, np.abs(vector(rng, n))), "offset": maybe(rng, vector(rng, n))}
    weights = {"weights": vector(rng, d), "intercept": 0.5}
    return {"x": x, "y": _codes_of(rng, n, 2), **beside, **scaled, **weights, **_loss(rng), **_sized(rng)}


@call("thin_product")
def _(rng: Rng) -> Arguments:
    x, n, d = thin_rows(rng)
    numbers = {"curvatures": np.abs(vector(rng, n)), "scale": np.abs(vector(rng, d)), "direction": vector(rng, d + 1)}
    return {"x": x, **numbers, **_sized(rng)}


@call("thin_diagonal")
def _(rng: Rng) -> Arguments:
    x, n, d = thin_rows(rng)
    return {"x": x, "curvatures": np.abs(vector(rng, n)), "scale": np.abs(vector(rng, d)), **_sized(rng)}


@call("stochastic_pass")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    beside = {"offset": maybe(rng, vector(rng, n)), "order": maybe(rng, rng.permutation(n).astype(np.int64))}
    steps = {"schedule": int(rng.integers(0, 3)), "step": 0.1, "decay": 0.5, "batch_rows": block_rows(rng)}
    state = {"weights": vector(rng, d), "intercept": 0.5, "sums": maybe(rng, np.zeros(d)), "sum_intercept": 0.0}
    options = {"strengths": np.abs(vector(rng, d)), "fit_intercept": True, **_loss(rng), "n_steps": 3}
    return {"x": x, "y": _codes_of(rng, n, 2), **beside, **steps, **state, **options}


@call("perceptron_pass")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    order = maybe(rng, rng.permutation(n).astype(np.int64))
    options = {"threshold": 0.0, "step": 1.0, "fit_intercept": True, "weights": vector(rng, d), "intercept": 0.5}
    return {"x": x, "y": _codes_of(rng, n, 2), "order": order, **options}


@call("dual_descent")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    bound = np.abs(vector(rng, n)) + 0.1
    sizes = {"bound": bound, "diagonal": np.zeros(n), "squares": np.ones(n), "ridge": 1.0}
    state = {
        "a": bound / 2,
        "weights": vector(rng, d),
        "intercept": 0.5,
        "wait": rng.integers(1, 129, n).astype(np.uint8),
        "due": rng.integers(0, 129, n).astype(np.uint8),
    }
    ends = {"n_visits": int(rng.integers(0, 99)), "seed": 3}
    return {"x": x, "y": 2 * _codes_of(rng, n, 2) - 1, **sizes, **state, **ends}


@call("margin_steps")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    steps = {"factor": np.ones(n), "late": np.ones(n), "weights": vector(rng, d), "sums": np.zeros(d)}
    return {"x": x, "y": 2 * _codes_of(rng, n, 2) - 1, "order": rng.permutation(n).astype(np.int64), **steps}


@call("twofold_cholesky")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    root = rng.normal(size=(d, d))
    return {"hi": root @ root.T, "lo": np.zeros((d, d)), "floor": np.full(d, 1e-9), "threads": threads(rng)}


def _square(rng: Rng, d: int) -> Any:
    root = rng.normal(size=(d, d + 1))
    return root @ root.T


@call("turn")
def _(rng: Rng) -> Arguments:
    n, d = int(rng.integers(0, 20)), int(rng.integers(0, 150))
    weights = maybe(rng, vector(rng, n))
    return {"x": rng.normal(size=(n, d)), "weights": weights, "out": np.empty((d, n)), "threads": threads(rng)}


@call("look_at_columns")
def _(rng: Rng) -> Arguments:
    n, d = int(rng.integers(0, 20)), int(rng.integers(0, 150))
    return {"turned": rng.normal(size=(d, n)), "weights": maybe(rng, vector(rng, n)), "threads": threads(rng)}


@call("powers_of_two")
def _(rng: Rng) -> Arguments:
    return {"sizes": np.abs(vector(rng, int(rng.integers(0, 9))))}


@call("scaled_coef")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"coef": vector(rng, d), "scale": np.exp2(rng.integers(-9, 9, size=d)), "y_scale": 0.5}


def _units(rng: Rng, d: int) -> Arguments:
    return {"scale": np.exp2(rng.integers(-9, 9, size=d)), "shift": vector(rng, d), "y_scale": 2.0, "y_shift": 0.3}


@call("state_of_solution")
def _(rng: Rng) -> Arguments:
    d, has_intercept = int(rng.integers(0, 9)), bool(rng.random() < 0.5)
    solution, low = vector(rng, d + has_intercept), maybe(rng, 1e-17 * vector(rng, d + has_intercept))
    return {"solution": solution, "low": low, "has_intercept": has_intercept, **_units(rng, d)}


@call("solution_of_state")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"coef": vector(rng, d), "intercept": 0.7, "has_intercept": bool(rng.random() < 0.5), **_units(rng, d)}


@call("plain_factor")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"matrix": _square(rng, d), "norms": maybe(rng, np.ones(d)), "least_share": 1e-30}


@call("shifted_solutions")
def _(rng: Rng) -> Arguments:
    n = int(rng.integers(1, 9))
    diagonal, shifts = 3 + vector(rng, n), np.abs(vector(rng, int(rng.integers(0, 12))))
    return {"diagonal": diagonal, "beside": vector(rng, n - 1), "right": vector(rng, n), "shifts": shifts}


@call("plain_solve")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"upper": np.triu(_square(rng, d)), "units": np.ones(d), "right": vector(rng, d)}


@call("shifted_gradient")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    parts = {name: vector(rng, d) for name in ("shift", "penalty", "weights")}
    return {"hi": vector(rng, d + 1), "lo": 1e-17 * vector(rng, d + 1), **parts}


@call("moved_residual")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    coef, units = vector(rng, d), _units(rng, d)
    del units["y_shift"]
    return {
        "gradient": vector(rng, d + 1),
        "rounding": np.full(d + 1, 1e-16),
        "squares": 3.0,
        "magnitude": 9.0,
        "old_coef": coef,
        "old_intercept": 0.4,
        "coef": coef + 1e-12 * vector(rng, d),
        "intercept": 0.4,
        "sums": _square(rng, d + 2),
        "penalty": np.abs(vector(rng, d)),
        **units,
        "small_step": 1e-8,
        "small_change": 0.1,
    }


@call("raw_inverse")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"inverse": _square(rng, d + 1), "shift": vector(rng, d)}


@call("error_length")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"inverse": _square(rng, d), "error": np.abs(vector(rng, d))}


@call("proven_digits")
def _(rng: Rng) -> Arguments:
    d, has_intercept = int(rng.integers(1, 9)), bool(rng.random() < 0.5)
    inverse = _square(rng, d)
    vectors = {name: np.abs(vector(rng, d)) for name in ("estimate", "slope", "norms")}
    sizes = {"residual": 0.1, "predictions": 2.0, "relations": 0.0, "most": 15.0}
    shift = vector(rng, d - has_intercept)
    return {"inverse": inverse, "raw": inverse, "shift": shift, "has_intercept": has_intercept, **vectors, **sizes}


@call("centred_products")
def _(rng: Rng) -> Arguments:
    return {
        "sums": _square(rng, int(rng.integers(2, 9))),
        "has_intercept": bool(rng.random() < 0.5),
        "no_spread": 1e-14,
    }


@call("centred_dual")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    columns = {name: np.abs(vector(rng, d)) for name in ("norms", "norms_about", "means", "means_error")}
    sums = {"gradient": vector(rng, d + 1), "rounding": np.full(d + 1, 1e-16)}
    return {**sums, **columns, "unit": 1e-30, "total": 20.0, "has_intercept": bool(rng.random() < 0.5)}


def _by_column(rng: Rng, d: int) -> Arguments:
    free = np.full(d, np.inf)
    strengths = {name: np.maximum(vector(rng, d), 0.0) for name in ("l1", "l2")}
    return {**strengths, "lower": -free, "upper": free if rng.random() < 0.5 else np.ones(d)}


@call("elastic_gap")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {**_by_column(rng, d), "w": vector(rng, d), "q": vector(rng, d), "error": np.abs(vector(rng, d))}


@call("finite_share")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {**_by_column(rng, d), "q": vector(rng, d), "error": np.abs(vector(rng, d))}


@call("twofold_dot")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 9))
    return {"a": vector(rng, d), "b": vector(rng, d)}


@call("twofold_solve")
def _(rng: Rng) -> Arguments:
    d, k = int(rng.integers(0, 9)), int(rng.integers(0, 4))
    upper = np.triu(rng.normal(size=(d, d))) + 3 * np.eye(d)
    right = {"b_hi": rng.normal(size=(d, k)), "b_lo": np.zeros((d, k))}
    return {"upper_hi": upper, "upper_lo": np.zeros((d, d)), **right, "threads": threads(rng)}


def _systems(rng: Rng) -> tuple[Arguments, int, int]:
    k, n, d = int(rng.integers(0, 3)), 12, int(rng.integers(0, 12))
    X, y = rng.normal(size=(k, n, d)), rng.normal(size=(k, n))
    gram = np.ascontiguousarray(X.transpose(0, 2, 1) @ X)
    moment = np.einsum("kij,ki->kj", X, y).reshape(k, d)
    return {"gram": gram, "moment": moment, "square": (y * y).sum(axis=1)}, k, d


def _penalty(rng: Rng, d: int) -> Arguments:
    bound = float(rng.choice([0.1, np.inf]))
    sides = {"lower": np.full(d, -bound), "upper": np.full(d, bound)}
    return {"ratio": float(rng.choice([1.0, 0.5])), "factors": np.ones(d), **sides}


@call("gram_lasso_path")
def _(rng: Rng) -> Arguments:
    systems, _, d = _systems(rng)
    alphas = -np.sort(-np.abs(vector(rng, int(rng.integers(0, 4)))))
    return {**systems, **_penalty(rng, d), "alphas": alphas, "tol": 1e-8, "max_iter": 100, "threads": threads(rng)}


@call("gram_lasso_gaps")
def _(rng: Rng) -> Arguments:
    (systems, k, d), n = _systems(rng), int(rng.integers(0, 4))
    weights = np.zeros((k, n, d))
    return {**systems, **_penalty(rng, d), "alphas": np.abs(vector(rng, n)), "weights": weights, "threads": 1}


@call("gram_alpha_max")
def _(rng: Rng) -> Arguments:
    systems, _, d = _systems(rng)
    return {**systems, **_penalty(rng, d), "max_iter": 100, "threads": threads(rng)}


@call("gram_lasso_step")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(0, 12))
    root = rng.normal(size=(d, d + 2))
    sides = {"lower": np.full(d, -np.inf), "upper": np.full(d, np.inf), "l1": np.full(d, 0.1)}
    point = {"slope": vector(rng, d), "weights": np.zeros(d), "square": 1.0}
    return {"gram": root @ root.T, **point, **sides, "max_iter": 100, "threads": threads(rng)}


def _columns(rng: Rng, sparse: bool | None = None) -> tuple[tuple[Any, ...], int, int]:
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 20))
    if sparse or (sparse is None and rng.random() < 0.5):
        sizes = rng.integers(0, n + 1, size=d)
        index = np.int32 if sparse or rng.random() < 0.5 else np.int64
        indices = np.concatenate([np.sort(rng.choice(n, size=size, replace=False)) for size in sizes])
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(index)
        return ("csc", rng.normal(size=len(indices)), indices.astype(index), offsets, n), n, d
    return ("dense", np.asfortranarray(rng.normal(size=(n, d)))), n, d


def _wide(rng: Rng) -> tuple[Arguments, int]:
    x, n, d = _columns(rng)
    beside = {"weight": maybe(rng, np.abs(vector(rng, n)) + 0.1), "factor": maybe(rng, np.ones(d))}
    sides = {"lower": maybe(rng, np.full(d, -0.1)), "upper": maybe(rng, np.full(d, 0.1))}
    ratio = float(rng.choice([1.0, 0.5, 0.01]))
    fit_intercept = bool(rng.random() < 0.5)
    common = {"x": x, "y": vector(rng, n), "fit_intercept": fit_intercept, "ratio": ratio, "threads": threads(rng)}
    return {**common, **beside, **sides}, d


@call("wide_lasso_path")
def _(rng: Rng) -> Arguments:
    alphas = -np.sort(-np.abs(vector(rng, int(rng.integers(0, 4)))))
    return {**_wide(rng)[0], "alphas": alphas, "tol": 1e-8, "max_iter": 1000}


@call("wide_alpha_max")
def _(rng: Rng) -> Arguments:
    return _wide(rng)[0]


@call("wide_lasso_gap")
def _(rng: Rng) -> Arguments:
    problem, d = _wide(rng)
    columns = np.flatnonzero(rng.random(d) < 0.3)
    return {**problem, "alpha": 0.1, "columns": columns, "weights": 0.01 * vector(rng, len(columns)), "intercept": 0.0}


@call("column_sums")
def _(rng: Rng) -> Arguments:
    columns, n, _ = _columns(rng, sparse=True)
    return {"columns": columns, "weight": np.abs(vector(rng, n)), "threads": threads(rng)}


@call("column_residual")
def _(rng: Rng) -> Arguments:
    columns, n, d = _columns(rng, sparse=True)
    rows = {"y": vector(rng, n), "weight": maybe(rng, np.abs(vector(rng, n)))}
    units = {"scale": 0.5, "y_scale": 2.0, "weight_scale": 1.0}
    return {"columns": columns, **rows, **units, "weights": vector(rng, d), "intercept": 0.1, "threads": threads(rng)}


@call("weighted_lasso_step")
def _(rng: Rng) -> Arguments:
    columns, n, d = _columns(rng, sparse=True)
    sides = {"lower": np.full(d, -1.0), "upper": np.full(d, 1.0), "l1": np.full(d, 0.1), "l2": np.zeros(d)}
    point = {"curvatures": np.abs(vector(rng, n)), "slopes": vector(rng, d + 1), "weights": np.zeros(d)}
    options = {"fit_intercept": True, "tol": 1e-8, "max_sweeps": 50, "threads": 1}
    return {"columns": columns, **point, **sides, "units": np.ones(d), **options}


def _texts(rng: Rng) -> Any:
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for _ in range(rng.integers(0, 6))]
    if rng.random() < 0.5:
        return texts
    parts = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    kind = rng.choice([np.int32, np.int64])
    return np.frombuffer(b"".join(parts), dtype=np.uint8), offsets.astype(kind)


def _analysis(rng: Rng) -> tuple[Any, ...]:
    least = int(rng.integers(1, 3))
    return bool(rng.random() < 0.5), int(rng.integers(1, 3)), least, least + int(rng.integers(0, 3))


@call("find_terms")
def _(rng: Rng) -> Arguments:
    limits = {"low": 1.0, "high": np.inf, "most": int(rng.integers(-1, 4))}
    flags = {"binary": bool(rng.random() < 0.5), "with_matrix": bool(rng.random() < 0.5), "threads": threads(rng)}
    return {"texts": _texts(rng), "analysis": _analysis(rng), "stop_words": ["the"], **limits, **flags}


@call("hash_terms")
def _(rng: Rng) -> Arguments:
    options = {"n_columns": int(rng.integers(1, 9)), "signed": True, "binary": False, "threads": threads(rng)}
    return {"texts": _texts(rng), "analysis": _analysis(rng), "stop_words": ["the"], **options}


@call("vocabulary")
def _(rng: Rng) -> Arguments:
    return {"terms": ["a", "ab", "ab x1"], "stop_words": ["the"]}


@call("count_terms")
def _(rng: Rng) -> Arguments:
    known = core.vocabulary(["a", "ab", "ab x1"], ["the"])
    texts = {"texts": _texts(rng), "analysis": _analysis(rng)}
    return {**texts, "vocabulary": known, "binary": False, "threads": threads(rng)}


@call("words")
def _(rng: Rng) -> Arguments:
    return {"texts": _texts(rng), "analysis": _analysis(rng)}


@call("add_terms")
def _(rng: Rng) -> Arguments:
    def table() -> Any:
        return core.find_terms(_texts(rng), (True, 1, 1, 2), [], 1.0, np.inf, -1, False, False, 1)[0]

    return {"a": table(), "b": table()}


def _ranked(rng: Rng) -> Arguments:
    n = int(rng.choice([2, 5, 300]))
    labels = np.concatenate([[0, 1], rng.integers(0, 2, size=n - 2)]).astype(np.uint8)
    scores = np.round(vector(rng, n), 1).astype(rng.choice([np.float64, np.float32]))
    return {"scores": scores, "labels": labels, "threads": threads(rng)}


def _weighed(rng: Rng, always: bool) -> Arguments:
    call = _ranked(rng)
    weight = np.abs(vector(rng, len(call["labels"]))) + 0.1
    return {**call, "weight": weight if always else maybe(rng, weight)}


CALLS["placement_sums"] = CALLS["placements"] = _ranked
CALLS["weighted_auc"] = lambda rng: _weighed(rng, always=True)
CALLS["score_groups"] = lambda rng: _weighed(rng, always=False)


@call("bootstrap_ranking")
def _(rng: Rng) -> Arguments:
    measure = str(rng.choice(["auc", "average_precision"]))
    return {**_weighed(rng, always=False), "measure": measure, "n_replicates": int(rng.integers(0, 5)), "seed": 7}


def _near(rng: Rng, n: int) -> Arguments:
    return {"n_neighbors": int(rng.integers(1, n)), "psi": np.log(np.arange(1, n + 1)), "threads": threads(rng)}


@call("information_of_numbers")
def _(rng: Rng) -> Arguments:
    n = int(rng.choice([2, 5, 30]))
    numbers = np.round(rng.normal(size=(int(rng.integers(0, 3)), n)), 1)
    return {"numbers": numbers, "target": np.round(vector(rng, n), 1), **_near(rng, n)}


@call("information_of_numbers_and_classes")
def _(rng: Rng) -> Arguments:
    n, k = int(rng.choice([2, 5, 30])), 2
    classes = {"classes": rng.integers(0, k, size=n).astype(np.int32), "n_classes": k}
    return {"numbers": np.round(rng.normal(size=(int(rng.integers(0, 3)), n)), 1), **classes, **_near(rng, n)}


@call("information_of_classes_and_number")
def _(rng: Rng) -> Arguments:
    n, d = int(rng.choice([2, 5, 30])), int(rng.integers(0, 3))
    classes = {"classes": rng.integers(0, 2, size=(d, n)).astype(np.int32), "n_classes": np.full(d, 2)}
    return {**classes, "number": np.round(vector(rng, n), 1), **_near(rng, n)}


def levels(rng: Rng, x: Any, n: int, d: int) -> tuple[Any, Any]:
    """Rows whose first column has three levels, and the number of levels of every column; or plain rows and None."""
    if not d or rng.random() < 0.5:
        return x, None
    codes = rng.integers(0, 3, size=(n, 1)).astype(float)
    n_levels = np.zeros(d, np.uint8)
    n_levels[0] = 3
    return [("dense", np.hstack([codes, rng.normal(size=(n, d - 1))]))], n_levels


@call("grow_tree")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    x, n_levels = levels(rng, x, n, d)
    n_classes = int(rng.choice([0, 2, 3])) if n_levels is None else int(rng.choice([0, 2]))
    y = rng.integers(0, n_classes or 9, size=n).astype(float)
    criterion = str(rng.choice(["gini", "entropy"] if n_classes else ["squared_error", "poisson"]))
    stops = {"max_depth": int(rng.integers(0, 9)), "min_rows_split": 2, "min_rows_leaf": 1, "min_decrease": 0.0}
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    direction = maybe(rng, np.zeros(d, np.int8))
    edges = maybe(rng, [np.sort(rng.normal(size=4)) for _ in range(d)] if n_levels is None else None)
    bins = {"direction": direction, "n_levels": n_levels, "max_bins": int(rng.choice([0, 2, 255])), "edges": edges}
    target = {"y": y, "weight": weight, "criterion": criterion, "n_classes": n_classes}
    return {"x": x, **target, **stops, **bins, "threads": 2}


@call("bin_edges")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    x, n_levels = levels(rng, x, n, d)
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    bins = {"max_bins": int(rng.choice([2, 7, 255])), "n_levels": n_levels}
    return {"x": x, "y": vector(rng, n), "weight": weight, **bins, "threads": threads(rng)}


@call("best_tree")
def _(rng: Rng) -> Arguments:
    x, n, _ = rows(rng)
    n_classes = int(rng.choice([0, 2]))
    y = rng.integers(0, n_classes or 9, size=n).astype(float)
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    sizes = {"depth": int(rng.integers(1, 4)), "min_rows_leaf": 1, "n_thresholds": int(rng.integers(1, 6))}
    return {
        "x": x, "y": y, "weight": weight, "n_classes": n_classes, **sizes, "max_nodes": 1000, "threads": threads(rng)
    }  # fmt: skip


@call("walk_tree")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    x, n_levels = levels(rng, x, n, d)
    feature, left = (np.array([0, -1, -1]), np.array([1, 0, 0])) if d else (np.array([-1]), np.array([0]))
    threshold = vector(rng, len(left)) if n_levels is None else np.zeros(len(left))
    sets = None if n_levels is None else rng.integers(0, 2**63, size=(2, 4), dtype=np.uint64)
    nodes = {"threshold": threshold, "is_missing_left": np.zeros(len(left), np.uint8)}
    of_levels = {"n_levels": n_levels, "sets": sets}
    return {
        "x": x, "feature": feature, "left": left, **nodes, **of_levels, "with_ranges": bool(d % 2),
        "threads": threads(rng),
    }  # fmt: skip


@call("boost_stumps")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    x, n, d = (x, n, d) if d else ([("dense", rng.normal(size=(5, 2)))], 5, 2)
    y = rng.integers(0, 3, size=n).astype(float)
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    return {"x": x, "y": y, "weight": weight, "n_classes": 3, "n_rounds": 4, "rate": 0.5, "threads": threads(rng)}


@call("vote_stumps")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    n = 3 if d else 0
    sides = {name: rng.integers(0, 2, size=n) for name in ("left", "right")}
    asked = {"feature": rng.integers(0, max(d, 1), size=n), "threshold": vector(rng, n), "alpha": vector(rng, n)}
    return {"x": x, **asked, **sides, "n_classes": 2, "threads": threads(rng)}


@call("replay_stumps")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    n_rounds, n_classes = 3 if d else 0, int(rng.choice([2, 3]))
    sides = {name: rng.integers(0, n_classes, size=n_rounds) for name in ("left", "right")}
    asked = {"feature": rng.integers(0, max(d, 1), size=n_rounds), "threshold": vector(rng, n_rounds)}
    y = rng.integers(0, n_classes, size=n).astype(float)
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    return {
        "x": x, "y": y, "weight": weight, **asked, **sides, "alpha": vector(rng, n_rounds),
        "error": rng.uniform(size=n_rounds), "near": np.full(n_rounds, 1e-9), "chosen": int(rng.integers(0, 4)),
        "n_classes": n_classes, "threads": threads(rng),
    }  # fmt: skip


@call("largest_edges")
def _(rng: Rng) -> Arguments:
    x, n, _ = rows(rng)
    return {"x": x, "signs": rng.normal(size=(n, 4)), "threads": threads(rng)}


def _grown(rng: Rng) -> tuple[Arguments, int]:
    x, n, d = rows(rng)
    n_classes = int(rng.choice([0, 2, 3]))
    y = rng.integers(0, n_classes or 9, size=n).astype(float)
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    return {"x": x, "y": y, "weight": weight, "n_classes": n_classes, "seed": 7, "threads": threads(rng)}, d


@call("grow_forest")
def _(rng: Rng) -> Arguments:
    stops = {"max_depth": int(rng.integers(0, 9)), "min_rows_split": 2, "min_rows_leaf": 1}
    draws = {"n_trees": int(rng.integers(0, 3)), "n_tried": 2, "max_bins": 9, "n_levels": None}
    return {**_grown(rng)[0], **draws, **stops}


def _two_trees(d: int, width: int, number: type = np.int64) -> Arguments:
    """A tree of a split, where there is a column, and one of a leaf. number: of columns and nodes."""
    feature, left = ([0, -1, -1, -1], [1, 0, 0, 0]) if d else ([-1, -1], [0, 0])
    nodes = {"threshold": np.zeros(len(left)), "is_missing_left": np.zeros(len(left), np.uint8)}
    ends, values = np.array([0, len(left) - 1, len(left)]), np.ones((left.count(0), width))
    numbers = {"feature": np.array(feature, number), "left": np.array(left, number)}
    return {"ends": ends, **numbers, **nodes, "values": values}


@call("forest_means")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    return {"x": x, **_two_trees(d, 2, np.int32), "n_levels": None, "sets": None, "threads": threads(rng)}


@call("check_forest")
def _(rng: Rng) -> Arguments:
    grown, d = _grown(rng)
    edges = maybe(rng, [rng.choice([0.0, 1.0], size=1) for _ in range(d)])
    trees = _two_trees(d, max(grown["n_classes"], 1), np.int32)
    return {**grown, **trees, "n_levels": None, "sets": None, "edges": edges}


@call("boosting_rows")
def _(rng: Rng) -> Arguments:
    x, n, d = rows(rng)
    x, n, d = (x, n, d) if d > 1 else ([("dense", rng.normal(size=(5, 2)))], 5, 2)
    weight = maybe(rng, rng.integers(0, 3, size=n).astype(float))
    asked = {"has_offset": bool(rng.integers(2)), "max_bins": int(rng.choice([2, 7, 255]))}
    levels = maybe(rng, rng.integers(0, 5, size=d - asked["has_offset"]).astype(np.uint8))
    return {"x": x, "y": vector(rng, n), "weight": weight, **asked, "n_levels": levels, "threads": threads(rng)}


@call("row_losses")
def _(rng: Rng) -> Arguments:
    n = int(rng.integers(0, 40))
    asked = {"loss": int(rng.integers(0, 6)), "parameter": 1.5, "y": np.abs(vector(rng, n)), "z": vector(rng, n)}
    trained = maybe(rng, rng.integers(0, 2, size=n).astype(np.uint8))
    moved = {"leaf": rng.integers(0, 3, size=n).astype(np.int32), "value": vector(rng, 3)}
    moved = moved if rng.integers(2) else dict.fromkeys(moved)
    return {**asked, "weight": np.ones(n), "is_trained": trained, **moved, "threads": threads(rng)}


@call("derive_rounds")
def _(rng: Rng) -> Arguments:
    n, d = (int(size) for size in rng.integers(1, 40, size=2))
    trees = _two_trees(d, 1)
    del trees["values"]
    return {
        "X": rng.normal(size=(n, d)), **trees, "n_levels": None, "sets": None, "value": vector(rng, len(trees["left"])),
        "loss": int(rng.integers(0, 6)), "parameter": 1.5, "y": np.abs(vector(rng, n)), "weight": np.ones(n),
        "score": vector(rng, n), "is_trained": maybe(rng, rng.integers(0, 2, size=n).astype(np.uint8)),
        "threads": threads(rng),
    }  # fmt: skip


@call("derive_rounds_of_ranks")
def _(rng: Rng) -> Arguments:
    arguments = CALLS["derive_rounds"](rng)
    return arguments | {"X": rng.integers(0, 9, size=arguments["X"].shape).astype(np.uint8)}


@call("sum_leaves")
def _(rng: Rng) -> Arguments:
    n, d = (int(size) for size in rng.integers(1, 40, size=2))
    trees = _two_trees(d, 1)
    end = int(trees["ends"][1])
    nodes = {name: trees[name][:end] for name in ("feature", "left", "threshold", "is_missing_left")}
    drawn = maybe(rng, rng.integers(0, 2, size=n).astype(np.uint8))
    return {
        "X": rng.normal(size=(n, d)), **nodes, "n_levels": None, "sets": None, "slope": vector(rng, n),
        "curvature": np.ones(n), "weight": np.ones(n), "is_drawn": drawn, "threads": threads(rng),
    }  # fmt: skip


@call("sum_leaves_of_ranks")
def _(rng: Rng) -> Arguments:
    arguments = CALLS["sum_leaves"](rng)
    return arguments | {"X": rng.integers(0, 9, size=arguments["X"].shape).astype(np.uint8)}


@call("hash_rows")
def _(rng: Rng) -> Arguments:
    x, n, _ = rows(rng)
    return {"x": x, "y": vector(rng, n), "threads": threads(rng)}


@call("merge_hashes")
def _(rng: Rng) -> Arguments:
    n = int(rng.integers(0, 40))
    order, other = (rng.integers(0, 9, size=n).astype(np.uint64) for _ in range(2))
    return {"order": order, "other": other, "y": vector(rng, n), "weight": maybe(rng, np.ones(n))}


@call("bin_rows")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    edges = [np.sort(rng.normal(size=4)) for _ in range(d)]
    return {"x": x, "edges": edges, "n_levels": None, "threads": threads(rng)}


def _coded(rng: Rng) -> tuple[Any, Arguments]:
    """Codes of rows in five bins per column and the missing one, and the rows' targets."""
    n, d = (int(size) for size in rng.integers(1, 40, size=2))
    codes = rng.choice([0, 1, 2, 3, 4, 255], size=(n, d)).astype(np.uint8)
    n_classes = int(rng.choice([0, 2, 3]))
    y = rng.integers(0, n_classes or 9, size=n).astype(float)
    stops = {"max_depth": int(rng.integers(0, 9)), "min_rows_split": 2, "min_rows_leaf": 1}
    edges = [np.arange(4.0) for _ in range(d)]
    target = {"y": y, "weight": rng.integers(1, 3, size=n).astype(float), "n_classes": n_classes}
    return codes, {**target, **stops, "edges": edges, "n_levels": None, "threads": threads(rng)}


def _whole(rng: Rng) -> Any:
    """Numbers of all rows, of which a call has some."""
    return np.array([99, 200.0, rng.integers(2), rng.integers(2), float(rng.normal()), 300.0])


def _of_nodes(rng: Rng) -> Arguments:
    """Rows of a part, which are in two nodes or in none."""
    codes, rest = _coded(rng)
    named = {name: rest[name] for name in ("y", "weight", "n_classes")}
    slot = rng.integers(-1, 2, len(codes)).astype(np.int32)
    criterion = "gini" if rest["n_classes"] else "squared_error"
    return {"codes": codes, **named, "slot": slot, "n_slots": 2, "criterion": criterion}


@call("grow_codes")
def _(rng: Rng) -> Arguments:
    codes, rest = _coded(rng)
    criterion = "gini" if rest["n_classes"] else "squared_error"
    direction = maybe(rng, np.zeros(codes.shape[1], np.int8))
    starts = np.unique(np.append(0, rng.integers(0, len(codes), size=3)))
    asked = {"criterion": criterion, "min_decrease": 0.0, "low": -np.inf, "high": np.inf, "starts": starts}
    return {**rest, "codes": codes, **asked, "whole": _whole(rng), "direction": direction}


@call("level_histograms")
def _(rng: Rng) -> Arguments:
    rows = _of_nodes(rng)
    direction = maybe(rng, np.zeros(rows["codes"].shape[1], np.int8))
    return {**rows, "direction": direction, "whole": _whole(rng), "threads": threads(rng)}


@call("block_sums")
def _(rng: Rng) -> Arguments:
    return _of_nodes(rng)


@call("add_block_sums")
def _(rng: Rng) -> Arguments:
    n_classes, n_slots, n_blocks = int(rng.choice([0, 2, 3])), *(int(size) for size in rng.integers(1, 4, size=2))
    before, *blocks = rng.random((1 + n_blocks, n_slots, n_classes or 5))
    criterion = "gini" if n_classes else str(rng.choice(["squared_error", "poisson"]))
    return {"before": before, "blocks": np.array(blocks), "criterion": criterion, "n_classes": n_classes}


@call("block_sizes")
def _(rng: Rng) -> Arguments:
    n = int(rng.integers(1, 40))
    return {"y": vector(rng, n), "weight": rng.random(n) + 0.1, "centre": float(rng.normal())}


@call("level_split")
def _(rng: Rng) -> Arguments:
    d, n_classes = int(rng.integers(1, 5)), int(rng.choice([0, 3]))
    words = rng.integers(0, 3, size=d * 256 * (5 if n_classes else 2))
    whole = np.array([99, 200.0, 1.0, 1.0, 0.5, 300.0])
    return {
        "words": words, "sums": rng.random(n_classes or 5), "depth": int(rng.integers(0, 3)), "n_rows": 50,
        "low": -np.inf, "high": np.inf, "n_columns": d, "criterion": "gini" if n_classes else "squared_error",
        "n_classes": n_classes, "max_depth": 2, "min_rows_split": 2, "min_rows_leaf": 1, "min_decrease": 0.0,
        "direction": None, "n_levels": maybe(rng, np.full(d, 9, dtype=np.uint8)), "whole": whole,
        "threads": threads(rng),
    }  # fmt: skip


def _drawn_part(rng: Rng) -> Arguments:
    """Rows of a part, how often they are drawn for a tree, and what its units follow from."""
    codes, rest = _coded(rng)
    named = {name: rest[name] for name in ("y", "n_classes")}
    draws = rng.integers(1, 4, len(codes)).astype(np.uint32)
    return {"codes": codes, **named, "draws": draws, "centre": 0.5, "sizes": np.array([300.0, 200.0, 99.0])}


@call("forest_root")
def _(rng: Rng) -> Arguments:
    return {"seed": int(rng.integers(2**32)), "tree": int(rng.integers(100))}


@call("forest_block_draws")
def _(rng: Rng) -> Arguments:
    n_rows = int(rng.integers(1, 40_000))
    weights = rng.integers(1, 9, size=-(-n_rows // 2**14)).astype(np.float64)
    return {
        "n_rows": n_rows, "block_weights": maybe(rng, weights), "seed": 7, "tree": 3,
    }  # fmt: skip


@call("forest_draws")
def _(rng: Rng) -> Arguments:
    n_rows = int(rng.integers(1, 40_000))
    of_blocks = rng.integers(0, 99, size=-(-n_rows // 2**14)).astype(np.uint32)
    weight = maybe(rng, rng.integers(1, 9, size=n_rows).astype(np.float64))
    return {"n_rows": n_rows, "weight": weight, "of_blocks": of_blocks, "first_block": 5, "seed": 7, "tree": 3}


@call("forest_sizes")
def _(rng: Rng) -> Arguments:
    part = _drawn_part(rng)
    return {name: part[name] for name in ("y", "draws", "n_classes", "centre")}


@call("forest_histograms")
def _(rng: Rng) -> Arguments:
    part = _drawn_part(rng)
    slot = rng.integers(-1, 2, len(part["codes"])).astype(np.int32)
    return {**part, "slot": slot, "n_slots": 2, "threads": threads(rng)}


@call("forest_split")
def _(rng: Rng) -> Arguments:
    d, n_classes = int(rng.integers(1, 5)), int(rng.choice([0, 2, 3]))
    words = rng.integers(0, 3, size=d * 256 * (5 if n_classes == 3 else 2))
    return {
        "words": words, "key": int(rng.integers(2**62)), "depth": int(rng.integers(0, 3)), "n_rows": 50,
        "is_pure": bool(rng.integers(2)), "n_columns": d, "n_classes": n_classes, "n_tried": 2, "max_depth": 2,
        "min_rows_split": 2, "min_rows_leaf": 1, "centre": 0.5, "sizes": np.array([300.0, 200.0, 99.0]),
        "n_levels": maybe(rng, np.full(d, 9, dtype=np.uint8)),
    }  # fmt: skip


@call("grow_forest_rest")
def _(rng: Rng) -> Arguments:
    codes, rest = _coded(rng)
    n = len(codes)
    cuts = np.unique([0, int(rng.integers(0, n)), n])
    n_nodes = len(cuts) - 1
    named = ("edges", "y", "n_classes", "max_depth", "min_rows_split", "min_rows_leaf", "n_levels", "threads")
    return {name: rest[name] for name in named} | {
        "codes": codes, "draws": rng.integers(1, 4, n).astype(np.uint32), "block": np.sort(rng.integers(0, 3, n)),
        "cuts": cuts, "keys": rng.integers(0, 2**62, n_nodes).astype(np.uint64),
        "depths": rng.integers(0, 3, n_nodes), "sizes": np.tile([300.0, 200.0, 99.0], (n_nodes, 1)),
        "n_tried": 2, "centre": 0.5,
    }  # fmt: skip


@call("check_forest_part")
def _(rng: Rng) -> Arguments:
    codes, rest = _coded(rng)
    trees = _two_trees(codes.shape[1], max(rest["n_classes"], 1), np.int32)
    trees |= {"n_levels": None, "sets": None, "seed": 7}
    target = {name: rest[name] for name in ("y", "weight", "n_classes", "threads")}
    n_blocks = -(-len(codes) // 2**14)
    return {
        "ranks": codes, **target, **trees, "is_weighted": bool(rng.integers(2)), "first_block": 2,
        "block_draws": rng.integers(0, 99, size=(len(trees["ends"]) - 1, n_blocks)).astype(np.uint32),
        "sums": np.zeros_like(trees["values"]), "mass": np.zeros(len(trees["values"])),
        "seen": np.zeros((0, 4), dtype=np.uint64),
    }  # fmt: skip


def _newton_part(rng: Rng) -> Arguments:
    """Codes of rows in eight bins and the missing one, with slopes and curvatures."""
    n, d = (int(size) for size in rng.integers(1, 40, size=2))
    return {
        "codes": rng.integers(0, 9, size=(n, d)).astype(np.uint8), "slope": vector(rng, n), "curvature": np.ones(n),
        "is_drawn": maybe(rng, rng.integers(0, 2, size=n).astype(np.uint8)), "n_bins": np.full(d, 8, dtype=np.uint8),
        "columns": np.arange(d, dtype=np.uint32), "sizes": (30.0, 40.0, 40),
    }  # fmt: skip


def _stump_of_codes(d: int) -> Arguments:
    return {
        "feature": np.array([d - 1, 0, 0]), "left": np.array([1, 0, 0]), "bin": np.array([3, 0, 0]),
        "is_missing_left": np.zeros(3, dtype=np.uint8), "sets": np.zeros((0, 4), dtype=np.uint64),
    }  # fmt: skip


@call("newton_sizes")
def _(rng: Rng) -> Arguments:
    part = _newton_part(rng)
    return {name: part[name] for name in ("slope", "curvature", "is_drawn")} | {"before": (1.0, 2.0, 3)}


@call("newton_histograms")
def _(rng: Rng) -> Arguments:
    part = _newton_part(rng)
    slot = rng.integers(-1, 3, size=len(part["slope"])).astype(np.int32)
    return part | {"slot": slot, "n_slots": 3, "threads": threads(rng)}


@call("newton_splits")
def _(rng: Rng) -> Arguments:
    part = _newton_part(rng)
    d = len(part["n_bins"])
    words = rng.integers(0, 1 << 20, size=(2, 18 * d))
    return {
        "words": words, "sums": words[:, :18].reshape(2, 9, 2).sum(axis=1), "bounds": np.array([[-9.0, 9.0]] * 2),
        "n_bins": part["n_bins"], "n_levels": maybe(rng, np.where(rng.random(d) < 0.5, 8, 0).astype(np.uint8)),
        "columns": part["columns"], "sizes": part["sizes"], "min_rows_leaf": int(rng.integers(1, 5)), "ridge": 0.5,
        "direction": maybe(rng, rng.integers(-1, 2, size=d).astype(np.int8)), "threads": threads(rng),
    }  # fmt: skip


@call("lead_codes")
def _(rng: Rng) -> Arguments:
    part = _newton_part(rng)
    start = rng.integers(0, 3, size=len(part["codes"])).astype(np.int32)
    of_columns = {"n_bins": part["n_bins"], "n_levels": None} | _stump_of_codes(len(part["n_bins"]))
    return {"codes": part["codes"], "start": start, **of_columns, "threads": threads(rng)}


@call("newton_leaf_sums")
def _(rng: Rng) -> Arguments:
    part = _newton_part(rng)
    n = len(part["slope"])
    return {name: part[name] for name in ("slope", "curvature", "is_drawn")} | {
        "leaves": rng.integers(0, 3, size=n).astype(np.int32), "weight": np.ones(n), "before": np.zeros((3, 3)),
    }  # fmt: skip


@call("newton_values")
def _(rng: Rng) -> Arguments:
    d = int(rng.integers(1, 9))
    stump = _stump_of_codes(d)
    direction = maybe(rng, rng.integers(-1, 2, size=d).astype(np.int8))
    sums = np.abs(rng.normal(size=(3, 3)))
    return {"feature": stump["feature"], "left": stump["left"], "sums": sums, "ridge": 0.5, "direction": direction}


@call("grow_newton")
def _(rng: Rng) -> Arguments:
    n, d = (int(size) for size in rng.integers(1, 40, size=2))
    drawn = np.flatnonzero(rng.random(n) < 0.7).astype(np.uint32)
    codes = rng.integers(0, 9, size=(n, d)).astype(np.uint8)
    bundled = maybe(rng, rng.integers(0, 81, size=(n, (d + 1) // 2)).astype(np.uint8))
    direction = maybe(rng, rng.integers(-1, 2, size=d).astype(np.int8))
    order = maybe(rng, np.argsort(codes.T, axis=1, kind="stable")) if direction is None else None
    return {
        "codes": codes,
        "by_column": np.ascontiguousarray(codes.T),
        "n_bins": np.full(d, 8, dtype=np.uint8),
        "n_levels": maybe(rng, np.where(rng.random(d) < 0.5, 8, 0).astype(np.uint8)),
        "slope": vector(rng, n),
        "curvature": np.ones(n),
        "weight": np.ones(n),
        "rows": maybe(rng, drawn if len(drawn) else np.zeros(1, np.uint32)),
        "columns": np.arange(d, dtype=np.uint32),
        "max_depth": int(rng.integers(0, 9)),
        "max_leaves": int(rng.integers(1, 9)),
        "min_rows_leaf": int(rng.integers(1, 4)),
        "ridge": 1.0,
        "is_best_first": bool(rng.integers(2)),
        "direction": direction,
        "scratch": np.zeros(3 * n, dtype=np.uint64),
        "bundled": bundled,
        "bundle_of": None if bundled is None else (np.arange(d) // 2).astype(np.uint32),
        "sorted_rows": None if order is None else order.astype(np.uint8),
        "sorted_codes": None if order is None else np.ascontiguousarray(np.take_along_axis(codes.T, order, axis=1)),
        "threads": threads(rng),
    }


@call("add_trees")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    trees = _two_trees(d, 1)
    del trees["values"]
    return {
        "x": x, **trees, "n_levels": None, "sets": None, "value": vector(rng, len(trees["left"])),
        "width": int(rng.integers(1, 3)), "first": 0, "last": int(rng.integers(0, 3)), "threads": threads(rng),
    }  # fmt: skip


@call("tree_contributions")
def _(rng: Rng) -> Arguments:
    x, _, d = rows(rng)
    trees = _two_trees(d, 1)
    del trees["values"]
    n_nodes = len(trees["left"])
    return {
        "x": x, **trees, "n_levels": None, "sets": None, "weight": np.ones(n_nodes), "values": np.ones((n_nodes, 1)),
        "width": int(rng.integers(1, 3)), "threads": threads(rng),
    }  # fmt: skip


def _kernel(rng: Rng) -> tuple[Arguments, int]:
    from scipy.linalg import cython_blas

    n, m, d = (int(size) for size in rng.integers(0, 9, size=3))
    kind = str(rng.choice(["linear", "polynomial", "gaussian"]))
    form = {
        "dgemm": cython_blas.__pyx_capi__["dgemm"],
        "kind": kind,
        "constant": 1.0,
        "degree": int(rng.integers(0, 4)),
    }
    return {**form, "X": rng.normal(size=(n, d)), "Z": rng.normal(size=(m, d)), "threads": threads(rng)}, m


@call("kernel_matrix")
def _(rng: Rng) -> Arguments:
    return _kernel(rng)[0]


@call("kernel_matrix_short")
def _(rng: Rng) -> Arguments:
    return _kernel(rng)[0]


@call("kernel_times")
def _(rng: Rng) -> Arguments:
    arguments, m = _kernel(rng)
    return {**arguments, "V": rng.normal(size=(m, int(rng.integers(0, 4))))}


@call("inner_products")
def _(rng: Rng) -> Arguments:
    from scipy.linalg import cython_blas

    A = rng.normal(size=(int(rng.integers(0, 9)), int(rng.integers(1, 9))))
    blocks = {"block_rows": int(rng.integers(1, 5)), "threads": threads(rng)}
    return {"dsyrk": cython_blas.__pyx_capi__["dsyrk"], "A": A, **blocks}


@call("multiply")
def _(rng: Rng) -> Arguments:
    arguments, m = _kernel(rng)
    shapes = {"A": rng.normal(size=(m, 3)), "B": rng.normal(size=(m, 2)), "is_transposed": True}
    return {"dgemm": arguments["dgemm"], **shapes, "threads": threads(rng)}


@call("multiply_short")
def _(rng: Rng) -> Arguments:
    from scipy.linalg import cython_blas

    m = int(rng.integers(0, 9))
    shapes = {name: rng.normal(size=(m, k)).astype(np.float32) for name, k in (("A", 3), ("B", 2))}
    sgemm = cython_blas.__pyx_capi__["sgemm"]
    return {"sgemm": sgemm, **shapes, "is_transposed": True, "threads": threads(rng)}


def _narrow(rng: Rng, dtype: type[np.floating[Any]]) -> Arguments:
    sizes = rng.integers(0, 9, size=int(rng.integers(1, 4)))
    n, k = int(sizes.sum()), int(rng.integers(0, 30))
    m = n if len(sizes) > 1 else int(rng.integers(0, 9))
    return {
        "A": rng.normal(size=(n, m)).astype(dtype),
        "V": rng.normal(size=(m, k)).astype(dtype),
        "bounds": np.append(0, np.cumsum(sizes)),
        "is_on": rng.integers(0, 2, size=(len(sizes), k)).astype(np.uint8),
        "threads": threads(rng),
    }


@call("narrow_product")
def _(rng: Rng) -> Arguments:
    return _narrow(rng, np.float64)


@call("narrow_product_short")
def _(rng: Rng) -> Arguments:
    return _narrow(rng, np.float32)


def _pool(rng: Rng) -> Arguments:
    from scipy.linalg import cython_blas

    is_single = bool(rng.integers(2))
    return {
        "gemm": cython_blas.__pyx_capi__["sgemm" if is_single else "dgemm"],
        "is_single": is_single,
        "kind": str(rng.choice(["linear", "polynomial", "gaussian"])),
        "constant": 1.0,
        "degree": int(rng.integers(0, 4)),
        "points": rng.normal(size=(int(rng.integers(1, 9)), int(rng.integers(0, 4)))),
        "most_rows": int(rng.integers(0, 9)),
    }


@call("margin_pool")
def _(rng: Rng) -> Arguments:
    return _pool(rng)


@call("margin_given_pool")
def _(rng: Rng) -> Arguments:
    n = int(rng.integers(1, 9))
    return {"is_single": bool(rng.integers(2)), "matrix": rng.normal(size=(n, n))}


@call("margin_solve")
def _(rng: Rng) -> Arguments:
    pool, n_rows = _some_pool(rng)
    n = int(rng.integers(0, 12))
    bound = rng.choice([0.0, 0.5, 1.0, np.inf], size=n)
    return {
        "pool": pool,
        "row": rng.integers(0, n_rows, size=n).astype(np.uint32),
        "sign": rng.choice([-1.0, 1.0], size=n),
        "target": rng.normal(size=n),
        "bound": bound,
        "a": np.minimum(bound, 0.25),
        "f": rng.normal(size=n_rows),
        "set": np.unique(rng.integers(0, max(n, 1), size=min(n, 3)).astype(np.uint32)),
        "has_intercept": bool(rng.integers(2)),
        "violation": 1e-3,
        "most_steps": int(rng.integers(0, 1000)),
        "most_rounds": int(rng.integers(0, 20)),
        "size": int(rng.integers(2, 9)),
        "is_summed_again": bool(rng.integers(2)),
        "threads": threads(rng),
    }


@call("margin_counts")
def _(rng: Rng) -> Arguments:
    return {"pool": _some_pool(rng)[0]}


@call("margin_add")
def _(rng: Rng) -> Arguments:
    pool, n_rows = _some_pool(rng)
    n = int(rng.integers(0, 12))
    return {
        "pool": pool,
        "row": rng.integers(0, n_rows, size=n).astype(np.uint32),
        "coefficients": rng.normal(size=n),
        "f": rng.normal(size=n_rows),
        "threads": threads(rng),
    }


@call("gaussian_sums")
def _(rng: Rng) -> Arguments:
    n, m, d = int(rng.integers(1, 40)), int(rng.integers(0, 20)), int(rng.integers(0, 9))
    return {"X": rng.normal(size=(n, d)), "Z": rng.normal(size=(m, d)), "c": vector(rng, m), "threads": threads(rng)}


def _some_pool(rng: Rng) -> tuple[object, int]:
    arguments = _pool(rng)
    return core.margin_pool(**arguments), len(arguments["points"])


def _local(rng: Rng) -> tuple[Arguments, int, int]:
    n, m, d = int(rng.integers(1, 30)), int(rng.integers(0, 6)), int(rng.integers(1, 4))
    rows = {"points": rng.normal(size=(n, d)), "y": vector(rng, n), "weight": rng.uniform(1, 2, size=n)}
    basis = {"columns": rng.normal(size=(n, 2)), "degree": int(rng.integers(0, 3)), "at": rng.normal(size=(m, 2))}
    weights = {"weights": rng.uniform(size=(m, n)), "kind": "given"}
    return {**rows, **basis, **weights, "queries": rng.normal(size=(m, d)), "threads": threads(rng)}, n, m


@call("local_fits")
def _(rng: Rng) -> Arguments:
    arguments, n, m = _local(rng)
    omitted = maybe(rng, rng.integers(-1, n, size=m))
    return {**arguments, "omitted": omitted, "taus": np.array([1.0]), "with_norm": True, "with_coefficients": True}


@call("local_systems")
def _(rng: Rng) -> Arguments:
    arguments, _, m = _local(rng)
    return {**arguments, "tau": 1.0, "coefficients": rng.normal(size=(m, 3))}


@call("lowess")
def _(rng: Rng) -> Arguments:
    n = int(rng.integers(1, 800))
    x = np.sort(rng.normal(size=n))
    return {"x": x, "y": vector(rng, n), "k": int(rng.integers(1, n + 1)), "iterations": 2, "threads": threads(rng)}


def _network(rng: Rng, is_single: bool) -> Arguments:
    from scipy.linalg import cython_blas

    kind, sizes = np.float32 if is_single else np.float64, rng.integers(1, 6, size=int(rng.integers(2, 5)))
    biases, output_bias = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    has_bias = [biases] * (len(sizes) - 2) + [output_bias]
    pairs = zip(sizes[:-1], sizes[1:], has_bias, strict=True)
    return {
        "gemm": cython_blas.__pyx_capi__["sgemm" if is_single else "dgemm"],
        "sizes": sizes.astype(np.int64),
        "biases": biases,
        "output_bias": output_bias,
        "activation": str(rng.choice(["identity", "sigmoid", "tanh", "relu"])),
        "slope": 0.1,
        "X": rng.normal(size=(int(rng.integers(0, 20)), sizes[0])).astype(kind),
        "parameters": rng.normal(size=sum(a * b + b * has for a, b, has in pairs)).astype(kind),
        "threads": threads(rng),
    }


def _with_targets(rng: Rng, is_single: bool) -> Arguments:
    arguments = _network(rng, is_single)
    n, k = len(arguments["X"]), int(arguments["sizes"][-1])
    kind = "softmax" if k > 1 else str(rng.choice(["score", "huber", "softmax"]))
    loss = {"loss": kind, "formula": int(rng.integers(0, 2)), "parameter": 1.0, "scale": 1.0}
    y = rng.integers(0, k if kind == "softmax" else 2, size=n).astype(np.float64)
    return {**arguments, **loss, "y": y, "offset": maybe(rng, vector(rng, n))}


def _training(rng: Rng, is_single: bool) -> Arguments:
    arguments = _with_targets(rng, is_single)
    n, point = len(arguments["X"]), arguments["parameters"]
    return {
        **arguments,
        "visits": rng.integers(0, n, size=2 * n) if n else np.zeros(0, dtype=np.int64),
        "first": np.zeros_like(point),
        "second": np.zeros_like(point),
        "n_steps": int(rng.integers(0, 5)),
        "method": str(rng.choice(["descent", "adam"])),
        "schedule": str(rng.choice(["constant", "inverse", "inverse-root"])),
        "pace": np.array([0.01, 0.1, 0.5, 0.9, 0.999, 1e-8, 0.01]),
        "batch": int(rng.integers(1, 9)),
    }


for _end, _is_single in (("", False), ("_short", True)):
    call("network_scores" + _end)(lambda rng, single=_is_single: _network(rng, single))
    call("network_gradient" + _end)(lambda rng, single=_is_single: {**_with_targets(rng, single), "weight": None})
    call("network_train" + _end)(lambda rng, single=_is_single: _training(rng, single))


@call("network_gradient_of_short")
def _(rng: Rng) -> Arguments:
    arguments = _with_targets(rng, False)
    return {**arguments, "X": arguments["X"].astype(np.float32), "weight": None}
