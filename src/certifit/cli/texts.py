"""Columns of free text on the command line: which ones are used through their words, and how."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from certifit.cli.paths import listed_names
from certifit.report.text import joined

Command = TypeVar("Command", bound=Callable[..., Any])


def text_options(command: Command) -> Command:
    """The options of every command that fits."""
    for option in reversed(
        (
            click.option(
                "--texts", metavar="A,B",
                help="Columns of free text to use through their words; `none` for none. Default: all that are found, "
                "for bernoulli-nb and multinomial-nb; else none.",
            ),
            click.option(
                "--ngrams", type=click.IntRange(min=1), metavar="N",
                help="Use terms of up to N words in a row. Default: 1.",
            ),
            click.option(
                "--min-word-count", type=click.IntRange(min=1), metavar="N",
                help="Leave out words that fewer texts hold. Default: 1.",
            ),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@dataclass(frozen=True)
class Texts:
    """The columns of free text to use (None: those that suit the model), and how they are read."""

    names: tuple[str, ...] | None = None
    ngrams: int | None = None
    min_word_count: int | None = None

    @staticmethod
    def of(names: str | None, ngrams: int | None, min_word_count: int | None) -> "Texts":
        """From the options of the command line."""
        listed = None if names is None else tuple(listed_names(names) or ()) if names != "none" else ()
        return Texts(listed, ngrams, min_word_count)

    @property
    def is_asked(self) -> bool:
        """Whether words are wanted whatever the model is."""
        return bool(self.names)

    def refuse_unused(self) -> None:
        """Raise where something is said about words and no column of free text is used."""
        for option, value in (("ngrams", self.ngrams), ("min-word-count", self.min_word_count)):
            if value is not None:
                raise click.UsageError(f"--{option} is about words, and no free text is used. Name it: --texts A,B.")

    def binarizer(self) -> Any:
        """The map from texts to columns of words."""
        from certifit.maps.text import TextBinarizer

        return TextBinarizer(ngram_range=(1, self.ngrams or 1), min_df=self.min_word_count or 1)

    def chosen(self, kinds: Mapping[str, str], columns: Sequence[str]) -> list[str]:
        """The columns of free text to use. kinds: what each column is; columns: all of the data."""
        from certifit.data.roles import refuse_unknown

        found = [name for name, kind in kinds.items() if kind == "text"]
        for name in self.names or ():
            refuse_unknown(name, columns, "--texts: the data")
            if name not in found:
                there = f"Free text here: {joined(found)}." if found else "No column here is."
                raise click.UsageError(f"--texts names {name!r}, which is no free text but {_a(kinds[name])}. {there}")
        return found if self.names is None else [name for name in found if name in self.names]


def _a(kind: str) -> str:
    return {"number": "numbers", "flag": "true or false", "level": "a category", "date": "dates"}.get(kind, kind)
