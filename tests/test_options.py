import pytest

from irad.errors import IradError
from irad.options import Options, cache_patience, errors_show_llvm


def test_defaults():
    assert Options.from_environment({}) == Options() == Options(plan="default", strict=False, verify=False)


def test_environment():
    variables = {"IRAD_PLAN": "save_all", "IRAD_STRICT": "yes", "IRAD_VERIFY": "1"}
    assert Options.from_environment(variables) == Options("save_all", strict=True, verify=True)


def test_environment_of_debug_mode_and_limit():
    assert Options.from_environment({"IRAD_DEBUG": "1", "IRAD_MAX_TAPE_BYTES": "4096"}) == Options(
        debug=True, max_tape_bytes=4096
    )
    assert Options.from_environment({"IRAD_BOUNDSCHECK": "1"}) == Options(boundscheck=True)
    assert Options.from_environment({"IRAD_MAX_TAPE_BYTES": "0"}).tape_limit == 0
    assert Options.from_environment({"IRAD_MAX_TAPE_BYTES": ""}).tape_limit is None


def test_environment_of_zero_times_infinity():
    assert Options.from_environment({"IRAD_ZERO_TIMES_INFINITY": "zero"}) == Options(zero_times_infinity="zero")
    assert Options.from_environment({"IRAD_ZERO_TIMES_INFINITY": "NaN"}) == Options(zero_times_infinity="nan")
    for value in ("", "cotangent"):
        assert Options.from_environment({"IRAD_ZERO_TIMES_INFINITY": value}) == Options()


def test_environment_of_the_cache():
    assert Options.from_environment({"IRAD_CACHE": "1"}) == Options(cache=True)
    assert not Options.from_environment({"IRAD_CACHE": "0"}).cache


def test_environment_of_waiting_for_the_cache():
    assert cache_patience({}) == cache_patience({"IRAD_CACHE_WAIT": " "}) == 300.0
    assert cache_patience({"IRAD_CACHE_WAIT": "0"}) == 0.0
    assert cache_patience({"IRAD_CACHE_WAIT": "1.5"}) == 1.5
    for value in ("-1", "nan", "long"):
        with pytest.raises(IradError, match="IRAD_CACHE_WAIT"):
            Options.from_environment({"IRAD_CACHE_WAIT": value})


def test_environment_of_vector_math():
    assert Options.from_environment({"IRAD_VECTOR_MATH": "0"}) == Options(vector_math=False)
    for value in ("", "1"):
        assert Options.from_environment({"IRAD_VECTOR_MATH": value}).vector_math


def test_values_to_the_bit_need_functions_for_numbers():
    assert Options().has_vector_math
    for exact in (Options(vector_math=False), Options(strict=True), Options(debug=True), Options(plan="save_all")):
        assert not exact.has_vector_math


def test_environment_of_speculation():
    assert Options.from_environment({"IRAD_SPECULATIVE": "0"}) == Options(speculative=False)
    for value in ("", "1"):
        assert Options.from_environment({"IRAD_SPECULATIVE": value}).speculates


def test_arithmetic_that_is_asked_for_is_not_done_twice():
    zero_wins, limited = Options(zero_times_infinity="zero"), Options(max_tape_bytes=1)
    for exact in (Options(strict=True), Options(debug=True), Options(plan="save_all"), zero_wins, limited):
        assert exact.speculative
        assert not exact.speculates


def test_unknown_zero_times_infinity_is_refused():
    with pytest.raises(IradError, match="unknown zero_times_infinity 'one'"):
        Options(zero_times_infinity="one")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", ["-1", "1e9", "many", "9" * 30])
def test_a_limit_is_a_number_of_bytes(value: str):
    with pytest.raises(IradError, match=f"IRAD_MAX_TAPE_BYTES={value}"):
        Options.from_environment({"IRAD_MAX_TAPE_BYTES": value})


@pytest.mark.parametrize("value", [-1, 1.5, True, "10"])
def test_a_limit_of_another_type_is_refused(value: object):
    with pytest.raises(IradError, match="is not a number of bytes"):
        Options(max_tape_bytes=value)  # pyright: ignore[reportArgumentType]


def test_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRAD_PLAN", "save_all")
    assert Options.from_environment().plan == "save_all"


def test_empty_variables_count_as_unset():
    assert Options.from_environment({"IRAD_PLAN": "", "IRAD_VERIFY": ""}) == Options()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IRAD_PLAN", "fast"),
        ("IRAD_VERIFY", "2"),
        ("IRAD_STRICT", "maybe"),
        ("IRAD_ZERO_TIMES_INFINITY", "one"),
    ],
)
def test_values_without_meaning_are_refused(name: str, value: str):
    with pytest.raises(IradError, match=f"{name}={value}"):
        Options.from_environment({name: value})


def test_unknown_plan_is_refused():
    with pytest.raises(IradError, match="unknown plan 'fast'"):
        Options(plan="fast")  # pyright: ignore[reportArgumentType]


def test_options_are_keys():
    assert len({Options(), Options(), Options(strict=True)}) == 2


@pytest.mark.parametrize(("value", "expected"), [("", False), ("short", False), ("llvm", True), (" LLVM ", True)])
def test_whether_errors_show_llvm(value: str, expected: bool):
    assert errors_show_llvm({"IRAD_ERRORS": value}) is expected
    Options.from_environment({"IRAD_ERRORS": value})


def test_another_way_to_show_errors_is_refused_before_there_is_an_error():
    with pytest.raises(IradError, match="IRAD_ERRORS=loud is not a format"):
        Options.from_environment({"IRAD_ERRORS": "loud"})
    assert not errors_show_llvm({"IRAD_ERRORS": "loud"})
    assert not errors_show_llvm({})
