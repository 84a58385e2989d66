"""Ctrl-C ends the reading of texts, and the process goes on as before."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

HANG = 600  # seconds until a process counts as hung; no measure of speed
CALLS = {
    "fit": ("cf.TextBinarizer().fit(many)", "found"),
    "fit_transform of two words": ("cf.TextBinarizer(ngram_range=(1, 2)).fit_transform(many)", "found"),
    "transform": ("cf.TextBinarizer().fit(few).transform(many)", "_matrix"),
    "hashing": ("cf.TextBinarizer(n_hash=64).fit(many)", "_hashed"),
}


@pytest.mark.slow
def test_ctrl_c_ends_every_pass_over_texts():
    """All in one process: each pass also follows one that was interrupted."""
    code = f"""
        import itertools, os, signal, sys, threading
        import certifit as cf

        few = ["free cash", "free beer"]
        many = ["free cash and beer " * 50_000] * 20_000  # one text, read 20,000 times
        before = cf.TextBinarizer().fit(few).vocabulary_
        main = threading.get_ident()

        def interrupt_inside_the_core(waits_in):
            looks = 0
            while looks < 20_000:
                looks = looks + 1 if sys._current_frames()[main].f_code.co_name == waits_in else 0
            os.kill(os.getpid(), signal.SIGINT)

        for n_threads, (name, (call, waits_in)) in itertools.product([1, 2], {CALLS!r}.items()):
            try:
                threading.Thread(target=interrupt_inside_the_core, args=[waits_in], daemon=True).start()
                with cf.threads(n_threads):
                    eval(call)
                print(name, "was not interrupted")
            except KeyboardInterrupt:
                print(name, cf.TextBinarizer().fit(few).vocabulary_ == before)
        """
    command = [sys.executable, "-c", dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.stdout.splitlines() == 2 * [f"{name} True" for name in CALLS], done.stderr
