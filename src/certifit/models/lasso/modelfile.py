"""Lasso and elastic net in a file: the numbers of the iterations that the history keeps are in the metadata."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.least_squares.modelfile import LINEAR, NAMED, SOLVER, started
from certifit.models.record import PENALTY, Check, Content, Field, Problems, Record, history_rows, more_columns

ITERATIONS = Check(
    "a list of integers from 0 on, each above the one before",
    lambda value: (
        isinstance(value, list)
        and all(type(number) is int for number in value)
        and all(low < high for low, high in zip([-1, *value], value, strict=False))
    ),
)


def _problems(content: Content) -> Iterator[Problems]:
    """The penalty sets weights to zero: the rank counts the others, and nothing is inferred."""
    metadata = content.metadata
    rank, n_weights = metadata["solution"]["rank"], int(np.count_nonzero(content.arrays["coef"]))
    yield {
        f"rank {rank} for {n_weights} coefficients that are not 0": rank != n_weights,
        "directions that are not determined": metadata["n_directions"] != 0,
        "standard errors under a penalty": metadata["inference"] is not None,
        "a history of another length": len(metadata["penalty"]["iterations"]) != metadata["n_iterations"],
    }


RECORD = (
    LINEAR
    | SOLVER
    | started("p")
    | NAMED
    | Record(
        fields={
            "penalty": {
                "iterations": Field(ITERATIONS, get=lambda model: [int(row["iteration"]) for row in model.history_])
            }
        },
        derived={
            "history_": lambda content: history_rows(
                content.arrays["history"], content.metadata["penalty"]["iterations"], more=more_columns(content)
            )
        },
        checks=(_problems,),
    )
    | PENALTY
)
