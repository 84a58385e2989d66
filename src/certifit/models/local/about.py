"""Locally weighted regression."""

from __future__ import annotations

from certifit.data.roles import QUANTITY
from certifit.models.learner import (
    ROWS_KEPT,
    Command,
    Goal,
    Keeps,
    Learner,
    Option,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    flag,
    number,
)
from certifit.models.parameters import NO_INFERENCE, TOL

SOLVED = Goal(
    "coefficients",
    "smaller",
    "lower",
    "of the size of the equations",
    "Solved",
    "Are the local equations solved?",
    "They are, at every training point, and this was computed again from the rows; another width or other terms may "
    "fit better.",
    "The local equations are not solved",
    is_derived=True,
    agreed="the equations are solved at every training point, to rounding",
)
LEAST_LEFT_OUT, MOST_LEFT_OUT = 256, 2048  # rows that are left out, one at a time, to choose tau
LEFT_OUT_WORK = 7e8  # of all of them, in rows x terms^2: some 20 s for 14 widths
WEIGHTS = {"gaussian": "exp(-|x_i - x|^2 / (2 tau^2))", "tricube": "(1 - (|x_i - x| / tau)^3)^3, 0 beyond tau"}
TERMS = ("constant", "linear", "quadratic")


def n_left_out(n_rows: int, n_unknowns: int) -> int:
    """Rows that are left out to choose tau: all, 2,048 at most, and down to 256 where their fits would take long."""
    room = int(LEFT_OUT_WORK / (n_rows * (8 + n_unknowns**2)))
    return min(n_rows, max(LEAST_LEFT_OUT, min(MOST_LEFT_OUT, room)))


def _work(n_rows: int, n_columns: int) -> float:
    """Nanoseconds of the choice of tau, and of the prediction of every row once, by the folds or the report."""
    choice = 125.0 * n_rows * min(n_rows, MOST_LEFT_OUT) * n_columns
    return choice + 8.0 * n_rows * n_rows * (2 + (n_columns + 1) ** 2 / 4)


def _objective(told: Told) -> str:
    """The weighted squares of one query."""
    tau = told.params["tau"] if told.alpha is None else told.alpha
    weights, terms = told.params["weights"], told.params["terms"]
    form = WEIGHTS.get(weights, "K(|x_i - x| / tau)") if isinstance(weights, str) else "K(|x_i - x| / tau)"
    local = f"local {terms}" if isinstance(terms, str) else "local basis"
    at = "by leave-one-out" if tau is None else f"{tau:g}"
    columns = ", x and tau in standard deviations of the columns" if told.params["standardize"] else ""
    return (
        f"minimised at every query x: sum_i weight_i w_i(x) (y_i - f(x_i))^2, f {local}, w_i(x) = {form}{columns}, "
        f"tau = {at}"
    )


ROWS = (
    Learner(
        "locally_weighted_regression",
        "models.local.model:LocallyWeightedRegression",
        _objective,
        Words(
            "locally weighted regression",
            "weighted squared error at a query",
            f"{NO_INFERENCE}the coefficients are others at every query. local(x) has them with standard errors.",
            goal=SOLVED,
            stores=(ROWS_KEPT,),
        ),
        {
            "tau": number(None, least=1e-100, most=1e100, or_none=True),
            "standardize": flag(True),
            "tol": TOL,
        },
        ("weights", "terms", "encoder"),
        verb=always(Verb.GATHER),
        sections=always(("widths",)),
        keeps=Keeps.ALL_ROWS,
        commands=(
            Command(
                "local",
                "local regression",
                "a line of its own at every query, fitted to the rows near it; the model keeps its rows",
                compared_for=(QUANTITY,),
                simplicity=Simplicity.HOLDS_ROWS,
                work=_work,
                options=(
                    Option(
                        "tau",
                        "T",
                        "Width of the weights, in standard deviations of the columns. Default: leave-one-out chooses.",
                        "tau",
                    ),
                ),
            ),
        ),
        record="models.local.modelfile:LOCAL",
    ),
)
