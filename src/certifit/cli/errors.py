"""Every failure is one line on stderr and an exit code; never a traceback.

Set CERTIFIT_DEBUG=1 to see where an error arose.

Cell values on the terminal: hidden where fewer rows hold them than `data.privacy` asks for, unless --show-values.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from certifit.cli.signals import unwinding
from certifit.data.privacy import hiding, masked, visible
from certifit.report.shell import as_options
from certifit.report.text import one_line

NOT_PROVEN, BAD_INPUT, DEFECT, INTERRUPTED = 1, 2, 3, 130
# Most objects of a run stay: looking through all of them each time that 700 are new takes a tenth of a small fit.
_NEW_OBJECTS = 20_000
_INTERRUPTED = "interrupted. Nothing was left half written."


class Commands(click.Group):
    """A group of commands whose return value is the exit code.

    told: what each command does, by its name, which is that of its module too; it is imported when it is asked for.
    """

    def __init__(self, *args: Any, told: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.told = told

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order in which help shows them."""
        return list(self.told)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name not in self.told:
            return None
        command: click.Command = getattr(import_module(f"certifit.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click guesses from commands that are there already, and none is."""
        name = args[0]
        if name not in self.told and not name.startswith("-"):
            guesses = get_close_matches(name, self.told, n=1)
            raise click.UsageError(
                f"No such command {name!r}." + "".join(f" Did you mean {g!r}?" for g in guesses), ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All commands, none of them imported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.told.items()))

    # click's has more arguments, and returns where it does not exit
    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run a command and exit."""
        is_process = sys.stdout is sys.__stdout__
        if sys.stderr is None:  # closed: what is said goes nowhere
            sys.stderr = open(os.devnull, "w", encoding="utf8")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        extra["standalone_mode"] = False
        if is_process:
            gc.set_threshold(_NEW_OBJECTS)
        with hiding():
            try:
                code = super().main(args, "certifit", **extra)
            except click.ClickException as error:
                code = _usage(error)
            except click.Abort:
                code = INTERRUPTED
        if code == INTERRUPTED and is_process:
            # Everything is closed and removed; taking the interpreter apart could last another half second.
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
            os._exit(code)
        if is_process:
            gc.freeze()  # or the interpreter looks at all objects once more, and frees them one by one
        sys.exit(code or 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what goes wrong into one line."""
        with unwinding() as interrupts, warnings.catch_warnings():
            warnings.showwarning = _say_warning
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except KeyboardInterrupt:
                return _fail(ctx, _INTERRUPTED, INTERRUPTED)
            except BrokenPipeError:
                # The reader of the pipe has seen enough, as with `| head`.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 128 + signal.SIGPIPE
            except Exception as error:
                if interrupts.seen:  # an import turns Ctrl-C into other errors
                    return _fail(ctx, _INTERRUPTED, INTERRUPTED)
                if os.environ.get("CERTIFIT_DEBUG"):
                    for line in traceback.format_exc().splitlines():
                        click.echo(visible(masked(line)), err=True)  # code, whose names are no options
                return _fail(ctx, *describe(error))


def describe(error: Exception) -> tuple[str, int]:
    """What to say about an error, and the exit code."""
    if isinstance(error, MemoryError):
        detail = (
            f" {error}" if str(error) else " Use fewer columns or a lower --degree: memory grows with their square."
        )
        return f"out of memory.{detail}", BAD_INPUT
    if isinstance(error, OSError):
        return _describe_os_error(error), BAD_INPUT
    if isinstance(error, ValueError) or _is_refusal(error):
        return str(error), BAD_INPUT
    return (
        f"unexpected {type(error).__name__}: {error}. A defect of certifit; CERTIFIT_DEBUG=1 shows where.",
        DEFECT,
    )


def _is_refusal(error: Exception) -> bool:
    """Whether a TypeError is a sentence of ours about the data; those of Python do not end with a full stop."""
    return isinstance(error, TypeError) and str(error).endswith(".")


def _describe_os_error(error: OSError) -> str:
    name = f" '{visible(error.filename)}'" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full. Nothing was left half written{name}. Free some space or choose another place."
    if error.errno in (errno.EFBIG, errno.EDQUOT):
        reason = str(error.strerror).removesuffix(".")
        done = f"Nothing was left half written{name}"
        return f"{reason}: a limit on files or disk space was reached. {done}. Raise it, or free some space."
    return f"{str(error.strerror or error).removesuffix('.')}{':' if name else ''}{name}."


def readable_file(text: str, what: str) -> Path:
    """The path of a regular file that can be read, or an error that helps."""
    path = Path(text)
    if path.is_dir():
        raise ValueError(f"'{visible(path)}' is a folder. Give {what}.")
    if path.is_symlink() and not path.exists():
        raise ValueError(f"'{visible(path)}' is a link to nothing. Give {what}.")
    if not path.exists():
        raise ValueError(f"there is no file '{visible(path)}'.{_near(path)} Give {what}.")
    if not path.is_file():
        raise ValueError(f"'{visible(path)}' is not a regular file, and it is read more than once. Save it first.")
    if not os.access(path, os.R_OK):
        raise ValueError(f"'{visible(path)}' cannot be read: permission denied.")
    if path.stat().st_size == 0:
        raise ValueError(f"'{visible(path)}' is empty. Give {what}.")
    return path


def _near(path: Path) -> str:
    with contextlib.suppress(OSError):
        close_names = get_close_matches(path.name, (entry.name for entry in path.absolute().parent.iterdir()), n=1)
        if close_names:
            return f" Did you mean '{visible(path.with_name(close_names[0]))}'?"
    return ""


def show(line: str) -> None:
    """One line on stdout, made safe for a terminal. What a command prints goes through here or through `say`."""
    click.echo(visible(masked(line)))


def say(line: str) -> None:
    """One line on stderr, made safe for a terminal; without cell values that are not shown, in words of the shell."""
    click.echo(visible(masked(as_options(line))), err=True)


def _say_warning(message: Warning | str, *place: Any, **stream: Any) -> None:
    say(one_line(masked(f"Warning: {message}")))


def _fail(ctx: click.Context, message: str, code: int) -> int:
    command = ctx.invoked_subcommand
    say(one_line(masked(f"certifit{' ' + command if command else ''}: {message}")))
    return code


def _usage(error: click.ClickException) -> int:
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # click before 8.2 has none
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "certifit"
    say(one_line(masked(f"{path}: {error.format_message()} See {path} --help.")))
    return BAD_INPUT


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
    from certifit.maps.table.survey import told_names
    from certifit.models.adapter import answer_of

    if fitted.encoder_ is not None:
        conceal(*told_names(fitted.encoder_))
    if answer_of(fitted).is_class:
        conceal(quoted_labels(dict.fromkeys(fitted.classes_.tolist(), 0)))
