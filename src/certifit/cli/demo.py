"""certifit demo."""

import csv
import shlex
from pathlib import Path

import click

from certifit.cli.errors import show

STORY = "\nOne column repeats two others, and the report says so. Without it, and with more models compared:\n"


@click.command()
@click.option("--out", "-o", default="certifit-demo", show_default=True, metavar="DIR", help="Folder for the reports.")
def demo(out: str) -> int:
    """Fit 3,000 flights from New York City: arrival delay from departure delay, airline, airport, distance and date.

    The columns are numbers and categories; one is constant and one has missing values. The first fit takes all of them,
    and one repeats two others. The second leaves that one out, and compares models.
    """
    from certifit import demo as data

    with open(data.path(), encoding="utf-8", newline="") as file:
        names = next(csv.reader(file))
    kept = [name for name in names if name not in (data.TARGET, data.REPEATED)]
    first, second = Path(out) / "all-columns", Path(out) / f"without-{data.REPEATED}"
    code = _fit(data.path(), data.TARGET, first, None, "linear")
    for line in STORY.split("\n"):
        show(line)
    code = max(code, _fit(data.path(), data.TARGET, second, kept))
    model, file_name = second / "model.certifit", data.path()
    again = f"$ certifit verify {_quoted(model)} {_quoted(file_name)}"
    for line in ("", "Prove the saved fit again:", again, "", "Open the reports in a browser:"):
        show(line)
    for folder in (first, second):
        show(f"  {(folder / 'report.html').absolute().as_uri()}")
    return code


def _fit(path: Path, target: str, out: Path, columns: list[str] | None, model: str = "auto") -> int:
    from certifit.cli.fit import run
    from certifit.cli.models import Choice
    from certifit.cli.paths import find_data
    from certifit.cli.request import Request
    from certifit.demo import REPEATED

    chosen = "" if columns is None else f" --drop {REPEATED}"
    chosen += "" if model == "auto" else f" --model {model}"
    show(f"$ certifit fit {_quoted(path)} --target {target}{chosen} --out {_quoted(out)}")
    show("")
    roles = {"target": target, "weight": None, "columns": columns, "group": None}
    return run(Request(find_data([str(path)]), str(out), roles, {}, {}), Choice.of(model))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
