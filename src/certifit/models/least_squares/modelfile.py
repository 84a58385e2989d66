"""Least squares and ridge in a file.

    q   directions in which the coefficients are not determined    m   iterations

A number is stored once. What follows from others (names of columns, estimates of the inference, the rank in the
certificate) is derived on load, so a file cannot contradict itself.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certifit.models.file_checks import NEAR, SAME, agree, alpha_problems, inverse_problems
from certifit.models.glm.modelfile import SOLVERS, START, asked_start, solver_name, start_array, start_word
from certifit.models.record import (
    CLAIM,
    COUNT,
    FLAG,
    INTEGER,
    ITERATIONS,
    LITERAL,
    MAGNITUDE,
    MORE,
    MORE_HISTORY,
    NUMBER,
    NUMBER_FROM_0,
    NUMBERED_HISTORY,
    PENALISED,
    TARGET,
    TARGET_NAME,
    TEXTS,
    Array,
    Content,
    Field,
    Maybe,
    Metadata,
    Model,
    Object,
    OrNull,
    Problems,
    Record,
    Setting,
    fields_at,
    history_array,
    history_rows,
    more_columns,
    one_of,
    show_coefficients,
    stored_numbers,
)

LARGEST_EXPONENT = 1100
SMALLEST_EXPONENT = -450  # squares of smaller targets have not all digits in float64, or are 0
MOST_DIGITS = 15.0
FEWEST_DIGITS = 10.0  # of every coefficient, where the objective has enough to be compared


def _n_directions(model: Model) -> int | None:
    """None where the null space was too large to keep."""
    return None if model.null_space_ is None else int(model.null_space_.shape[1])


def _certificate(content: Content, has_names: bool = False) -> dict[str, object]:
    solution = content.metadata["solution"]
    has_names = has_names or content.metadata["certificate"]["has_digits"]
    return {
        "rank": solution["rank"],
        "condition": solution["condition"],
        "n_columns": len(content.columns),
        "names": content.coefficients if has_names else (),
    }


def _inference(content: Content) -> dict[str, object]:
    has_intercept = content.parameters["fit_intercept"]
    first = [content.metadata["solution"]["intercept"]] * has_intercept
    return {
        "names": content.coefficients,
        "estimate": np.concatenate([first, content.arrays["coef"]]),
        "n_obs": content.metadata["data"]["sum_weight"],
        "has_intercept": has_intercept,
    }


def _solution_problems(content: Content) -> Iterator[Problems]:
    metadata, p = content.metadata, len(content.columns)
    solution, inference, stored = metadata["solution"], metadata["inference"], metadata["certificate"]
    alpha, rank, n_dependent = solution["alpha"], solution["rank"], len(stored["dependent"])
    has_intercept, digits = content.parameters["fit_intercept"], content.arrays.get("certificate.digits", np.zeros(0))
    yield alpha_problems(content.parameters.get("alpha", 0), alpha, metadata["data"]["sum_weight"], np.ones(1))
    yield {
        f"digits, which must be in 0 to {MOST_DIGITS:g}": not ((digits >= 0) & (digits <= MOST_DIGITS)).all(),
        f"rank {rank} of {p} columns": rank > p,
        f"{n_dependent} dependent columns for rank {rank} of {p}": n_dependent > p
        or (n_dependent > p - rank and not (alpha and rank < p)),  # a penalty gives some that repeat others a rank
        "an intercept without fit_intercept": not has_intercept and solution["intercept"] != 0,
        "standard errors under a penalty": inference is not None and alpha > 0,
        "standard errors of redundant columns": inference is not None and rank < p,
        f"an exponent beyond {LARGEST_EXPONENT}": inference is not None
        and abs(inference["exponent"]) > LARGEST_EXPONENT,
    }


def _direction_problems(content: Content) -> Iterator[Problems]:
    """As many directions as the rank leaves; a penalty determines what the data do not."""
    solution, p, q = content.metadata["solution"], len(content.columns), content.metadata["n_directions"]
    is_wrong = q is not None and q != p - solution["rank"] and (q or not solution["alpha"])
    yield {f"{q} directions for rank {solution['rank']} of {p} columns": is_wrong}


def _inference_problems(content: Content) -> Iterator[Problems]:
    """Sums of squares that are not those of the target and of the objective, or a matrix that is no inverse."""
    metadata, arrays = content.metadata, content.arrays
    stored, data, has_intercept = metadata["inference"], metadata["data"], content.parameters["fit_intercept"]
    if stored is None:
        return
    mass = data["sum_weight"] if has_intercept else None
    yield from inverse_problems(arrays["inference.inverse"], mass, metadata["solution"]["condition"])
    exponent, rss, tss = stored["exponent"], stored["rss"], stored["tss"]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        size = np.ldexp(np.array([data["target_sd"], 0.0 if has_intercept else data["target_mean"]]), -exponent)
        about = float(data["sum_weight"] * (size @ size))
        residual = float(2 * data["sum_weight"] * np.ldexp(arrays["history"][-1:, 0], -2 * exponent).sum())
    digits = arrays.get("certificate.digits", np.zeros(1))
    has_history = len(arrays["history"]) > 0 and exponent > SMALLEST_EXPONENT
    is_known = has_history and residual < math.inf and bool((digits >= FEWEST_DIGITS).all())
    has_digits = data["target_sd"] >= sys.float_info.min
    yield {
        "a sum of squares that is not that of the target": about < math.inf
        and has_digits
        and not agree(tss, about, NEAR),
        "residuals of more than the target": rss > tss * (1 + SAME),
        "residuals that are not those of the objective": is_known and abs(rss - residual) > NEAR * rss + SAME * tss,
    }


def _sizes(metadata: Metadata) -> dict[str, int]:
    return {"q": metadata["n_directions"] or 0, "m": metadata["n_iterations"]}


# Every linear model that keeps the directions in which the data do not determine it.
LINEAR = (
    PENALISED
    | MORE_HISTORY
    | Record(
        fields={
            "certificate": {
                **fields_at("certificate_.*", {**CLAIM, "dependent": TEXTS}),
                "has_digits": Field(FLAG, get=lambda model: bool(model.certificate_.digits)),
                **LITERAL,
            },
            **TARGET,
            **TARGET_NAME,
            "inference": Maybe(
                "inference_",
                fields_at("inference_.*", {"exponent": INTEGER, "rss": NUMBER_FROM_0, "tss": NUMBER_FROM_0}),
            ),
            "n_directions": Field(OrNull(COUNT), get=_n_directions),
            "n_iterations": Field(COUNT, get=lambda model: len(model.history_)),
            "solution": fields_at(
                "*_", {"alpha": NUMBER_FROM_0, "condition": MAGNITUDE, "intercept": NUMBER, "rank": COUNT}
            ),
        },
        arrays={
            "coef": Array(("p",), at="coef_"),
            "null_intercept": Array(("q",), at="null_intercept_"),
            "null_space": Array(
                ("p", "q"), at="null_space_", when=lambda metadata: metadata["n_directions"] is not None
            ),
            "certificate.digits": Array(
                ("k",),
                at="certificate_.digits",
                when=lambda metadata: metadata["certificate"]["has_digits"],
                is_tuple=True,
            ),
            "history": Array(("m", "3"), may_be_infinite=True, get=history_array),
            "inference.inverse": Array(
                ("k", "k"), at="inference_.inverse", when=lambda metadata: metadata["inference"] is not None
            ),
        },
        objects={
            "certificate_": Object("models.certificate:Certificate", _certificate),
            "inference_": Object("inference.least_squares:Inference", _inference),
        },
        derived={
            "history_": lambda content: history_rows(content.arrays["history"], more=more_columns(content)),
            "null_space_": lambda content: content.arrays.get("null_space"),
        },
        sizes=(_sizes,),
        checks=(_solution_problems, _inference_problems),
        shown=(show_coefficients,),
    )
)
# A certificate that names its coefficients though it proves no digits of them.
NAMED = Record(
    objects={
        "certificate_": Object("models.certificate:Certificate", lambda content: _certificate(content, has_names=True))
    }
)


def _solver(model: Model) -> str | None:
    """Its name; None of "auto", which a file leaves out."""
    name = solver_name(model)
    return None if name == "auto" else name


def _given_start(content: Content) -> object:
    word = content.metadata.get("start")
    return content.arrays["start"][0] if word == "given" else word


# The solver of the user's choice; files of versions without one have none.
SOLVER = Record(named={"solver": Field(one_of(*SOLVERS), get=_solver, is_left_out=True)})


def started(size: str) -> Record:
    """Where the steps began, of models with so many numbers; files of versions without a start have none."""
    return Record(
        fields={"start": Field(START, get=start_word, is_left_out=True)},
        arrays={"start": Array(("1", size), get=start_array, when=lambda metadata: metadata.get("start") == "given")},
        settings={"start": Setting(asked_start, _given_start)},
    )


STARTED = SOLVER | started("k")
LEAST_SQUARES = LINEAR | NUMBERED_HISTORY | STARTED | Record(checks=(_direction_problems,))
RIDGE = LEAST_SQUARES | Record(switches=("standardize",))


# Any linear model of a quantity in a file, with a history of any numbers: the record where none is declared.
#
# A model that has more attributes, or a certificate of a class of its own, adds them: `RECORD | Record(...)`.

_NOT_STORED = "seconds"  # so that the same fit gives the same bytes; a load says NaN
_RENAMED = {"primal": "objective"}  # of files of earlier versions


def _history_keys(model: Model) -> list[str]:
    keys = [key for key in model.history_[0] if key not in ("iteration", *MORE)] if model.history_ else []
    return [key for key in keys if key == _NOT_STORED or not all(math.isnan(row[key]) for row in model.history_)]


def _history(model: Model) -> NDArray[np.float64]:
    return stored_numbers(model, [key for key in _history_keys(model) if key != _NOT_STORED])


def _stored_keys(metadata: Metadata) -> list[str]:
    return [key for key in metadata["history"] if key != _NOT_STORED]


def _history_rows(content: Content) -> list[dict[str, float]]:
    keys = [_RENAMED.get(key, key) for key in _stored_keys(content.metadata)]
    numbers = content.arrays["history.iterations"].tolist()
    return history_rows(content.arrays["history"], numbers, keys, more_columns(content))


def _problems(content: Content) -> Iterator[Problems]:
    keys, numbers = content.metadata["history"], content.arrays["history.iterations"].tolist()
    is_sorted = all(low < high for low, high in zip([-1, *numbers], numbers, strict=False))
    yield {
        "iterations that do not follow each other": not is_sorted,
        "a history that names a number twice": len({*keys, "iteration"}) <= len(keys),
        "standard errors, which only least squares has": content.metadata["inference"] is not None,
    }


RECORD = (
    LINEAR
    | NAMED
    | Record(
        fields={"history": Field(TEXTS, get=_history_keys), "solution": fields_at("*_", {"n_iter": COUNT})},
        arrays={"history": Array(("m", "h"), may_be_infinite=True, get=_history), "history.iterations": ITERATIONS},
        derived={"history_": _history_rows},
        sizes=(lambda metadata: {"h": len(_stored_keys(metadata))},),
        checks=(_problems,),
    )
)
QUANTILE = RECORD | started("k")
