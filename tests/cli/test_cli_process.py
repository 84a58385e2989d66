"""What only a real process can show: imports, exit codes, signals."""

import os
import signal

import pytest

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
import certifit.report.page
def render(context):
    os.kill(os.getpid(), signal.{name})
    while True: pass
certifit.report.page.render = render
from certifit.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 128 + signal.SIGTERM)])
def test_a_signal_leaves_nothing_half_written(shell, data, name, code):
    before = set(os.listdir(data.parent))
    result = shell("fit", data, "-t", "y", "-o", "out", "--cv", "0", code=INTERRUPTED.format(name=name))
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == (name == "SIGINT")
    assert set(os.listdir(data.parent)) == before


# Sends the signal at the n-th import from the moment on that certifit.cli has its handlers.
DURING_IMPORT = """
import os, signal, sys
sys.argv[0] = "certifit"
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
@pytest.mark.parametrize(("name", "n"), [("SIGINT", n) for n in (1, 30, 150, 400, 900)] + [("SIGTERM", 200)])
def test_a_signal_during_the_imports_has_its_exit_code_and_no_traceback(shell, data, name, n):
    result = shell("fit", data, "-t", "y", "-o", "out", code=DURING_IMPORT.format(name=name, n=n))
    assert result.returncode == 128 + getattr(signal, name)
    assert "Traceback" not in result.stderr and "ignored" not in result.stderr
    assert not (data.parent / "out").exists()


def test_the_command_line_as_a_library_leaves_signals_alone(shell):
    code = "import signal, certifit.cli\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    assert shell(code=code).returncode == 0


def test_a_defect_is_one_line_and_its_place_is_shown_on_demand(shell, data):
    code = (
        "import certifit.report.folder as folder\n"
        "def broken(*args, **facts): raise RuntimeError('surprise')\n"
        "folder.write = broken\nfrom certifit.cli import main\nmain()"
    )
    result = shell("fit", data, "-t", "y", "-o", "out", "--cv", "0", code=code)
    assert result.returncode == 3
    assert len(result.stderr.splitlines()) == 1 and "surprise" in result.stderr
    result = shell(
        "fit", data, "-t", "y", "-o", "out", "--cv", "0", code=code, env=os.environ | {"CERTIFIT_DEBUG": "1"}
    )
    assert "Traceback" in result.stderr


def test_progress_goes_to_a_terminal_only(shell, data):
    result = shell("fit", data, "-t", "y", "-o", "out")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout


def test_a_terminal_of_another_encoding_can_show_any_name(shell, tmp_path):
    (tmp_path / "u.csv").write_text("温度,y\n1,2\n2,3\n4,9\n5,5\n", encoding="utf-8")
    result = shell(
        "fit", "u.csv", "-t", "y", "-o", "out", "--cv", "0", env=os.environ | {"PYTHONIOENCODING": "latin-1"}
    )
    assert result.returncode == 0
    assert "\\u6e29\\u5ea6" in result.stdout
