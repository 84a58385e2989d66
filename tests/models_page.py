"""The page of all models, made from their table: python -m tests.models_page writes docs/models.md."""

from __future__ import annotations

from pathlib import Path

from certifit.models.learner import Keeps, Learner, Told, Verb
from certifit.models.table import LEARNERS, PUBLIC

PATH = Path(__file__).resolve().parents[1] / "docs" / "models.md"
HEAD = """# All models

Made from the table of models by `make stub`. A model takes the values below and no others: a fit, a model file and the
command line check them alike.
"""
READS = {
    Verb.REDUCE: "A fit sums over blocks of rows, of arrays, files and clusters alike.",
    Verb.VISIT: "A fit visits blocks of rows in their order.",
    Verb.GATHER: "A fit holds all rows in memory.",
    Verb.PARTS: "A fit holds all rows in memory; rows beyond its limit are read in parts, and none of them is held.",
}


def page() -> str:
    """The text of the page."""
    rows = sorted(PUBLIC.values(), key=lambda learner: learner.name)
    return "\n".join([HEAD, *(line for learner in rows for line in _section(learner))])


def _section(learner: Learner) -> list[str]:
    defaults = {name: param.default for name, param in learner.params.items()}
    facts = [READS[learner.verb(defaults)]]
    if learner.keeps is not Keeps.NOTHING:
        facts.append(f"The fitted model holds {learner.keeps.value} of the data.")
    if learner.commands:
        names = ", ".join(f"`--model {command.name}`" for command in learner.commands)
        facts.append(f"On the command line: {names}.")
    if learner.exact is not None:
        facts.append("`verify(exact=True)` proves it to the last rounding.")
    table = ["| parameter | legal values | default |", "|---|---|---|"]
    table += [
        f"| `{name}` | {param.legal}{' or None' if param.or_none else ''} | `{param.default!r}` |"
        for name, param in learner.params.items()
    ]
    others = [f"Beside these: {', '.join(f'`{name}`' for name in learner.others)}.", ""] if learner.others else []
    is_made_of_models = learner.key not in LEARNERS
    objective = learner.objective(Told(defaults)) if is_made_of_models else learner.load()().objective
    return [f"## `{learner.name}`", "", f"    {objective}", "", " ".join(facts), "", *table, "", *others]


if __name__ == "__main__":
    PATH.write_text(page())
