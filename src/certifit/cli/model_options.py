"""The options of `certifit fit` that say what is predicted, and by which model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from certifit.cli.models import AUTO, COMPARED, KINDS, dashed
from certifit.data.goals import TASKS
from certifit.models.learner import Learner, Option, Param


class Legal(click.ParamType[Any]):
    """The value of an option, legal by the table of models."""

    def __init__(self, option: Option, param: Param) -> None:
        self.name, self.reads, self.param = option.metavar, option.reads, param

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or a sentence on what is legal."""
        try:
            found = self.reads(value)
        except ValueError:
            found = value
        if not self.param.is_legal(found):
            self.fail(f"{param.name if param else self.name} must be {self.param.legal}. Got {value}.", param, ctx)
        return found


def _option(option: Option, learner: Learner) -> Callable[[Any], Any]:
    legal = click.STRING if option.parameter is None else Legal(option, learner.params[option.parameter])
    return click.option(f"--{dashed(option.name)}", type=legal, metavar=option.metavar, help=option.help)


def own_options(*names: str) -> tuple[Callable[[Any], Any], ...]:
    """The options that some models bring, all or those that are named."""
    found: dict[str, Callable[[Any], Any]] = {}
    for kind in KINDS.values():
        for option in kind.command.options:
            if not names or option.name in names:
                found.setdefault(option.name, _option(option, kind.learner))
    return tuple(found.values())


def help_of(compared: Mapping[str, Sequence[str]], names: Iterable[str]) -> str:
    """What the models are, and which auto compares."""
    of_goal = {goal: [name for name in names if KINDS[name].command.goal == goal] for goal in TASKS}
    each = [
        f"Of {TASKS[goal]}: " + " ".join(f"{name}: {KINDS[name].command.help}." for name in found)
        for goal, found in of_goal.items()
        if found
    ]
    tried = [f"of {words}, {_and(compared[goal])}" for goal, words in TASKS.items() if compared[goal]]
    texts = f"with free text, {_and(compared['texts'])}"
    best = "the best on rows it did not see (one with p-values where it is within one standard error)"
    return f"{' '.join(each)} auto: {best}: {'; '.join(tried)}; {texts}."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


model_options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--task", type=click.Choice([AUTO, *TASKS]), default=AUTO, show_default=True,
        help="What the target is. auto: text, true/false and two whole numbers are classes; whole numbers >= 0 with an "
        "exposure, or from 0 or 1 up and skewed to the right, are counts; skewed numbers > 0 are positive; others a "
        "quantity.",
    ),
    click.option(
        "--model", "kind", type=click.Choice([AUTO, *KINDS]), default=AUTO, show_default=True,
        help=help_of(COMPARED, KINDS),
    ),
    *own_options(),
    click.option(
        "--positive", metavar="LABEL", help="Of two classes, the one to find. Default: the second in order.",
    ),
)  # fmt: skip
