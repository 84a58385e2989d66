"""Three questions of a fit, answered from the other facts: rich enough, optimum reached, holds on new rows?"""

from __future__ import annotations

from certifit.report import text
from certifit.report.answer import proven
from certifit.report.text import Table


def question_facts(context: Table) -> Table:
    """rows [{question, answer}]; nothing where no errors on new rows are known."""
    validation = context["validation"]
    if validation is None or not validation["rows"]:
        return {}
    chosen = next((row for row in validation["rows"] if row["is_chosen"]), None)
    if chosen is None:
        return {}
    answers = {
        "Is the class rich enough?": _rich(validation, chosen),
        "Is the optimum reached?": " ".join(proven(context)),
        "Does it hold on new rows?": _holds(validation, chosen),
    }
    return {"rows": [{"question": question, "answer": answer} for question, answer in answers.items()]}


def _rich(validation: Table, chosen: Table) -> str:
    error, plus_minus = text.measured(chosen["error"], chosen["standard_error"])
    lead = f"Its {validation['measure']} on rows that it did not see is {error} (±{plus_minus})."
    others = [row for row in validation["rows"] if not row["is_chosen"] and not row["is_baseline"]]
    poorer = next((row for row in validation["rows"] if row["is_baseline"]), None)
    if others:
        lead += f" {_rival(chosen, min(others, key=lambda row: row['error']), len(others))}"
    if poorer is not None:
        lead += f" The {poorer['name']} alone has {text.number(poorer['error'], 3)}."
    return lead


def _rival(chosen: Table, rival: Table, n_others: int) -> str:
    of = f"Of {text.plural(n_others, 'other model')} on the same folds the best, {text.visible(rival['name'], 40)},"
    error = text.number(rival["error"], 3)
    if chosen["is_best"]:
        return f"{of} has {error}: no other class does better."
    difference, plus_minus = text.measured(chosen["difference"], chosen["difference_error"])
    verdict = (
        "the difference may be chance"
        if chosen["difference"] <= 2 * chosen["difference_error"]
        else "a richer class does better"
    )
    return f"{of} has {error}, less by {difference} (±{plus_minus}): {verdict}."


def _holds(validation: Table, chosen: Table) -> str:
    if validation["holdout"] is not None:
        return str(validation["sentences"][0])
    error, plus_minus = text.measured(chosen["error"], chosen["standard_error"])
    folds = f"{text.count(validation['n_splits'])} folds"
    if chosen["train_error"] is None:
        return f"Over {folds} the {validation['measure']} on new rows is {error} (±{plus_minus})."
    training = text.number(chosen["train_error"], 3)
    is_near = chosen["error"] - chosen["train_error"] <= 2 * chosen["standard_error"]
    verdict = "little of the fit is to noise" if is_near else "part of the fit is to the noise of its rows"
    return (
        f"Over {folds} the {validation['measure']} is {training} on the rows of the fits and {error} (±{plus_minus}) "
        f"on those held out: {verdict}."
    )
