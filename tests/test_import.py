"""`import certifit` costs nothing; the environment picks the build of the core."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest

import certifit
from certifit import runtime
from tests import models_page
from tests.stub import PATH, stub


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "CERTIFIT_BUILD"} | environment
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", ["import certifit", "import certifit; dir(certifit); certifit.__version__"])
def test_import_loads_neither_numpy_nor_sklearn_nor_the_core(code):
    heavy = "{'numpy', 'scipy', 'sklearn', 'pyarrow', 'pandas', 'certifit._core_baseline', 'certifit._core_avx2'}"
    done = run(f"import sys; {code}; print(sorted({heavy} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


def test_threads_alone_loads_no_numpy_either():
    done = run("import sys, certifit\nwith certifit.threads(2): pass\nprint('sklearn' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("name", certifit.__all__)
def test_every_public_name_is_there_and_listed(name):
    assert getattr(certifit, name).__name__.rpartition(".")[2] == name
    assert name in dir(certifit)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Lasagne'"):
        _ = certifit.Lasagne
    assert not hasattr(certifit, "Lasagne")


def test_the_stub_says_what_there_is():
    assert PATH.read_text() == stub(), "run make stub"


def test_the_page_of_models_says_what_there_is():
    assert models_page.PATH.read_text() == models_page.page(), "run make stub"


@pytest.mark.parametrize("build", ["baseline", "avx2"])
@pytest.mark.slow
def test_a_build_can_be_forced(build):
    if build == "avx2" and not import_module("certifit._core_baseline").cpu_has_avx2():
        pytest.skip("this processor has no AVX2 and FMA")
    code = (
        "import certifit as cf; from certifit import runtime; cf.LinearRegression().fit([[1.], [2.], [4.]], [1, 2, 3])"
    )
    done = run(f"{code}; print(runtime.build, runtime.core.__name__)", CERTIFIT_BUILD=build)
    assert done.stdout == f"{build} certifit._core_{build}\n", done.stderr


@pytest.mark.slow
def test_without_a_word_the_best_build_is_taken():
    best = "avx2" if import_module("certifit._core_baseline").cpu_has_avx2() else "baseline"
    for environment in ({}, {"CERTIFIT_BUILD": ""}):
        assert run("from certifit import runtime; print(runtime.build)", **environment).stdout == f"{best}\n"


def test_an_unknown_build_is_refused_with_the_ones_there_are():
    done = run("from certifit import runtime", CERTIFIT_BUILD="nonsense")
    assert done.returncode != 0
    assert "ImportError: CERTIFIT_BUILD must be one of baseline, avx2. Got 'nonsense'." in done.stderr
    assert run("import certifit", CERTIFIT_BUILD="nonsense").returncode == 0  # nothing was asked of the core


@pytest.mark.parametrize(
    ("forced", "answer"), [("", "certifit._core_avx2"), ("avx2", "certifit._core_avx2"), ("baseline", None)]
)
def test_a_core_built_for_this_processor_alone_is_taken_and_another_one_refused(forced, answer, monkeypatch):
    def installed(name):
        if name == "certifit._core_baseline":
            raise ModuleNotFoundError(name)
        return name

    monkeypatch.setenv("CERTIFIT_BUILD", forced)
    monkeypatch.setattr(runtime, "import_module", installed)
    monkeypatch.setattr(runtime, "_lacks_avx2", lambda cpuinfo: False)
    if answer:
        assert runtime._pick_core() == answer
    else:
        with pytest.raises(ImportError, match="only the core for AVX2 was built"):
            runtime._pick_core()


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("processor : 0\nflags : fpu sse4_2 avx avx2 fma bmi2\n", False),
        ("processor : 0\nflags : fpu sse4_2 avx\n", True),
        ("processor : 0\nflags : fpu avx2\n", True),
        ("processor : 0\nFeatures : asimd\n", False),
        (None, False),
    ],
)
def test_a_processor_without_avx2_is_known_before_an_instruction_of_the_core_runs(tmp_path, said, lacks):
    cpuinfo = tmp_path / "cpuinfo"
    if said is not None:
        cpuinfo.write_text(said)
    assert runtime._lacks_avx2(cpuinfo) is lacks


def test_a_core_for_avx2_copied_to_another_processor_is_refused_in_words(monkeypatch):
    def installed(name):
        assert name == "certifit._core_baseline"  # the other one would end the process
        raise ModuleNotFoundError(name)

    monkeypatch.delenv("CERTIFIT_BUILD", raising=False)
    monkeypatch.setattr(runtime, "import_module", installed)
    monkeypatch.setattr(runtime, "_lacks_avx2", lambda cpuinfo: True)
    with pytest.raises(ImportError, match="built for processors with AVX2 and FMA, and this one has not both"):
        runtime._pick_core()
