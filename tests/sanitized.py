"""`make sanitize`: tests that reach the compiled core, and calls with damaged arguments, on a build with sanitizers.

    python tests/sanitized.py build/sanitize/package [--calls 20000] [--log build/sanitize/log] [tests/core ...]

Every file of tests runs in a process of its own, so that what a sanitizer ends is that file alone. A line per file is
printed as soon as it is done; what the file said stands in the log folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent
# The nearest to the core first: whoever stops the run early has the most of it.
EVERY = (
    "core",
    "statistics",
    "models/test_hostile.py",
    "maps",
    "mathematics",
    "inference",
    "minimise",
    "models",
    "data",
    "evaluation",
    "selection",
    "exact",
    "modelfile",
)

# Each process of a test, and those that it starts: an editable install would answer imports before PYTHONPATH is asked.
SITE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
"""
IS_SANITIZED = "import certifit.runtime as r, sys; sys.exit(not r.core.__file__.startswith(sys.argv[1]))"


def environment(package: Path) -> dict[str, str]:
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}.so"], text=True).strip()
        for name in ("libasan", "libstdc++")
    ]
    return os.environ | {
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "CERTIFIT_SANITIZED": "1",
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONPATH": str(package),
    }


def files_in(paths: list[str]) -> list[Path]:
    """Files of tests in the order of the paths, each once."""
    chosen = [Path(path).resolve() for path in paths] or [TESTS / path for path in EVERY]
    files = [file for path in chosen for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    return list(dict.fromkeys(files))


def passes(name: str, command: list[str], log: Path, variables: dict[str, str]) -> bool:
    begun = time.monotonic()
    with (log / f"{name.replace('/', '-')}.txt").open("w+") as file:
        code = subprocess.run(
            [sys.executable, *command], stdout=file, stderr=subprocess.STDOUT, env=variables, check=False
        ).returncode
        file.seek(0)
        last_line = file.read().rstrip().rpartition("\n")[2]
    is_sound = code in (0, 5)  # 5: a file whose tests are all left out
    print(f"{'ok  ' if is_sound else 'FAIL'} {time.monotonic() - begun:6.0f} s  {name}: {last_line}", flush=True)
    return is_sound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="folder with the package and its sanitized core")
    parser.add_argument("paths", nargs="*", help="files and folders of tests; without any, all that reach the core")
    parser.add_argument("--calls", type=int, default=20_000, help="calls of the binding fuzz")
    parser.add_argument("--log", type=Path, default=Path("build/sanitize/log"))
    chosen = parser.parse_intermixed_args()
    package = chosen.package.resolve()
    (package / "sitecustomize.py").write_text(SITE)
    chosen.log.mkdir(parents=True, exist_ok=True)
    variables = environment(package)
    if subprocess.run([sys.executable, "-c", IS_SANITIZED, package], env=variables, check=False).returncode:
        sys.exit(f"certifit's core is not the one in {package}")
    outcomes = []
    if chosen.calls:
        fuzz = ["tests/core/fuzz_bindings.py", "--calls", str(chosen.calls), "--seed", "7"]
        outcomes.append(passes("binding fuzz", fuzz, chosen.log, variables))
    for file in files_in(chosen.paths):
        command = ["-m", "pytest", "-p", "no:xdist", str(file)]
        outcomes.append(passes(str(file.relative_to(TESTS)), command, chosen.log, variables))
    print(f"{sum(outcomes)} of {len(outcomes)} parts without a finding")
    return int(not all(outcomes))


if __name__ == "__main__":
    sys.exit(main())
