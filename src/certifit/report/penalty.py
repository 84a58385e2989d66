"""What the penalty does: every coefficient along its strength, for a model that has a path."""

from typing import Any

import numpy as np

from certifit.report import text
from certifit.report.facts import Fit, Table

N_ALPHAS = 60
# Columns that are drawn and named; those that move the prediction most.
MOST_LINES = 12


def path_facts(fit: Fit) -> Table | None:
    """Coefficients against alpha; None without a path of one coefficient a column, or where none is dropped."""
    if "path" not in fit.sections or fit.weights is None or fit.params.get("l1_ratio", 1.0) == 0:
        return None
    alphas, coef = _solutions(fit)
    chosen = float(fit.model.alpha_)
    n_nonzero = (coef != 0).sum(axis=1)
    sd = np.ones(coef.shape[1]) if fit.model.basis_ is not None else fit.seen.columns.sd
    effects = coef * sd
    reach = np.abs(effects).max(axis=0)
    names, is_rare = fit.printed.columns, fit.printed.is_rare
    shown = [int(j) for j in np.argsort(-reach, kind="stable") if reach[j] > 0 and not is_rare[j]]
    first = shown[:MOST_LINES]
    now = int(n_nonzero[int(np.argmin(np.abs(alphas - chosen)))])
    return {
        "alphas": alphas,
        "chosen": chosen,
        "n_nonzero": n_nonzero,
        "n_columns": coef.shape[1],
        "lines": [
            {"name": str(names[j]), "entered": _entered(alphas, coef[:, j]), "weights": coef[:, j]}
            | {"effects": effects[:, j]}
            for j in first
        ],
        "n_other": int((reach > 0).sum()) - len(first),
        "sentences": _sentences(names, alphas, coef, chosen, now),
    }


def _solutions(fit: Fit) -> tuple[Any, Any]:
    """alphas, largest first, and the coefficients there; the model's own alpha is among them with its own fit."""
    model, chosen = fit.model, float(fit.model.alpha_)
    path = model.path(fit.source, n_alphas=N_ALPHAS)
    alphas, coef = path.alphas, path.coef
    if 0 < chosen < alphas.min():  # go on to it in steps of the same size
        n_more = int(np.ceil(np.log(alphas.min() / chosen) / np.log(alphas[0] / alphas[1])))
        more = model.path(fit.source, alphas=np.geomspace(alphas.min(), chosen, min(n_more, N_ALPHAS) + 1)[1:])
        alphas, coef = np.concatenate([alphas, more.alphas]), np.concatenate([coef, more.coef])
    own = np.isclose(alphas, chosen, rtol=1e-12, atol=0.0)
    alphas, coef = np.append(alphas[~own], chosen), np.vstack([coef[~own], model.coef_])
    order = np.argsort(-alphas, kind="stable")
    return alphas[order], coef[order]


def _entered(alphas: Any, weights: Any) -> float:
    """The largest alpha at which the column has a weight."""
    return float(alphas[np.flatnonzero(weights)].max())


def _sentences(names: list[str], alphas: Any, coef: Any, chosen: float, n_now: int) -> list[str]:
    n_columns = coef.shape[1]
    said = [
        f"At alpha = {text.number(chosen)}, {text.count(n_now)} of {text.plural(n_columns, 'coefficient')} "
        f"{'is' if n_now == 1 else 'are'} not zero."
    ]
    used = np.flatnonzero((coef != 0).any(axis=0))
    order = sorted(used, key=lambda j: (-_entered(alphas, coef[:, j]), -float(np.abs(coef[:, j]).max())))
    if len(order) > 1:
        first = text.joined(list(dict.fromkeys(names[j] for j in order[:5])), 5)
        said.append(f"As the penalty gets weaker, the first to come in {'are' if len(order) > 1 else 'is'} {first}.")
    return said
