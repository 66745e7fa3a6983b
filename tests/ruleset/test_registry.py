"""Registry: one rule for a symbol, layers, wildcards, fingerprints."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import irad.rules
from irad.errors import RuleError
from irad.ir import types
from irad.rules import ALL, builtin
from irad.ruleset.define import elementwise, inactive
from irad.ruleset.expr import apply, equal, where
from irad.ruleset.interface import PURE, CallRule, Domain, Effects, Inactive, Rule
from irad.ruleset.registry import Library, Registry, describe

REALS = Domain(-1.0, 1.0)
SIN = elementwise("sin", lambda x, y: apply("cos", x), on=REALS)
PRINTF = inactive("printf puts", "output")


def nothing(*args: object) -> None:
    return None


def something(*args: object) -> None:
    print(args)


def call_rule(*symbols: str, reverse=nothing) -> CallRule:
    return CallRule(symbols, Effects(), reverse)


def test_lookup():
    registry = Registry.of(SIN, PRINTF)
    for symbol in ("llvm.sin.f64", "llvm.sin.f32", "sin", "sinf", "numba_sin", "__nv_sinf"):
        assert registry.lookup(symbol) is SIN
    assert registry.lookup("puts") is PRINTF
    assert registry.lookup("sine") is None
    assert registry.lookup("llvm.sin.f16") is None


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, y: where(equal(x, 0.0), 0.5, apply("cos", x)),
        lambda x, y: 2.0 * where(equal(y, 0.0), 1.0, y / x),
        lambda x, y: where(equal(x, 0.0), 0.5 + 0.0 * apply("exp", 1.0), where(x > 1.0, 1.0, x)),
    ],
)
def test_a_constant_at_a_point_is_refused_unless_declared(formula):
    with pytest.raises(RuleError, match="constant at a point"):
        elementwise("sin", formula, on=REALS)
    assert elementwise("sin", formula, on=REALS, kinks="zero at 0").policy == "zero at 0"


def test_guards_with_derivatives_are_accepted():
    elementwise("sin", lambda x, y: where(x * x < 1.0, 1.0 - 0.5 * x * x, apply("cos", x)), on=REALS)
    elementwise("sin", lambda x, y: where(equal(x, 0.0), 1.0 - 0.5 * x * x, apply("cos", x)), on=REALS)
    # Of an argument that is not differentiated: for this order the function is constant.
    elementwise("powi", lambda x, n, y: (where(equal(n, 0.0), 0.0, n * y / x), None), on=REALS)


def test_precision():
    registry = Registry.of(SIN, PRINTF)
    assert registry.precision("sinf") is types.FLOAT
    assert registry.precision("llvm.sin.f64") is types.DOUBLE
    assert registry.precision("puts") is None
    assert registry.precision("cos") is None


def test_two_rules_for_one_symbol_are_refused():
    with pytest.raises(RuleError) as caught:
        Registry.of(SIN, call_rule("sinf"))
    text = str(caught.value)
    assert "'sinf'" in text
    assert "the elementwise rule for 'sin'" in text
    assert "the call rule for 'sinf'" in text
    assert "overlaid_on(base)" in text


def test_one_rule_may_not_claim_a_symbol_twice():
    with pytest.raises(RuleError, match="'f'"):
        Registry.of(call_rule("f", "f"))
    with pytest.raises(RuleError, match=r"'f\.\*'"):
        Registry.of(call_rule("f.*"), inactive("f.*", "x"))


def test_a_rule_without_symbols_is_refused():
    with pytest.raises(RuleError, match="names no symbol"):
        Registry.of(call_rule())


def test_an_elementwise_function_without_symbols_is_refused():
    rule = elementwise("frobnicate", lambda x, y: y, on=REALS)
    with pytest.raises(RuleError, match="frobnicate") as caught:
        Registry.of(rule)
    assert "CallRule" in caught.value.remedy


def test_wildcards():
    copies, long = call_rule("llvm.memcpy.*"), call_rule("llvm.memcpy.inline.*")
    exact = call_rule("llvm.memcpy.p0.p0.i32")
    for rules in ((copies, long, exact), (exact, long, copies)):
        registry = Registry.of(*rules)
        assert registry.lookup("llvm.memcpy.p0.p0.i64") is copies
        assert registry.lookup("llvm.memcpy.inline.p0.p0.i64") is long
        assert registry.lookup("llvm.memcpy.p0.p0.i32") is exact
        assert registry.lookup("llvm.memmove.p0.p0.i64") is None


def test_the_upper_layer_wins():
    mine = elementwise("sin", lambda x, y: 1.0, on=REALS)
    base, extra = Registry.of(SIN, PRINTF), Registry.of(call_rule("f"))
    registry = Registry.of(mine).overlaid_on(base)
    assert registry.lookup("sinf") is mine
    assert registry.lookup("puts") is PRINTF
    assert base.lookup("sinf") is SIN
    three = extra.overlaid_on(registry)
    assert three.lookup("sinf") is mine
    assert list(three.all_rules()) == [*extra.rules, mine, SIN, PRINTF]


def test_stacking_is_associative():
    a, b, c = Registry.of(call_rule("f")), Registry.of(call_rule("f")), Registry.of(call_rule("g"))
    assert a.overlaid_on(b).overlaid_on(c).lookup("f") is a.rules[0]
    assert a.overlaid_on(b.overlaid_on(c)).lookup("f") is a.rules[0]
    assert a.overlaid_on(b).overlaid_on(c).lookup("g") is c.rules[0]
    assert list(a.overlaid_on(b).overlaid_on(c).all_rules()) == list(a.overlaid_on(b.overlaid_on(c)).all_rules())


def test_an_upper_wildcard_covers_a_lower_exact_symbol():
    wild = call_rule("numba_*")
    assert Registry.of(wild).overlaid_on(Registry.of(call_rule("numba_x"))).lookup("numba_x") is wild


def test_the_fingerprint_follows_what_rules_say():
    def of(*rules):
        return Registry.of(*rules).fingerprint()

    same = elementwise("sin", lambda x, y: apply("cos", x), on=Domain(0.0, 9.0))
    other = elementwise("sin", lambda x, y: -apply("cos", x), on=REALS)
    assert of(SIN) == of(same)
    assert of(SIN) != of(other)
    assert of(SIN) != of(SIN, PRINTF)
    assert of(inactive("f", "x")) != of(inactive("f", "x", PURE))
    assert of(call_rule("f")) == of(call_rule("f"))
    assert of(call_rule("f")) != of(call_rule("f", reverse=something))
    assert of(call_rule("f")) != of(call_rule("g"))
    for part in ({"tangent": something}, {"series": something}, {"moves": True}):
        assert of(call_rule("f")) != of(replace(call_rule("f"), **part))


def test_the_fingerprint_follows_what_a_rule_closes_over():
    def with_factor(factor: float):
        return call_rule("f", reverse=lambda *args: print(factor))

    assert Registry.of(with_factor(1.0)).fingerprint() == Registry.of(with_factor(1.0)).fingerprint()
    assert Registry.of(with_factor(1.0)).fingerprint() != Registry.of(with_factor(2.0)).fingerprint()


def test_the_built_in_rules_stand_together():
    registry = Registry.of(*ALL)
    assert registry.lookup("numba_xxgemm") is not None
    assert registry.fingerprint() == Registry.of(*ALL).fingerprint()


def test_each_built_in_rule_is_found_whether_its_library_is_loaded_or_not():
    together, built_in = Registry.of(*ALL), builtin.registry()
    symbols = [*together._exact, *dict(together._prefixes)]
    assert len(symbols) > 1500
    assert [symbol for symbol in symbols if built_in.lookup(symbol) is not together.lookup(symbol)] == []
    assert [symbol for symbol in symbols if built_in.precision(symbol) is not together.precision(symbol)] == []
    assert built_in.fingerprint() == together.fingerprint()


def test_all_modules_with_rules_are_built_in():
    found = {id(rule) for rule in ALL}
    for path in sorted(Path(irad.rules.__path__[0]).rglob("*.py")):
        name = ".".join(path.relative_to(Path(irad.rules.__path__[0])).with_suffix("").parts)
        if not name.startswith("cuda") and "\nRULES" in path.read_text():
            rules = importlib.import_module(f"irad.rules.{name}").RULES
            assert {id(rule) for rule in rules} <= found, name


def test_a_library_is_loaded_when_a_symbol_may_be_of_it():
    loaded = []

    def load(name: str) -> tuple[Rule, ...]:
        loaded.append(name)
        return (call_rule(name),)

    libraries = [Library(re.compile(name), partial(load, name)) for name in ("one_f", "two_f")]
    registry = Registry.of(SIN, libraries=libraries).overlaid_on(Registry.of(call_rule("one_g"), call_rule("three")))
    assert registry.lookup("sinf") is SIN
    assert registry.lookup("three").symbols == ("three",)
    assert registry.lookup("one_g").symbols == ("one_g",)
    assert loaded == []
    assert registry.lookup("one_f").symbols == ("one_f",)
    assert registry.lookup("one_fg") is None
    assert loaded == ["one_f"]
    assert [describe(rule) for rule in registry.all_rules()][1:3] == [
        "the call rule for 'one_f'",
        "the call rule for 'two_f'",
    ]


@pytest.mark.parametrize(
    "symbol",
    [
        "PyFloat_AsDouble",
        "PyNumber_Float",
        "PyObject_Call",
        "numba_list_getitem",
        "numba_list_base_ptr",
        "numba_dict_lookup",
    ],
)
def test_callees_that_could_lose_a_derivative_are_not_inactive(symbol: str):
    assert not isinstance(Registry.of(*ALL).lookup(symbol), Inactive)


def test_elementwise_wants_one_partial_for_each_argument():
    with pytest.raises(RuleError, match="2 arguments but gives one partial derivative"):
        elementwise("pow", lambda x, p, y: y, on=REALS)
    with pytest.raises(RuleError, match="2 arguments but gives 3 partial derivatives"):
        elementwise("pow", lambda x, p, y: (y, y, y), on=REALS)
    with pytest.raises(RuleError, match="1 domains"):
        elementwise("pow", lambda x, p, y: (y, y), on=(REALS,))


def test_elementwise_adds_points_to_every_domain():
    rule = elementwise("pow", lambda x, p, y: (y, None), on=Domain(0.0, 1.0, (0.5,)), also=(2.0,))
    assert [domain.also for domain in rule.domains] == [(0.5, 2.0)] * 2


def test_numbers_are_partials():
    assert elementwise("identity", lambda x, y: 1, on=REALS).partials[0] is not None


def test_describe():
    assert describe(PRINTF) == "the declaration of 'printf', 'puts' as inactive"
    assert describe(call_rule(*"abcd")) == "the call rule for 'a', 'b', 'c', …"
    assert describe(SIN) == "the elementwise rule for 'sin'"
