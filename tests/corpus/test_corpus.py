"""Functions of other packages have the right derivative or are refused with a reason; see README.md.

The tables are always checked; where IRAD_CORPUS is set they are also run, for the packages that are installed.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.corpus.outcome import Outcome, table_of
from tests.corpus.run import names, run_package

_SHARE_REFUSED = 0.03


def test_the_sample_is_broad():
    samples = [sample for name in names() for sample in table_of(name).samples]
    assert len(names()) >= 12
    assert len({sample.path for sample in samples}) >= 250


def test_few_are_expected_to_be_refused():
    samples = [sample for name in names() for sample in table_of(name).samples]
    refused = [sample.path for sample in samples if sample.known.startswith("refused: ")]
    assert len(refused) <= _SHARE_REFUSED * len(samples), refused


@pytest.mark.parametrize("name", names())
def test_what_is_known_of_a_sample_names_an_outcome(name: str):
    for sample in table_of(name).samples:
        assert sample.known.partition(": ")[0] in ("", "refused", "not smooth"), sample.path


@pytest.mark.skipif(not os.environ.get("IRAD_CORPUS"), reason="runs for an hour: set IRAD_CORPUS=1")
@pytest.mark.parametrize("name", names())
def test_every_function_of_a_package(name: str):
    package = table_of(name)
    if importlib.util.find_spec(package.module) is None:
        pytest.skip(f"needs {package.requirement}, see tests/corpus/requirements.txt")
    unexpected = []
    for result in run_package(name, range(len(package.samples))):
        sample = package.samples[result.number]
        expected = Outcome(sample.known.partition(": ")[0] or "right")
        if result.outcome != expected:
            unexpected.append(
                f"{sample.path} ({result.number}): {result.outcome}, expected {expected}\n{result.details}"
            )
    assert not unexpected, "\n\n".join(unexpected)


def test_the_requirements_are_those_of_the_tables():
    lines = (Path(__file__).parent / "requirements.txt").read_text(encoding="utf-8").splitlines()
    listed = {line for line in lines if not line.startswith("#")}
    forbidding = {"aeon>=1.4", "financepy>=1.1"}  # their requirements exclude this Numba, see README.md
    assert listed == {table_of(name).requirement for name in names()} - forbidding
