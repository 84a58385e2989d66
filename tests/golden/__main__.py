"""python -m tests.golden [--update | --diff] [TABLE ...]: compare the package's answers with those kept, or keep them.

--update fits everything with both builds of the core, the one for any processor with BLAS kernels of an old one, keeps
what holds of both, and prints what changed. A commit that changes answers explains each of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from tests.golden.answers import ANSWERS, KEYS, answers, condensed, differences, expanded, joined, read, write
from tests.golden.tables import TABLES

MACHINES = ({"CERTIFIT_BUILD": "avx2"}, {"CERTIFIT_BUILD": "baseline", "OPENBLAS_CORETYPE": "Nehalem"})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--update", action="store_true", help="rewrite the files of answers")
    parser.add_argument("--diff", action="store_true", help="print what differs (the default)")
    parser.add_argument("--answers", action="store_true", help="print the answers of this process as JSON")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="default: all")
    given = parser.parse_args()
    names = given.tables or list(TABLES)
    if given.answers:
        print(json.dumps({name: answers(name) for name in names}))
        return 0
    if not given.update:
        lines = [line for name in names for line in compared(name)]
        print("\n".join([*lines, f"{len(lines)} differences in {len(names)} tables"]))
        return bool(lines)
    runs = [_started(environment, names) for environment in MACHINES]
    first, second = (json.loads(run.communicate()[0]) for run in runs)
    found = {name: joined(first[name], second[name]) for name in names}
    if not given.tables:
        for path in ANSWERS.glob("*.json"):
            if path.stem not in (*TABLES, KEYS):
                path.unlink()
    old_sets, n_changed = read(KEYS), 0
    sets = dict(old_sets) if given.tables else {}
    for name in names:
        lines = differences(name, expanded(read(name), old_sets), found[name])
        n_changed += len(lines)
        print("\n".join(lines), end="\n" if lines else "")
        write(name, condensed(found[name], sets))
    write(KEYS, sets)
    print(f"{n_changed} answers changed in {len(names)} tables")
    return 0


def compared(name: str) -> list[str]:
    """What differs from the answers kept."""
    return differences(name, expanded(read(name), read(KEYS)), answers(name))


def _started(environment: dict[str, str], names: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.golden", "--answers", *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)


if __name__ == "__main__":
    sys.exit(main())
