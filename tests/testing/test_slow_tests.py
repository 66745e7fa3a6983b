from __future__ import annotations

import ast
from pathlib import Path

from tests.tools.slow_tests import ALWAYS, LIST, durations, slow_tests

REPORT = """
============================= slowest durations =============================
12.06s call     tests/a/test_one.py::test_many[x y]
4.00s setup    tests/a/test_one.py::test_alone
1.50s call     tests/a/test_one.py::test_alone
0.50s call     tests/a/test_one.py::test_many[z]
2.00s call     tests/a/test_two.py::test_pair[1]
1.25s call     tests/a/test_two.py::test_pair[2]
9.00s call     tests/test_three.py::test_long
7.00s call     tests/properties/test_random.py::test_program[0]
8.00s call     tests/properties/test_random.py::test_program[1]
6.00s call     tests/docs/test_guides.py::test_example[README.md-1]
9.00s call     tests/docs/test_guides.py::test_example[README.md-2]
31.00s call     tests/test_four.py::test_very_long
0.10s teardown tests/test_three.py::test_long
"""


def test_durations_are_those_of_set_up_and_call():
    found = durations(REPORT)
    assert found["tests/a/test_one.py::test_alone"] == 5.5
    assert found["tests/a/test_one.py::test_many[x y]"] == 12.06
    assert found["tests/test_three.py::test_long"] == 9.0
    assert len(found) == 11


def test_the_quickest_case_one_test_of_each_file_examples_and_random_programs_stay():
    assert slow_tests(durations(REPORT)) == [
        "tests/a/test_one.py::test_alone",
        "tests/a/test_one.py::test_many[x y]",
        "tests/a/test_two.py::test_pair[1]",
        "tests/test_four.py::test_very_long",
    ]


def test_what_users_copy_is_not_listed():
    assert [line for line in LIST.read_text("utf-8").splitlines() if line.startswith(ALWAYS)] == []


def test_what_is_listed_is_there():
    """Functions by name: which cases they have may depend on the versions of Python and Numba."""
    root, functions = Path(__file__).parents[2], dict[str, set[str]]()
    for line in LIST.read_text("utf-8").splitlines():
        file, _, test = line.partition("::")
        if file not in functions:
            tree = ast.parse((root / file).read_text("utf-8"))
            functions[file] = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
        assert test.split("[")[0].split("::")[-1] in functions[file], line
