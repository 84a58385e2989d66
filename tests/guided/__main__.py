"""Coverage-guided fuzzing of what reads strangers' bytes, by atheris; the compiled core is not instrumented.

    python -m tests.guided model_file -max_total_time=300        (or csv, or bindings; options are those of libFuzzer)

Inputs that reach new code are kept in build/fuzz/TARGET, from where the next run goes on. A find is written there as
crash-..., and `python -m tests.guided TARGET build/fuzz/TARGET.crash-...` runs it alone.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import atheris

TESTS = Path(__file__).parents[1]
FOLDER = TESTS.parent / "build" / "fuzz"
LIMITS = ["-rss_limit_mb=4096", "-max_len=32768", "-timeout=60"]


def main() -> None:
    """Go on from the inputs that are kept, or from those that the target starts from."""
    name, options = sys.argv[1], sys.argv[2:]
    sys.path[:0] = [str(TESTS), str(TESTS / "modelfile"), str(TESTS / "core")]
    with atheris.instrument_imports(include=["certifit", "core_calls", "fuzz_bindings"]):  # when they are first needed
        from tests.guided.targets import TARGETS

        target, starts = TARGETS[name]
        corpus = FOLDER / name
        corpus.mkdir(parents=True, exist_ok=True)
        for data in starts():
            (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
        kept = [] if any(not option.startswith("-") for option in options) else [str(corpus)]
        atheris.Setup([sys.argv[0], f"-artifact_prefix={corpus}.", *LIMITS, *options, *kept], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
