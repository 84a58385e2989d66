"""What only a real process can show: imports, exit codes, signals."""

import os
import re
import signal

import pytest

from certifit.cli import COMMANDS, main

HEAVY = ["numpy", "scipy", "sklearn", "pyarrow", "jinja2", "rich", "pandas"]


@pytest.mark.parametrize(
    "args",
    [["--help"], ["fit", "--help"], ["predict", "--help"], ["verify", "--help"], ["select", "--help"], ["--version"]],
)
def test_help_imports_nothing_heavy(shell, args):
    code = (
        "import sys\nfrom certifit.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        f"print(code, [name for name in {HEAVY} if name in sys.modules])"
    )
    result = shell(*args, code=code)
    assert result.stdout.splitlines()[-1] == "0 []"
    assert result.stderr == ""


def test_help_leads_with_words_people_look_for(shell):
    text = shell("--help").stdout
    assert "p-values" in text and "converged" in text
    assert all(command in text for command in ("fit", "select", "predict", "verify", "demo"))


def test_every_command_that_help_names_is_there():
    assert main.list_commands(None) == sorted(COMMANDS)
    assert [main.get_command(None, name).name for name in COMMANDS] == list(COMMANDS)
    assert main.get_command(None, "words") is None  # a module that is no command


def test_no_command_shows_the_help(shell):
    result = shell()
    assert result.returncode == 2
    assert "Usage: certifit" in result.stderr


EXIT_CODES = """
import sys
from certifit.cli import main
commands = [
    "fit data.csv --target y --out out --cv 0",
    "verify out/model.certifit data.csv",
    "verify out/model.certifit weighted.csv --target w",
    "verify data.csv data.csv",
]
for command in commands:
    try:
        main(command.split())
    except SystemExit as end:
        print("exit", end.code)
main("fit data.csv --target y --out out2 --cv 0 --tol 1e-300".split())
"""


def test_exit_codes_of_a_process(shell, data):
    result = shell(code=EXIT_CODES)
    codes = [line for line in result.stdout.splitlines() if line.startswith("exit ")]
    assert codes == ["exit 0", "exit 0", "exit 1", "exit 2"]
    assert result.returncode == 1


INTERRUPTED = """
import os, signal, sys
import certifit.report.folder
def write(path, content):
    os.kill(os.getpid(), signal.{name})
    while True: pass
certifit.report.folder._write_text = write
from certifit.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_leaves_nothing_half_written(shell, data, name, code):
    before = set(os.listdir(data.parent))
    result = shell("fit", data, "-t", "y", "-o", "out", "--cv", "0", code=INTERRUPTED.format(name=name))
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == (name == "SIGINT")
    assert set(os.listdir(data.parent)) == before


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_run_that_was_killed_is_cleared_away_by_the_next(shell, data):
    """Files of a process that is alive, of another machine and of users stay."""
    folder = data.parent
    before = set(os.listdir(folder))
    shell("fit", data, "-t", "y", "-o", "out", "--cv", "0", code=INTERRUPTED.format(name="SIGKILL"))
    (left,) = set(os.listdir(folder)) - before
    machine, process = re.fullmatch(r"\.certifit-([0-9a-f]{8})-(\d+)-[0-9a-f]{12}", left).groups()
    names = [
        f".certifit-{machine}-{os.getpid()}-{0:012}.tmp",
        f".certifit-{0:08}-{process}-{0:012}.tmp",
        ".certifit-mine",
    ]
    earlier = f".certifit-{0:016}.tmp"  # of versions without the process in the name
    for name in (*names, earlier):
        (folder / name).touch()
    os.utime(folder / earlier, (0, 0))
    shell("fit", data, "-t", "y", "-o", "out", "--cv", "0")
    assert set(os.listdir(folder)) - before == {"out", *names}
    (folder / "out" / left).mkdir()
    shell("fit", data, "-t", "y", "-o", "out", "--cv", "0")
    assert left not in os.listdir(folder / "out")


# Sends the signal at the n-th import from the moment on that certifit.cli has its handlers.
DURING_IMPORT = """
import os, signal, sys
sys.argv[0] = "{program}"
left = {n}
def hook(event, args):
    global left
    if event == "import" and "certifit.cli.errors" in sys.modules:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.{name})
sys.addaudithook(hook)
from certifit.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("name", "n"), [("SIGINT", n) for n in (1, 30, 150, 400, 900)] + [("SIGTERM", 200), ("SIGHUP", 200)]
)
def test_a_signal_during_the_imports_has_its_exit_code_and_no_traceback(shell, data, name, n):
    program = "certifit" if n > 1 else "/there/certifit/__main__.py"  # python -m certifit
    result = shell("fit", data, "-t", "y", "-o", "out", code=DURING_IMPORT.format(name=name, n=n, program=program))
    assert result.returncode == 128 + getattr(signal, name)
    assert "Traceback" not in result.stderr and "ignored" not in result.stderr
    assert not (data.parent / "out").exists()


@pytest.mark.parametrize("program", ["-c", "/there/pytest/__main__.py", "/there/tool.py"])
def test_the_command_line_as_a_library_leaves_signals_alone(shell, program):
    handled = "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    code = f"import signal, sys\nsys.argv[0] = {program!r}\nimport certifit.cli\n{handled}"
    assert shell(code=code).returncode == 0


DEFECT = """
import os, sys
import certifit.report.folder as folder
def broken(*args, **facts): raise RuntimeError('surprise')
folder.write = broken
from certifit.cli import main
for debug in ("", "1"):
    os.environ["CERTIFIT_DEBUG"] = debug
    try:
        main()
    except SystemExit as end:
        print("exit", end.code)
    sys.stderr.write("----")
"""


def test_a_defect_is_one_line_and_its_place_is_shown_on_demand(shell, data):
    result = shell("fit", data, "-t", "y", "-o", "out", "--cv", "0", code=DEFECT)
    plain, debugged, _ = result.stderr.split("----")
    assert result.stdout.splitlines()[-2:] == ["exit 3", "exit 3"]
    assert len(plain.splitlines()) == 1 and "surprise" in plain
    assert "Traceback" in debugged


def test_a_process_writes_no_progress_where_no_terminal_is_and_any_name_in_any_encoding(shell, tmp_path):
    rows = "".join(f"{k % 7},{k % 5 + k % 7}\n" for k in range(40))
    (tmp_path / "u.csv").write_text(f"温度,y\n{rows}", encoding="utf-8")
    options = ["-t", "y", "-o", "out", "--task", "quantity", "--model", "ridge"]
    result = shell("fit", "u.csv", *options, env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert "\\u6e29\\u5ea6" in result.stdout


def test_a_fit_does_not_load_what_it_does_not_use(shell, tmp_path):
    rows = "\n".join(f"{k % 7},{k % 5},{3 * (k % 7) + k % 5 + k % 3}" for k in range(100))
    (tmp_path / "rows.csv").write_text(f"a,b,y\n{rows}\n")
    code = (
        "import sys\nsys.argv[0] = 'certifit'\nfrom certifit.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "unused = ['scipy.stats._stats_py', 'scipy.optimize', 'sklearn.metrics', 'numpy.f2py.f2py2e', 'pandas']\n"
        "print(code, [name for name in unused if name in sys.modules])\n"
        "import scipy.stats\nprint(scipy.stats.rankdata([2, 1]).tolist())"
    )
    options = ["--target", "y", "--quiet", "--out", str(tmp_path / "out")]
    result = shell("fit", str(tmp_path / "rows.csv"), *options, code=code)
    assert result.stdout.splitlines()[-2:] == ["0 []", "[2.0, 1.0]"], result.stderr


CLOSED = """
import os, sys
for number in {closed}:
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "certifit", *sys.argv[1:]])
"""


@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_a_closed_output_ends_no_fit(shell, data, closed):
    """As under cron, or after `2>&-`."""
    code = CLOSED.format(closed=closed)
    result = shell("fit", data, "-t", "y", "-o", "out", "--model", "linear", "--cv", "0", code=code)
    assert result.returncode == 0 and (data.parent / "out" / "report.html").exists()
    assert shell("fit", data, "-t", "none", "-o", "other", code=code).returncode == 2
    result = shell("predict", "out/model.certifit", data, code=code)
    assert result.returncode == (2 if 1 in closed else 0)
    assert result.stderr == "" or "standard output is closed, and predictions go there. Give --out" in result.stderr
