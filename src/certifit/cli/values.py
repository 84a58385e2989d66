"""Cell values on the terminal: hidden where fewer rows hold them than `data.privacy` asks for, unless --show-values."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _shown(ctx: click.Context, param: click.Parameter, is_given: bool) -> None:
    if is_given:
        from certifit.data.privacy import show

        show()


def values_option(command: Command) -> Command:
    """The option of every command that prints."""
    return click.option(
        "--show-values", is_flag=True, expose_value=False, callback=_shown,
        help="Print levels, words, labels and cells that fewer than 5 rows hold, and exact ranges, too.",
    )(command)  # fmt: skip


def conceal_model(fitted: Any) -> None:
    """Keep levels and labels of a loaded model out of messages: its file does not tell how many rows hold each."""
    from certifit.data.privacy import conceal, quoted_labels
    from certifit.maps.table.gaps import told_names
    from certifit.models.adapter import answer_of

    if fitted.encoder_ is not None:
        conceal(*told_names(fitted.encoder_))
    if answer_of(fitted).is_class:
        conceal(quoted_labels(dict.fromkeys(fitted.classes_.tolist(), 0)))
