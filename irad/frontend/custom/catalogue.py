"""Rules that users wrote: by the function that they are for.

Input   registrations (`irad.rules`).
Output  what holds for a callee, when Numba lowers a call of it.
Method  a table, keyed by what Numba knows the callee as (a Python function, a dispatcher, a function of a library) and
        by the types of arguments that a declaration is limited to. What holds for a call is put together from all
        entries that fit: see `find`. Declarations of one entry that contradict each other are refused when the second
        is made.

What was compiled with a rule, or for lack of one, is compiled again after the rule has changed: derivatives note which
functions their programs call.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from types import FunctionType
from typing import Any, Final, TypeAlias

from numba import typeof
from numba.core import sigutils, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.types import Type
from numba.core.typing import Signature

from irad.errors import RuleError, SourceLocation
from irad.frontend.numba import internals
from irad.frontend.numba.messages import readable
from irad.frontend.numba.target import typing_context
from irad.records import dataclass

# Patterns: the types of arguments that a declaration is for.
#
# A pattern has an entry for each argument: a Numba type, a class of Numba's types (``types.Float``), or
# None for any. An array type of layout A stands for arrays of that dtype and rank in every layout.

Entry: TypeAlias = Any


@dataclass(frozen=True)
class Pattern:
    """The types of arguments that a declaration is for; ``entries`` is None if it is for all."""

    entries: tuple[Entry, ...] | None = None

    def __str__(self) -> str:
        return "all signatures" if self.entries is None else f"({', '.join(map(_spelled, self.entries))})"

    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """True if it is for these types."""
        if self.entries is None:
            return True
        plain = tuple(map(plain_type, arguments))
        return len(plain) == len(self.entries) and all(map(_covers, self.entries, plain))

    def covers(self, other: Pattern) -> bool:
        """True if it is for all that another is for."""
        if self.entries is None or other.entries is None:
            return self.entries is None
        return len(self.entries) == len(other.entries) and all(map(_covers, self.entries, other.entries))

    def overlaps(self, other: Pattern) -> bool:
        """True if there may be types that both are for."""
        if self.entries is None or other.entries is None:
            return True
        return len(self.entries) == len(other.entries) and all(map(_overlap, self.entries, other.entries))

    def meet(self, other: Pattern) -> Pattern:
        """The intersection of two patterns that overlap."""
        if self.entries is None or other.entries is None:
            return self if other.entries is None else other
        pairs = zip(self.entries, other.entries, strict=True)
        return Pattern(tuple(two if _covers(one, two) else one for one, two in pairs))


ANY: Final = Pattern()


def pattern_of(signature: Signature) -> Pattern:
    """The pattern that a user wrote: None, a signature of Numba's, its text, or a tuple of entries.

    Raises:
        RuleError: it is none of these.
    """
    if signature is None:
        return ANY
    if isinstance(signature, tuple | list):
        return Pattern(tuple(map(_entry, signature)))
    try:
        return Pattern(tuple(sigutils.normalize_signature(signature)[0]))
    except (TypeError, ValueError, SyntaxError, NameError, NumbaError) as error:
        raise _not_a_signature(signature) from error


def check_concrete(pattern: Pattern) -> None:
    """Refuses a pattern that is not the signature of a call.

    Raises:
        RuleError: an entry is not a Numba type.
    """
    for entry in pattern.entries or ():
        if not isinstance(entry, types.Type):
            raise RuleError(
                f"{pattern} is not the signature of a call",
                'give a Numba type for each argument, "(float64, float64[::1])"',
                "which rule a call is differentiated by depends on the types of all its arguments",
            )


def plain_type(numba_type: Type) -> Type:
    """The type of a value, whether it is a literal, or a default that the caller left out."""
    if isinstance(numba_type, types.Omitted):
        return types.unliteral(typeof(numba_type.value))
    return types.unliteral(numba_type)


def _entry(given: object) -> Entry:
    if given is None or isinstance(given, types.Type) or (isinstance(given, type) and issubclass(given, types.Type)):
        return given
    if isinstance(given, str):
        try:
            (found,) = sigutils.normalize_signature(f"({given},)")[0]
        except (TypeError, ValueError, SyntaxError, NameError, NumbaError) as error:
            raise _not_a_signature(given) from error
        return found
    raise _not_a_signature(given)


def _not_a_signature(given: object) -> RuleError:
    return RuleError(
        f"{given!r} is not a signature",
        "give for each argument a Numba type, a class of these such as types.Float, or None for any: "
        '(types.Float, "float64[:]", None)',
        "a declaration may be limited to calls with arguments of these types",
    )


def _covers(general: Entry, special: Entry) -> bool:
    if general is None:
        return True
    if special is None:
        return False
    if isinstance(general, type):
        return issubclass(special if isinstance(special, type) else type(special), general)
    if isinstance(special, type):
        return False
    if isinstance(general, types.Array) and isinstance(special, types.Array):
        same = (general.dtype, general.ndim) == (special.dtype, special.ndim)
        return same and general.layout in ("A", special.layout)
    return bool(general == special)


def _overlap(one: Entry, other: Entry) -> bool:
    if isinstance(one, type) and isinstance(other, type):
        return issubclass(one, other) or issubclass(other, one)
    return _covers(one, other) or _covers(other, one)


def _spelled(entry: Entry) -> str:
    if entry is None:
        return "any"
    return entry.__name__ if isinstance(entry, type) else readable(str(entry))


BY_IRAD: Final = "declared inactive by irad"
"""Reason for irad's own inactive functions: what its files say, users need not have declared."""

_versions = itertools.count(1)


@dataclass(eq=False)
class CustomRule:
    """Declarations of users for one function, for all types of arguments or for some.

    Attributes:
        target: the function; for a C function its symbol.
        pattern: the types of arguments that it is for.
        parts: the functions of the rule, by their kind: "augmented_primal", "reverse", "forward"; or "build_rule".
        inactive: why no derivative flows through it, or None.
        opted_out: whether calls with these types are differentiated as if there were no rule.
        inactive_arguments: positions of arguments through which none flows.
        restores: the reverse may put back what the function overwrote.
        partials: the partial derivatives that its parts were made from, if they were.
        is_imported: whether they are Python code.
        is_total: in a mode without a rule the function is refused, and its body not differentiated.
        noinline: no rule of its own: it only stays a call.
        noalias: its result is new memory.
        forward_from_body: forward mode differentiates the body if there is no rule for it.
        batched: functions that take all directions at once, by the kind that they were registered as.
        is_checkpoint: the reverse is that of the body, with less memory.
        repeats: the function does the same in each run and changes nothing, whatever its body seems to do.
        version: changes with each registration.
    """

    target: Any
    pattern: Pattern = ANY
    parts: dict[str, Callable[..., Any]] = field(default_factory=dict)
    inactive: str | None = None
    opted_out: bool = False
    inactive_arguments: frozenset[int] = frozenset()
    restores: bool = False
    partials: tuple[Any, ...] | None = None
    is_total: bool = False
    is_imported: bool = False
    noinline: bool = False
    noalias: bool = False
    forward_from_body: bool = False
    batched: dict[str, Callable[..., Any]] = field(default_factory=dict)
    is_checkpoint: bool = False
    repeats: bool = False
    version: int = field(default_factory=lambda: next(_versions))

    @property
    def name(self) -> str:
        """Name of the function in messages."""
        return name_of(self.target)

    @property
    def is_easy(self) -> bool:
        """True if its parts were made from partial derivatives."""
        return self.partials is not None

    @property
    def key(self) -> Key:
        """Key in the catalogue."""
        return self.target, self.pattern

    @property
    def is_for_reverse(self) -> bool:
        """True if the function is not to be differentiated in reverse mode, but the rule to be called."""
        return not self.parts.keys().isdisjoint(("augmented_primal", "reverse", "build_rule"))

    @property
    def has_plain_form(self) -> bool:
        """True if its calls are lowered otherwise in derivatives that are differentiated."""
        return self.is_checkpoint or bool(self.inactive_arguments)

    @property
    def is_for_forward(self) -> bool:
        """True if the same holds for forward mode."""
        return not self.parts.keys().isdisjoint(("forward", "build_rule"))

    def takes_lanes(self, kind: str) -> bool:
        """True if a function of the rule takes all directions at once."""
        return kind in self.parts and self.batched.get(kind) is self.parts[kind]

    @property
    def decides(self) -> bool:
        """True if it says how a call is differentiated."""
        return self.replaces_body or self.opted_out

    @property
    def replaces_body(self) -> bool:
        """True if the body of the function is not differentiated."""
        return self.is_for_reverse or self.is_total or self.inactive is not None

    @property
    def stands_for_body(self) -> bool:
        """True if no mode differentiates the body of the function."""
        return self.replaces_body and not self.forward_from_body

    def part(self, kind: str) -> Callable[..., Any]:
        """A function of the rule.

        Raises:
            RuleError: it was not given.
        """
        found = self.parts.get(kind)
        if found is None:
            other = next(iter(self.parts.values()))
            raise RuleError(
                f"the rule for {self.name} has no {kind}",
                f"register one: @irad.rules.{kind}({self.name})",
                "the augmented primal runs in the forward sweep, the reverse in the reverse sweep; both are needed",
                location_of(other),
            )
        return found


Key: TypeAlias = tuple[Any, Pattern]
_Table: TypeAlias = dict[Any, dict[Pattern, CustomRule]]
_RULES: Final[_Table] = {}
_users: Final[weakref.WeakKeyDictionary[Any, frozenset[Any]]] = weakref.WeakKeyDictionary()
_epoch: Final = [0]
_on_change: Final[list[Callable[[], None]]] = []


def name_of(target: object) -> str:
    """The name of a function that has a rule."""
    if isinstance(target, str):
        return target
    function = getattr(target, "py_func", target)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    module = getattr(function, "__module__", None) or ""
    return f"{module.split('.')[0]}.{name}" if module.startswith(("numpy", "scipy")) else str(name)


def location_of(function: Any) -> SourceLocation | None:
    """Place at which a function of a rule is defined."""
    return SourceLocation.of(function)


def is_known(f: object) -> bool:
    """True if compiled code can call a function as it is: it is compiled, or Numba has an implementation of it."""
    context = typing_context()
    context.refresh()
    try:
        context.resolve_value_type(f)
    except (ValueError, TypeError):  # NumbaTypeError is the latter
        return False
    return True


def keys_of(target: object) -> Iterator[Any]:
    """Keys that a rule for a callee may be registered under, in order of precedence."""
    function = getattr(target, "py_func", None)
    if function is not None:
        yield function
    yield target


def _levels(target: object) -> list[dict[Pattern, CustomRule]]:
    """The entries of a callee, those that win first."""
    try:
        return [table for key in keys_of(target) if (table := _RULES.get(key))]
    except TypeError:  # what cannot be hashed cannot have a rule
        return []


def is_declared(target: object) -> bool:
    """True if anything was declared for a callee, for some types of arguments."""
    return bool(_levels(target))


def entries_of(target: object) -> Iterator[CustomRule]:
    """All that was declared for a callee, for whatever types."""
    for table in _levels(target):
        yield from table.values()


def find(target: object, arguments: tuple[Type, ...]) -> CustomRule | None:
    """Declarations that hold for calls with arguments of these types; None if there are none.

    How it is differentiated, by a rule, not at all (inactive) or as if there were none (opted out), says the entry of
    the highest level that fits, and there the one that is most specific. What else was declared for the function
    holds with it, whatever the level: constant arguments, to stay a call, to return new memory.
    """
    levels = _levels(target)
    fitting = [[rule for rule in table.values() if rule.pattern.fits(arguments)] for table in levels]
    deciding = [[rule for rule in rules if rule.decides] for rules in fitting]
    chosen = next((_most_specific(rules) for rules in deciding if rules), None)
    rules = [rule for each in fitting for rule in each]
    other = _forward_rule(fitting, chosen)
    forward = {} if other is None else {"forward": other.parts["forward"]}
    inactive = frozenset().union(*(rule.inactive_arguments for rule in rules))
    noinline, noalias = any(rule.noinline for rule in rules), any(rule.noalias for rule in rules)
    has_rule = chosen is not None and not chosen.opted_out
    if not (has_rule or inactive or noinline or noalias or forward):
        return None
    base = chosen if chosen is not None else rules[0]
    return replace(
        base,
        parts={**base.parts, **forward},
        inactive_arguments=inactive,
        noinline=noinline,
        noalias=noalias,
        forward_from_body=any(rule.forward_from_body for rule in rules),
        batched={**base.batched, **(forward if other is not None and other.takes_lanes("forward") else {})},
    )


def _forward_rule(fitting: list[list[CustomRule]], chosen: CustomRule | None) -> CustomRule | None:
    """The first entry that fits with a function for forward mode; None if the chosen entry itself decides."""
    if chosen is not None and (chosen.is_for_forward or not chosen.is_for_reverse):
        return None
    having = [[rule for rule in rules if "forward" in rule.parts] for rules in fitting]
    return next((_most_specific(rules) for rules in having if rules), None)


def _most_specific(rules: list[CustomRule]) -> CustomRule:
    for rule in rules:
        if all(other.pattern.covers(rule.pattern) for other in rules):
            return rule
    raise _unclear(rules[0], rules[1])


@contextmanager
def edited(target: object, pattern: Pattern = ANY) -> Iterator[CustomRule]:
    """The entry of a function, to be filled; afterwards code that was compiled with the function is compiled again.

    Raises:
        RuleError: nothing can be called by it; or what it holds then contradicts itself, or another entry.
    """
    if not (callable(target) or isinstance(target, str)):
        raise RuleError(
            f"{target!r} cannot have a rule",
            "(a) name a function or (b) the symbol of a function of a library, a string",
            "rules are for functions that are called",
        )
    known = _RULES.get(target, {}).get(pattern)
    rule = (
        CustomRule(target, pattern)
        if known is None
        else replace(known, parts={**known.parts}, batched={**known.batched})
    )
    yield rule
    _check_entry(rule)
    _RULES.setdefault(target, {})[pattern] = rule
    rule.version = next(_versions)
    changed(target)


def _check_entry(rule: CustomRule) -> None:
    """Refuses an entry that contradicts itself, or leaves open which of two is meant."""
    declared = [
        *(["has a rule"] if rule.parts.keys() - {"build_rule", "forward"} else []),
        *(["has a build_rule"] if "build_rule" in rule.parts else []),
        *(["is declared inactive"] if rule.inactive is not None else []),
        *(["has opted out"] if rule.opted_out else []),
    ]
    if len(declared) > 1:
        which = "" if rule.pattern == ANY else f" for {rule.pattern}"
        raise RuleError(
            f"{rule.name}{which} {declared[0]} and {declared[1]}",
            f"take back what was declared first, irad.rules.remove({rule.name}), then declare the other",
            "a call is differentiated in one way, and irad cannot know which of them is meant",
            location_of(rule.target) if callable(rule.target) else None,
        )
    table = _RULES.get(rule.target, {})
    for other in table.values():
        one, two = rule.pattern, other.pattern
        is_open = one.overlaps(two) and not (one.covers(two) or two.covers(one)) and one.meet(two) not in table
        if is_open and rule.decides and other.decides:
            raise _unclear(other, rule)


def _unclear(one: CustomRule, two: CustomRule) -> RuleError:
    return RuleError(
        f"{two.name} has declarations for {one.pattern} and for {two.pattern}, and neither is more specific",
        f"(a) first make a declaration for {one.pattern.meet(two.pattern)} or "
        f"(b) take one back: irad.rules.remove({two.name}, signature)",
        "a call that fits both is differentiated in one way, and irad cannot know which of them is meant",
        location_of(two.target) if callable(two.target) else None,
    )


def remove(target: object, pattern: Pattern | None = None) -> None:
    """Removes the rules of a function, if it has any: all, or those declared for a pattern."""
    table = _RULES.get(target)
    if table is None or (pattern is not None and pattern not in table):
        return
    if pattern is not None:
        del table[pattern]
    if pattern is None or not table:
        del _RULES[target]
    changed(target)


@contextmanager
def empty() -> Iterator[_Table]:
    """An empty catalogue; declarations made meanwhile go into the table, and are removed afterwards."""
    before = dict(_RULES)
    _RULES.clear()
    declared: _Table = {}
    try:
        yield declared
    finally:
        declared.update(_RULES)
        _RULES.clear()
        _RULES.update(before)


def add(target: object, table: dict[Pattern, CustomRule]) -> None:
    """Puts the entries of a function into the catalogue."""
    _RULES[target] = table
    changed(target)


def declare_new(
    target: object,
    parts: dict[str, Callable[..., Any]],
    *,
    is_checkpoint: bool = False,
    repeats: bool = False,
) -> None:
    """Gives a rule to a function that nothing has called yet; of a checkpoint, forward mode takes the body.

    There is nothing to compile again then. It may be while Numba types what is going to call it.
    """
    rule = CustomRule(target, parts=parts, is_checkpoint=is_checkpoint, repeats=repeats)
    rule.forward_from_body = is_checkpoint
    _RULES[target] = {ANY: rule}


def any_restores() -> bool:
    """True if there is a rule that may put back, in the reverse, what its function overwrote."""
    return any(rule.restores for rule in rules())


def rules() -> tuple[CustomRule, ...]:
    """All rules that users registered."""
    return tuple(rule for table in _RULES.values() for rule in table.values())


def symbols() -> dict[str, CustomRule]:
    """The rules of C functions and intrinsics, by symbol."""
    return {target: table[ANY] for target, table in _RULES.items() if isinstance(target, str)}


def epoch() -> int:
    """A number that changes with every registration."""
    return _epoch[0]


# ------------------------------------------------------------------------------------------------ what depends on rules


def note_use(user: Dispatcher, functions: frozenset[object]) -> None:
    """Notes that the code of a dispatcher, a derivative or a function of a library, holds derivatives of functions."""
    _users[user] = _users.get(user, frozenset()) | functions


def when_changed(forget: Callable[[], None]) -> Callable[[], None]:
    """Has a function called whenever a rule has changed."""
    _on_change.append(forget)
    return forget


def changed(target: object) -> None:
    """Forgets everything that was compiled with another rule for a function; None: everything."""
    _epoch[0] += 1
    for forget in _on_change:
        forget()
    is_python = hasattr(target, "py_func") or (isinstance(target, FunctionType) and not is_known(target))
    function = getattr(target, "py_func", target)
    for user, functions in list(_users.items()):
        if not is_python or function in functions:  # what Numba lowers without a function of its own leaves no trace
            user.forget() if hasattr(user, "forget") else internals.forget_overloads(user)
