"""Derivative callables: Numba dispatchers whose body is one intrinsic that calls the derivative.

The wrapper has the parameter names and defaults of the user's function, so Numba itself binds keywords, defaults and
star arguments, specialises by type, and calls it from Python or from other compiled code. Typing the intrinsic derives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba.core import sigutils, types
from numba.core.dispatcher import Dispatcher, OmittedArg

from irad.compiling import collection_paused, step
from irad.errors import BackendError, IradError, NonFiniteError, SignatureError, without_source
from irad.frontend.calls.definition import Definition, DerivativeCall
from irad.frontend.calls.raising import end_tracebacks_at_the_call, leaving
from irad.frontend.calls.retry import FoundNaN, zero_that_won
from irad.frontend.calls.task import Returns, Role, Task
from irad.frontend.calls.untypable import as_numpy, is_of_another_library, untypable, untypable_besides
from irad.frontend.generated import function_from
from irad.frontend.numba import internals
from irad.frontend.numba.boxing import compiler_boxing, with_numpy_numbers
from irad.frontend.numba.lengths import observing, tell_lengths
from irad.frontend.numba.messages import REFUSALS, explanation, location_of, readable
from irad.frontend.numba.private import compiler_lock
from irad.frontend.packing.dispatcher import StructureDispatcher, is_mixed_list
from irad.frontend.packing.packed import is_structure, packed
from irad.frontend.packing.shadows import Shadows, argument_names, opened
from irad.options import Options

INTERNAL = "irad_"
"""The prefix of parameters that precede the user's; callers of a derivative fill them in."""
_TRIES = 16
"""Calls after the first one that are looked at: a look takes a microsecond."""

_call = StructureDispatcher.__call__

Held = tuple[Any, Any, Any]
"""A result, its type, and the function that emits the code after the call."""
Part = Callable[[Held], tuple[Any, Any]]
"""From a result to a part of it, with its type."""


class _InCompiledCode(tuple[Any, ...]):
    """The types of a specialisation that compiled code calls: no call from Python finds it by them."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class DerivativeDispatcher(StructureDispatcher):
    """A compiled derivative: callable from Python and from njit code.

    Attributes:
        shows_all_zeros: of a gradient, for derivatives of it: makes it so that their results are infinite or NaN where
            any zero won over an infinity that is the slope of something (`Task.shows_zeros`).
        active_positions: positions of the arguments that are differentiated; None where that depends on their types.
        names_primal: whether it is called a derivative of `primal`; else of what that is a derivative of.
        primal: the dispatcher of the differentiated function.
        writes_into: whether its first argument is memory that it writes a derivative to.
        kind: the name of the public function that made it.
        task: description of the call; None if it depends on the types of a call, as for `irad.vjp`.

    Args:
        wrapper: the function to compile.
        called: the object that it calls; nothing else holds it.
        primal: as above.
        kind: as above.
        rebuild: function and arguments with which pickle recreates it.
        python_type: as what Python is given results of a type; see `numba.boxing`.
        task: as above.
        is_pointed_to: whether its specialisations have the entry for C that Numba's function pointers hold. Making
            that takes a tenth of the time of compilation, and hardly any derivative is called through a pointer.
        certain: makes the same derivative with strong zeros, where ``task`` speculates: compiled code calls that.
        shows_zeros: makes the same derivative with `Task.shows_zeros`; see `irad.frontend.calls.retry.zero_that_won`.
        is_inner: whether only compiled code of irad calls it, which optimises it: it has no machine code of its own.
        form: of a derivative without a task, what tells it from others that are made again alike, after its options: by
            these it is kept on disk. None: it is not, since typing leaves more than code.
    """

    names_primal = True
    writes_into = False
    shows_all_zeros: Callable[[bool], DerivativeDispatcher] | None = None

    def __init__(
        self,
        wrapper: Callable[..., Any],
        called: Definition,
        primal: Any,
        kind: str,
        rebuild: tuple[Any, ...],
        python_type: Callable[[Any], Any],
        task: Task | None = None,
        *,
        is_pointed_to: bool = False,
        certain: Callable[[], DerivativeDispatcher] | None = None,
        shows_zeros: Callable[[bool], DerivativeDispatcher] | None = None,
        is_inner: bool = False,
        form: tuple[Options, object] | None = None,
    ) -> None:
        self.primal, self.kind, self.task = primal, kind, task  # Numba asks for the repr while it initialises
        self._irad_rebuild, self._irad_form, self.irad_called = rebuild, form, called
        self._irad_python_type, self._irad_is_pointed_to = python_type, is_pointed_to
        self._irad_make_certain, self._irad_shows_zeros, self.tells_zeros = certain, None, False
        if shows_zeros is not None:
            self._irad_shows_zeros = cache(shows_zeros)
        self.active_positions = None if task is None else frozenset(position for position, _ in task.roles)
        self._irad_calls_since, self._irad_kinds_that_had_nan = 0, set[tuple[Any, ...]]()
        self._irad_tries_left = 0
        if shows_zeros is not None and task is not None and task.options.debug and not task.shows_zeros:
            self.tell_of_zeros(shows_zeros)
        nogil = bool(primal.targetoptions.get("nogil"))
        options = {"nopython": True, "nogil": nogil, "no_cfunc_wrapper": not is_pointed_to}
        has_lanes = task is not None and task.mode.width > 1
        if is_inner:
            options["no_cpython_wrapper"] = True
        compiler = compiler_boxing(python_type, has_lanes=has_lanes, is_inner=is_inner)
        super().__init__(wrapper, targetoptions=options, pipeline_class=compiler)
        if not is_inner:
            self._irad_keep_on_disk()

    def _irad_keep_on_disk(self) -> None:
        form = self._irad_form if self.task is None else (self.task.options, self.task)
        if form is not None and is_kept(self.primal, form[0]):
            with collection_paused():
                from irad.frontend.disk.cache import DiskCache  # few derivatives are kept

            # What makes it again says what it is of, but not in which form: with zeros that are shown, for instance.
            identity = self._irad_rebuild, *form, self._irad_is_pointed_to, tasks_of(self.primal)
            self._cache = DiskCache(self, identity)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the derivative; specialises it first for new types.

        Raises:
            SignatureError: the arguments do not fit the function's parameters.
            BackendError: Numba cannot type an argument.
        """
        if self._irad_tries_left:
            self._irad_look_for_lengths((*args, *kwargs.values()))
        try:
            result = _call(self, *args, **kwargs)
            if self.tells_zeros:
                self._irad_tell_of_zeros(result, args, kwargs)
            return result
        except FoundNaN:
            pass
        except (TypeError, ValueError) as error:
            # Numba's lists hold values of one type; packed, the items of a structure may differ.
            if is_mixed_list(error) and any(map(is_structure, (*args, *kwargs.values()))):
                return self(*map(packed, args), **{name: packed(value) for name, value in kwargs.items()})
            misfit = self._misfit(args, kwargs) if isinstance(error, TypeError) or is_mixed_list(error) else None
            if misfit is None:
                raise
            raise leaving(misfit) from None
        except REFUSALS as error:
            # Looked for only after a refusal, so that calls which fit pay nothing.
            shared = self._irad_with_shared_constants(args, kwargs)
            if shared is not None:
                return self(*shared[0], **shared[1])
            raise leaving(self._misfit(args, kwargs) or _refused_by_numba(self, error)) from None
        except IradError as error:
            __tracebackhide__ = True  # says IPython and pytest
            shared = self._irad_with_shared_constants(args, kwargs)
            if shared is not None:
                return self(*shared[0], **shared[1])
            promoted = self._irad_with_directions_of_floats(args) if isinstance(error, SignatureError) else None
            if promoted is not None:
                return self(*promoted, **kwargs)
            # Numba takes arrays of some other libraries as bare memory, and then lacks the operations.
            foreign = isinstance(error, BackendError) and any(map(is_of_another_library, (*args, *kwargs.values())))
            raise leaving((self._misfit(args, kwargs) if foreign else None) or error)  # noqa: B904
        return self._irad_without_speculation(args, kwargs)

    def _irad_with_shared_constants(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments with arrays of other libraries among the constants as NumPy's; None without any."""
        function = (self.primal if self.names_primal else self.primal.primal).py_func
        own, active = list(inspect.signature(function).parameters), self.active_positions
        constants = {name for i, name in enumerate(own) if active is not None and i not in active}
        names = list(inspect.signature(self.py_func).parameters)
        given = tuple(as_numpy(each) if name in constants else each for name, each in zip(names, args, strict=False))
        named = {name: as_numpy(each) if name in constants else each for name, each in kwargs.items()}
        made = *given, *args[len(given) :]
        is_changed = any(a is not b for a, b in zip((*made, *named.values()), (*args, *kwargs.values()), strict=True))
        return (made, named) if is_changed else None

    def _irad_with_directions_of_floats(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The arguments with floats in place of integers in directions that are not written to; None without any.

        SciPy tries a product with a vector of integers before it asks for others.
        """
        if self.task is None or not self.task.is_forward or not self.task.kept:
            return None
        function = (self.primal if self.names_primal else self.primal.primal).py_func
        known, names = inspect.signature(function).parameters, list(inspect.signature(self.py_func).parameters)
        at = next((i for i, name in enumerate(names) if name not in known), len(args))
        if at >= len(args):
            return None
        own, given = (*args[:at], *args[at + 1 :]), args[at]
        positions = [position for position, _ in self.task.roles]
        if not isinstance(given, tuple) or len(given) != len(positions):
            given = (given,)
        made = tuple(_of_floats(each, own[i]) for each, i in zip(given, positions, strict=False) if i < len(own))
        if len(made) != len(given) or all(new is old for new, old in zip(made, given, strict=True)):
            return None
        return *args[:at], made if isinstance(args[at], tuple) else made[0], *args[at + 1 :]

    def tell_of_zeros(self, shows_zeros: Callable[[bool], DerivativeDispatcher]) -> None:
        """Has calls from Python in debug mode look for zeros that won, until one is found."""
        self._irad_shows_zeros, self.tells_zeros = cache(shows_zeros), True

    def hidden_zero(self, *args: Any, **kwargs: Any) -> NonFiniteError | None:
        """Error that names a zero that won over an infinity and may hide another number; None if none is known.

        For arguments with which it is called in debug mode.
        """
        from irad.frontend.calls.watch_hooks import last_repeats  # loaded with the code that calls them

        result = _call(self, *args, **kwargs)
        return self._irad_zero_that_won(result, args, kwargs) if last_repeats() else None

    def _irad_zero_that_won(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NonFiniteError | None:
        if self._irad_shows_zeros is None:
            return None
        return zero_that_won(self._irad_shows_zeros, result, args, kwargs, into=self.writes_into)

    def _irad_tell_of_zeros(self, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        from irad.frontend.calls.watch_hooks import last_repeats  # loaded with the code that calls them

        kinds = self._irad_kinds_that_had_nan
        if kinds:  # outside debug mode, of the calls that follow the first NaN the 1st, the 2nd, the 4th, the 8th, …
            self._irad_calls_since += 1
            is_looked_at = self._irad_calls_since.bit_count() == 1 and self._irad_kinds_of(args, kwargs) in kinds
        else:
            is_looked_at = last_repeats()
        found = self._irad_zero_that_won(result, args, kwargs) if is_looked_at else None
        if found is not None:
            self._irad_warn_of(found)

    def _irad_kinds_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The types of the arguments of a call, by which Numba has chosen the code."""
        return (*map(self.typeof_pyval, args), *((name, self.typeof_pyval(value)) for name, value in kwargs.items()))

    def _irad_warn_of(self, found: NonFiniteError) -> None:
        from irad.debug.verdict import warn_of_zero  # few derivatives hide one

        self.tells_zeros = False
        innermost = self.primal if self.names_primal else self.primal.primal
        warn_of_zero(innermost.py_func.__qualname__, found)

    def _irad_without_speculation(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call once more, with strong zeros; warns if these may hide another number."""
        self._irad_end_speculation()
        result = self(*args, **kwargs)
        self._irad_kinds_that_had_nan.add(self._irad_kinds_of(args, kwargs))
        self.tells_zeros = self._irad_shows_zeros is not None
        found = self._irad_zero_that_won(result, args, kwargs)
        if found is not None:
            self._irad_warn_of(found)
        return result

    def _irad_end_speculation(self) -> None:
        """Switches to the version with comparisons, which compiled code always calls, since a result was NaN."""
        with compiler_lock():
            certain = self._irad_certain
            if self.irad_called is certain.irad_called:
                return  # another thread was first
            self.task, self._irad_form, self.irad_called = certain.task, certain._irad_form, certain.irad_called
            # The cache on disk identifies a derivative by these, which have changed.
            self._irad_keep_on_disk()
            signatures, may_compile = self.signatures, self._can_compile
            self.forget()
            # Explicit signatures forbid further ones; those that it had are compiled again for the new task.
            self._can_compile = True
            for signature in () if may_compile else signatures:
                self.compile(signature)
            self._can_compile = may_compile

    @cached_property
    def _irad_certain(self) -> DerivativeDispatcher:
        """This derivative with strong zeros."""
        return self if self._irad_make_certain is None else self._irad_make_certain()

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba's hook that types a call in compiled code, where nobody would call it again."""
        certain = self._irad_certain
        if certain is self:
            return super().get_call_template(args, kws)
        found = certain.get_call_template(args, kws)
        for kinds, compiled in certain.overloads.items():  # Numba takes the type of a function pointer from them
            if not any(compiled is each for each in self.overloads.values()):
                self.overloads[_InCompiledCode(kinds)] = compiled
        return found

    def call_packed(self, *args: Any) -> Any:
        """Call with structures of Python: numbers of gradients that are structures are stored by Python."""
        if self.task is None or not any(role is Role.INTO for _, role in self.task.roles):
            return super().call_packed(*args)
        out, values = args[0], [each.value if isinstance(each, OmittedArg) else each for each in args[1:]]
        if self._irad_has_star:
            values[-1:] = values[-1]
        names, shadows = argument_names(self.primal.py_func, len(values)), Shadows(takes_arrays=True)
        arrays = dict[int, list[Any]]()
        outs = (out,) if self.task.single else out
        if not isinstance(outs, tuple) or len(outs) != len(self.task.roles):
            return super().call_packed(*args)
        found = list(outs)
        for number, (position, _) in enumerate(self.task.roles):
            if position < len(values) and is_structure(values[position]):
                shadows.open(position, names[position], values[position], (outs[number],))
                arrays[position] = []
                found[number] = opened(values[position], outs[number], arrays[position])
        shadows.check()
        result = super().call_packed(found[0] if self.task.single else tuple(found), *args[1:])
        for position, its in arrays.items():
            shadows.overwrite(position, its)
        return result

    def specialisation_for(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        """Hook of Numba's C code for calls for which it finds no specialisation."""
        called = [self.primal]
        while isinstance(called[-1], DerivativeDispatcher):
            called.append(called[-1].primal)
        with observing(called, dict(zip(inspect.signature(self.py_func).parameters, args, strict=True))):
            found = super().specialisation_for(*args, **kws)
        self._irad_tries_left = 0 if tell_lengths(args) else _TRIES
        return found

    def _irad_look_for_lengths(self, values: tuple[Any, ...]) -> None:
        """Compiles again for a call that says more than those before: these had a few numbers to check it with."""
        self._irad_tries_left -= 1
        if tell_lengths(values):
            with compiler_lock():
                self._irad_tries_left = 0
                self.forget()

    def compile(self, sig: Any) -> Any:
        """Numba's hook that specialises it: the derivative, and the code that calls it."""
        kinds = ", ".join(readable(str(kind)) for kind in sigutils.normalize_signature(sig)[0])
        told = step(f"compiling irad.{self.kind}({self.primal.py_func.__qualname__})", f"for {kinds}")
        with told, collection_paused():
            return super().compile(sig)

    def add_overload(self, cres: Any) -> None:
        """Numba's hook after a specialisation is compiled, or loaded, and before it is called."""
        if not internals.linked_libraries(cres.library):  # loaded: its cache knows what it was made of
            super().add_overload(cres)
            return
        from irad.frontend.linkable import fill_environments  # loaded already

        fill_environments(cres.library)
        super().add_overload(cres)

    def get_compile_result(self, sig: Any) -> Any:
        """Numba's hook when it takes the address of a specialisation."""
        result: Any = (
            super().get_compile_result(sig)
            if self._irad_is_pointed_to
            else self._irad_certain.pointed_to.get_compile_result(sig)
        )
        return result

    def get_overload(self, sig: Any) -> Any:
        """Numba's hook that gives compiled code its entry."""
        certain = self._irad_certain
        return super().get_overload(sig) if certain is self else certain.compile(sig)

    @cached_property
    def pointed_to(self) -> DerivativeDispatcher:
        """This derivative for function pointers."""
        return self._irad_as(DerivativeDispatcher, is_pointed_to=True)

    @cached_property
    def inner(self) -> DerivativeDispatcher:
        """This derivative for compiled code of irad, which is optimised as a whole; Python cannot call it."""
        certain = self._irad_certain
        return certain._irad_as(_InnerDerivative, is_inner=True) if certain is self else certain.inner

    def _irad_as(
        self, kind: type[DerivativeDispatcher], *, is_pointed_to: bool = False, is_inner: bool = False
    ) -> DerivativeDispatcher:
        """This derivative for other callers."""
        return kind(
            self.py_func,
            self.irad_called,
            self.primal,
            self.kind,
            self._irad_rebuild,
            self._irad_python_type,
            self.task,
            form=self._irad_form,
            is_pointed_to=is_pointed_to,
            is_inner=is_inner,
        )

    def forget(self) -> None:
        """Drops compiled code, since a rule has changed. Functions of users that have inlined it keep the old code."""
        self.py_func.__globals__["irad_call"] = self.irad_called.renewed()
        internals.forget_overloads(self)

    def kept_beside(self, argument_types: tuple[Any, ...]) -> object:
        """Data that goes to disk with a specialisation, besides its code."""
        return None

    def take_loaded(self, argument_types: tuple[Any, ...], result_type: Any, beside: Any) -> None:
        """Takes the data that were stored with a specialisation, which has been loaded.

        Args:
            argument_types: those of the specialisation.
            result_type: the type that it returns.
            beside: by `kept_beside`.
        """

    def close(self) -> None:
        """Releases the workspace that rules keep for derivatives of this function; they can be called afterwards."""
        for pool in self.pools():
            pool.close()

    def pools(self) -> set[Any]:
        """The workspace of the rules that derivatives of its function call, and of those in it that were loaded."""
        from irad.frontend.derivation import pools_in  # the engine: few functions have rules with workspace

        mine = (getattr(compiled.library, "irad_pools", ()) for compiled in self.overloads.values())
        return {*pools_in(self.primal), *(pool for pools in mine for pool in pools)}

    def _misfit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> IradError | None:
        """Problem with the arguments of a call, if the function has no such parameters or Numba no such types."""
        mine = inspect.signature(self.py_func)
        internal = [name for name in mine.parameters if name.startswith(INTERNAL)]  # `autodiff` fills them itself
        public = mine.replace(parameters=list(mine.parameters.values())[len(internal) :])
        function = (self.primal if self.names_primal else self.primal.primal).py_func
        names = inspect.signature(function).parameters
        try:
            bound = public.bind(*args[len(internal) :], **kwargs)
        except TypeError as misfit:
            unknown = [name for name in kwargs if name not in public.parameters]
            what = f"there is no argument {unknown[0]!r}" if unknown else misfit
            return SignatureError(
                f"{self!r} cannot be called with these arguments: {what}",
                f"pass the arguments {public}" if internal else f"call it with the arguments {public}",
                f"a derivative takes the arguments of {function.__qualname__}"
                + "".join(f", and {name}" for name in public.parameters if name not in names),
                location_of(function),
            )
        if internal == [] and self.task is not None and self.task.is_forward:
            *_, last = sorted(position for position, _ in self.task.roles)
            if len(bound.args) < last + 2:  # the direction is one of the arguments that a star collects
                return SignatureError(
                    f"{self!r} is called with {len(bound.args)} arguments, so there is no direction",
                    f"pass {last + 1} arguments of {function.__qualname__} and then the direction",
                    "the direction follows the last argument that is differentiated",
                    location_of(function),
                )
        bound.apply_defaults()
        own = {name: value for name, value in bound.arguments.items() if name in names}
        besides = {name: value for name, value in bound.arguments.items() if name not in names}
        besides |= dict(zip(internal, args, strict=False))
        return untypable(function, own) or untypable_besides(repr(self), function, besides)

    def __reduce__(self) -> tuple[Any, ...]:
        from irad.frontend.custom.pickled_rules import with_rules_of_libraries  # few derivatives are pickled

        return with_rules_of_libraries(self._irad_rebuild)

    def __repr__(self) -> str:
        innermost = self.primal if self.names_primal else self.primal.primal
        return f"<irad.{self.kind} of {innermost.py_func.__qualname__}>"


class _InnerDerivative(internals.Entryless, DerivativeDispatcher):
    """A derivative without an entry for Python."""


without_source(DerivativeDispatcher.__call__, "derivative")
end_tracebacks_at_the_call()


def _refused_by_numba(dispatcher: DerivativeDispatcher, error: Exception) -> BackendError:
    found = explanation(error)
    return BackendError(
        f"Numba cannot compile {dispatcher!r} for these arguments: {found.problem}",
        "pass arguments of types that Numba supports",
        found.reason,
        location_of(dispatcher.primal.py_func),
    )


def tasks_of(function: Any) -> tuple[Task | None, ...]:
    """The task of a derivative, of the derivative that it differentiates, and so on; nothing for other functions."""
    found = list[Task | None]()
    while isinstance(function, DerivativeDispatcher):
        found.append(function.task)
        function = function.primal
    return tuple(found)


def is_kept(primal: Any, options: Options) -> bool:
    """True if derivatives of a function are kept on disk."""
    return options.cache or bool(getattr(internals.cache_of(primal), "keeps_derivatives", False))


def intrinsic_call(
    primal: Dispatcher, task: Task, parameters: Sequence[str], *, has_targets: bool, has_seed: bool
) -> Definition:
    """An intrinsic that calls the derivative of a function.

    Its arguments are those of the function, then the tuple of destinations, then the seed.

    Args:
        primal: the dispatcher of the function.
        task: description of the call.
        parameters: one name for each parameter of the function.
        has_targets: whether destinations are passed.
        has_seed: whether a seed is passed.
    """
    call = DerivativeCall(primal, task, len(parameters), has_targets, has_seed)

    def define(argument_types: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        from irad.frontend.calls.typed_call import typed_call  # the engine: a derivative from disk does without

        return typed_call(call, argument_types, intrinsic_call)

    names = [*parameters, *(["irad_targets"] if has_targets else []), *(["irad_seed"] if has_seed else [])]
    return Definition(names, define, call)


def speculating(
    names: Sequence[str],
    plain: Definition,
    certain: Definition,
    repeats: Callable[[tuple[Any, ...]], bool],
    searched: Part | None,
    into: int | None = None,
    is_made: Part | None = None,
) -> Definition:
    """A call that raises `FoundNaN` where arithmetic, without strong zeros, makes a NaN of a derivative.

    Args:
        names: names of the parameters.
        plain: the call whose zeros are not strong.
        certain: the call whose zeros are; it takes the place of that where a call cannot be repeated.
        repeats: whether the former does the same in another run for arguments of some types, and changes nothing.
        searched: the part of the result that holds derivatives, and may be NaN; None: there is none.
        into: the position of the argument that takes a derivative.
        is_made: the part of the result that says whether there is a derivative at all; None: there always is.
    """

    def define(given: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        from irad.frontend.calls.nan_checks import speculative_call  # the engine: code from disk does without

        return speculative_call(given, plain, certain, repeats, searched, into, is_made)

    return Definition(names, define, certain.meaning)


def part_at(*steps: int) -> Part:
    """Selector for `speculating`: a part of a tuple; without steps all of it."""

    def part(held: Held) -> tuple[Any, Any]:
        value, kind, builder = held
        for number in steps:
            value, kind = builder.extract_value(value, number), kind.types[number]
        return value, kind

    return part


def _of_floats(direction: Any, argument: Any) -> Any:
    """A direction of integers or bools in the type of an argument of floats; any other as it is."""
    kinds = [getattr(getattr(each, "dtype", None), "kind", "") for each in (direction, argument)]
    is_array = isinstance(direction, np.ndarray) and isinstance(argument, np.ndarray)
    return direction.astype(argument.dtype) if is_array and kinds[0] in "biu" and kinds[1] in "fc" else direction


def python_type(returns: Returns, *, has_aux: bool) -> Callable[[Any], Any]:
    """As what Python is given the results of a derivative: gradients in single precision stay NumPy scalars."""

    def gradient_and(result: Any, position: int) -> Any:
        items = list(result.types)
        items[position] = with_numpy_numbers(items[position])
        return types.Tuple(tuple(items))

    match returns:
        case Returns.VALUE:
            return lambda result: result
        case Returns.GRADIENT if not has_aux:
            return with_numpy_numbers
        case Returns.VALUE_AND_GRADIENT:
            return lambda result: gradient_and(result, 1)
        case _:
            return lambda result: gradient_and(result, 0)


def make_wrapper(
    name: str,
    like: Callable[..., Any],
    leading: Sequence[str],
    body: str,
    called: Definition,
    direction: tuple[str, int] | None = None,
) -> Any:
    """A Python function with the parameters and defaults of another one.

    Args:
        name: a prefix of its name.
        like: the function whose parameters it takes.
        leading: parameters in front of those.
        body: the expression it returns, with ``{arguments}`` for the parameters of ``like``, and ``{direction}``.
        called: the object that the body calls as ``irad_call``.
        direction: the name of a further parameter, and the position of the argument that it follows. Parameters up to
            there have no defaults: a call that leaves one out would pass the direction in its place.
    """
    parameters = list(inspect.signature(like).parameters.values())
    texts = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters]
    values, given = [p.name for p in parameters], ""
    has_default = [p.default is not p.empty for p in parameters]
    if direction is not None:
        given, after = direction
        star = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), len(parameters))
        if after < star:
            has_default[: after + 1] = [False] * (after + 1)
        else:  # among the arguments that the star collects
            at, collected = after - star + 1, values[star]
            given = f"{collected}[{at}]"
            values[star] = f"{collected}[:{at}] + {collected}[{at + 1}:]"
    defaults = tuple(p.default for p, has in zip(parameters, has_default, strict=True) if has)
    texts = [f"{text}=None" if has else text for text, has in zip(texts, has_default, strict=True)]
    if direction is not None and given == direction[0]:
        texts.insert(after + 1, given)
    call = body.format(arguments=", ".join(values), direction=given)
    source = f"def wrapper({', '.join([*leading, *texts])}):\n    return {call}\n"
    file = f"irad.{name} of {like.__qualname__}"
    wrapper = function_from("wrapper", source, file, {"irad_call": called.intrinsic})
    wrapper.__defaults__ = defaults or None
    wrapper.__name__ = wrapper.__qualname__ = f"{name}_{like.__name__}"
    wrapper.__module__, wrapper.__doc__ = like.__module__, like.__doc__
    return wrapper


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters."""
    return list(inspect.signature(function).parameters)
