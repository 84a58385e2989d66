"""The certificate and the way to it: how far the fit can be from the best one, in numbers and in words."""

import math
from dataclasses import asdict
from typing import Any

from certifit.models.adapter import learner_of
from certifit.models.table import kind_of_proof
from certifit.report import text
from certifit.report.facts import Fit
from certifit.report.text import Table

MOST_STEPS = 500


def certificate_facts(fit: Fit) -> Table:
    """The certificate, its sentences, and what it means for predictions."""
    certificate = fit.model.certificate_
    moves = certificate.prediction_change
    return {
        "holds": bool(certificate.holds),
        "value": float(certificate.value),
        "tolerance": float(certificate.tolerance),
        "rounding": float(certificate.rounding),
        "rank": certificate.rank,
        "n_columns": certificate.n_columns,
        "condition": certificate.condition,
        "dependent": [str(words) for words in certificate.dependent],
        "claim": str(certificate.claim),
        "theorem": str(certificate.theorem),
        "kind": kind_of_proof(learner_of(fit.model).name, certificate),
        "sentences": [str(words) for words in certificate.sentences()],
        "prediction_moves": moves,
        "fault": certificate.fault or None,
        "is_local": bool(getattr(certificate, "is_local", False)),
        "remedy": fit.words.remedy,
        "goal": asdict(fit.words.goal),
        "words": _words(fit, certificate, moves),
    }


def _words(fit: Fit, certificate: Any, moves: float | None) -> list[str]:
    """Answers to two questions: how far from the best fit, and how far predictions may still move."""
    what, target, goal = fit.words.minimised, text.visible(fit.model.target_name_, 60), fit.words.goal
    bound = f"{text.power(float(certificate.value))} {goal.unit}"
    if getattr(certificate, "is_local", False) and not certificate.fault:
        first = str(certificate.sentences()[0])
    elif certificate.holds and goal.is_derived:
        return [str(sentence) for sentence in certificate.sentences()]
    elif certificate.holds:
        first = f"No {goal.chosen} can make the {what} {goal.better} by more than {bound}."
    elif certificate.fault:
        first = f"There is no bound: {certificate.fault}"
    else:
        asked = text.power(float(certificate.tolerance))
        first = f"Better {goal.chosen} may make the {what} {goal.better} by up to {bound}; {asked} was asked for."
    if moves is None:
        second = f"For the {what} that says nothing certain about single predictions: there is no bound on them here."
        return [first, second]
    sd = float(fit.model.data_["target_sd"])
    compared = f", which is {text.power(moves / sd)} of the spread of {target}" if sd > 0 else ""
    return [
        first,
        f"The best fit would move the predictions of these rows by at most {text.power(moves)} (root mean square)"
        f"{compared}.",
    ]


def history_facts(fit: Fit) -> Table | None:
    """The steps of the solver; None where it kept none. Seconds are left out: a report of the same fit is the same."""
    steps = list(fit.model.history_)
    is_closed_form = len(steps) == 1 and math.isnan(steps[0].get("objective", math.nan))
    if not steps or is_closed_form:
        return None
    keys = ("iteration", "objective", "gap", "step")
    rows = [{key: step.get(key) for key in keys} for step in steps[-MOST_STEPS:]]
    n_steps = int(steps[-1]["iteration"])
    return {"n_steps": n_steps, "rows": rows, "sentences": [_history_words(n_steps, rows)]}


def _history_words(n_steps: int, rows: list[Table]) -> str:
    words = f"The solver took {text.plural(n_steps, 'step')}"
    gap = rows[-1]["gap"]
    if gap is None or not math.isfinite(gap):
        return f"{words}."
    ended = f"by its own reckoning it ended {text.power(gap)} above the best" if gap > 0 else "it ended at the best"
    return f"{words}; {ended}. The proof does not rely on that: it is computed anew from the data."
