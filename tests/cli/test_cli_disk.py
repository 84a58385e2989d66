"""Commands on a full disk, and as a user who may not write, or who has no home."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from full_disk import disk_of


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("n_bytes", [0, 2_000, 20_000])
def test_a_full_disk_keeps_every_file_of_the_earlier_fit(cli, data, saved, n_bytes):
    """The disk ends in coefficients.csv, in the model file or in the report."""
    (data.parent / "p.csv").write_text("before")
    before = contents(data.parent)
    with disk_of(n_bytes):
        results = [cli("fit", data, "-t", "a", "-o", "out", "--cv", "0")]
        if n_bytes < 2_300:  # 120 predictions
            results.append(cli("predict", saved / "model.certifit", data, "-o", "p.csv"))
    for result in results:
        assert result.exit_code == 2 and len(result.stderr.splitlines()) <= 2
        assert "File too large" in result.stderr and not result.stderr.rstrip().endswith("..")
        assert "Nothing was left half written. Raise it" in result.stderr or "is unchanged." in result.stderr
    assert contents(data.parent) == before


NOT_READABLE = 77
CHILD = """
import json, os, sys
try:
    from click.testing import CliRunner
    import certifit.models, certifit.report.context, certifit.demo
    from certifit.cli import main
except (ImportError, PermissionError) as error:
    sys.exit(77)
assert os.geteuid() != 0
out = []
for folder, *command in json.load(sys.stdin):
    os.chdir(folder)
    result = CliRunner().invoke(main, command)
    out.append((result.exit_code, result.stderr))
print(json.dumps(out))
"""


@pytest.fixture
def open_folder():
    """A folder that every user may enter; that of a test is its owner's alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    (folder / "locked").chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="needs a user who is not root")
def test_a_user_who_is_not_root_and_has_no_home(data, open_folder):
    """All commands work in a folder of the user's own; elsewhere one line says what is not permitted."""
    own, locked = open_folder / "own", open_folder / "locked"
    own.mkdir()
    shutil.copy(data, locked.with_name("data.csv"))
    (open_folder / "data.csv").chmod(0o644)
    shutil.copy(data, open_folder / "secret.csv")
    (open_folder / "secret.csv").chmod(0o000)
    locked.mkdir()
    locked.chmod(0o555)
    if os.geteuid() == 0:
        os.chown(own, 65534, 65534)
    model = str(own / "fit" / "model.certifit")
    commands = [
        (own, 0, "", "fit", "../data.csv", "-t", "y", "-o", "fit", "--cv", "0", "-q"),
        (own, 0, "", "predict", model, "../data.csv", "-o", "p.csv", "-q"),
        (own, 0, "", "verify", model, "../data.csv", "-q"),
        (own, 2, "cannot be read: permission denied", "fit", "../secret.csv", "-t", "y", "-o", "x"),
        (locked, 2, "cannot be written: permission denied", "fit", "../data.csv", "-t", "y", "-o", "fit"),
        (locked, 2, "cannot be written: permission denied", "predict", model, "../data.csv", "-o", "p.csv"),
        (locked, 2, "cannot be written: permission denied", "demo"),
        (locked, 0, "", "predict", model, "../data.csv", "-o", "-"),
    ]
    env = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")}
    asked = json.dumps([[str(folder), *command] for folder, _, _, *command in commands])
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    process = [*as_nobody, sys.executable, "-c", CHILD]
    child = subprocess.run(process, input=asked, capture_output=True, text=True, check=False, env=env)
    if child.returncode == NOT_READABLE:
        pytest.skip("another user may not read this installation")
    assert child.returncode == 0, child.stderr
    for (_, code, words, *command), (found, said) in zip(commands, json.loads(child.stdout), strict=True):
        assert found == code, (command, said)
        assert words in said and "Traceback" not in said and len(said.splitlines()) <= 1, (command, said)
    assert not os.listdir(locked)
