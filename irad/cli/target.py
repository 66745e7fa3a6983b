"""`MODULE_OR_FILE:FUNCTION` and the arguments of a call, as given on a command line."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import math
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
import numba
import numpy as np

from irad.api.functions import primal_of
from irad.api.selection import check_positions
from irad.errors import IradError, SignatureError
from irad.frontend.numba.messages import location_of

_RAISED: Final = (Exception, SystemExit)  # what a user's code may end with: a script may end the process


def load_function(target: str) -> tuple[Any, ModuleType]:
    """The function that a target names, and its module.

    Args:
        target: ``package.module:function`` or ``path/to/file.py:function``; ``Class.method`` for what is in a class.

    Raises:
        click.UsageError: there is no such module or function, or importing the module raises.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise click.UsageError(
            f"{target!r} is not of the form MODULE_OR_FILE:FUNCTION; write model.py:loss or package.model:loss"
        )
    module = _load_file(Path(where)) if where.endswith(".py") or "/" in where else _load_module(where)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise click.UsageError(f"{where} has no {name!r}{_similar(part, found)}")
        found = getattr(found, part)
    return found, module


def _load_module(name: str) -> ModuleType:
    try:
        with _searched_first(Path.cwd()):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            hint = f"; did you mean {name}.py:…?" if Path(f"{name}.py").exists() else ""
            raise click.UsageError(f"there is no module {name!r} here or on the Python path{hint}") from None
        raise _failed(name, error) from error
    except _RAISED as error:
        raise _failed(name, error) from error


@contextmanager
def _searched_first(folder: Path) -> Iterator[None]:
    """Modules are looked for in a folder before all others."""
    entry = str(folder)
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:  # the module may have changed the path itself
            sys.path.remove(entry)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise click.UsageError(f"there is no file {path}")
    path = path.resolve()
    name = _module_name(path)
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise click.UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # Numba looks the module of a function up
    try:
        with _searched_first(path.parent):
            specification.loader.exec_module(module)
    except _RAISED as error:
        del sys.modules[name]
        raise _failed(str(path), error) from error
    return module


def _module_name(path: Path) -> str:
    """The file's own name, unless that of another module, as of a file ``types.py``."""
    other = sys.modules.get(path.stem)
    is_free = path.stem not in sys.stdlib_module_names and (
        other is None or getattr(other, "__file__", None) == str(path)
    )
    return path.stem if is_free else f"_irad_{path.stem}"


def _failed(name: str, error: BaseException) -> click.ClickException:
    """Error of a user's module, shown in a line with its place."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    place = f"\n  at  {outside[-1].filename}:{outside[-1].lineno}" if outside else ""
    if isinstance(error, SyntaxError) and error.filename is not None:
        place = f"\n  at  {error.filename}:{error.lineno}"
    return click.UsageError(f"importing {name} raises {type(error).__name__}: {error}{place}")


def _similar(name: str, owner: Any) -> str:
    close = difflib.get_close_matches(name, [n for n in dir(owner) if not n.startswith("__")], 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def arguments_of(f: Any, module: ModuleType, expression: str | None, signature: str | None) -> tuple[Any, ...]:
    """The arguments of a call, or Numba types in their place.

    Args:
        f: the function.
        module: where names in the expression are looked up, in addition to ``np`` and ``math``.
        expression: Python: one argument, or several separated by commas.
        signature: Numba types, separated by commas.

    Raises:
        click.UsageError: neither or both are given, or one cannot be evaluated.
    """
    if expression is not None and signature is not None:
        raise click.UsageError("give --args or --sig, not both")
    if expression is not None:
        names = {"np": np, "numpy": np, "math": math, "numba": numba, **vars(module)}
        value = _evaluate(expression, names, "--args")
        return value if isinstance(value, tuple) else (value,)
    if signature is not None:
        return _types(signature)
    declared = list(getattr(f, "nopython_signatures", ()))
    if len(declared) == 1:
        return tuple(declared[0].args)
    raise click.UsageError(
        "the types of the arguments are not known: give --args 'np.ones(3), 2.0' or --sig 'float64[::1], float64'"
    )


def launch_of(kernel: Any, expression: str | None, module: ModuleType) -> Any:
    """A kernel's derivative with the configuration of a launch; the kernel where none is given, None for a function.

    Args:
        kernel: the kernel; None where the target is a function.
        expression: Python: blocks and threads, separated by a comma.
        module: where names in the expression are looked up.

    Raises:
        click.UsageError: it is the configuration of no launch, or given for a function.
    """
    if expression is None:
        return kernel
    if kernel is None:
        raise click.UsageError("--launch is for CUDA kernels, and the target is a function")
    import irad.cuda  # imports numba.cuda

    configuration = _evaluate(expression, dict(vars(module)), "--launch")
    try:
        return irad.cuda.grad(kernel)[configuration]
    except SignatureError as error:
        raise click.UsageError(f"--launch {expression}: {error.problem}; {error.remedy}") from None


def _types(signature: str) -> tuple[Any, ...]:
    found = _evaluate(signature, dict(vars(numba.types)), "--sig")
    if hasattr(found, "args"):  # float64(float64[::1]): a signature with its result
        return tuple(found.args)
    types = found if isinstance(found, tuple) else (found,)
    for one in types:
        if not isinstance(one, numba.types.Type):
            raise click.UsageError(f"--sig: {one!r} is not a Numba type; write 'float64[::1], float64'")
    return types


def _evaluate(expression: str, names: dict[str, Any], option: str) -> Any:
    try:
        return eval(expression, names)
    except SyntaxError as error:
        raise click.UsageError(f"{option}: {expression!r} is not a Python expression: {error.msg}") from None
    except _RAISED as error:
        raise click.UsageError(f"{option}: {expression!r} raises {type(error).__name__}: {error}") from None


def positions_of(f: Any, names: str | None, numbers: str | None) -> tuple[int, ...] | None:
    """The arguments to differentiate with respect to; None for all possible ones.

    Args:
        f: the function.
        names: of parameters, separated by commas.
        numbers: positions, separated by commas.

    Raises:
        click.UsageError: both are given, or there is no such parameter, or it is named twice.
        IradError: the target is not a function.
    """
    if names is not None and numbers is not None:
        raise click.UsageError("give --wrt or --argnums, not both")
    if numbers is not None:
        try:
            positions = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            raise click.UsageError(f"--argnums {numbers}: write positions, counted from 0, as 0,2") from None
        primal = primal_of(f)
        try:
            return check_positions(primal, positions)
        except SignatureError as error:
            raise click.UsageError(f"--argnums {numbers}: {error.problem}; {error.remedy}") from None
    if names is None:
        return None
    parameters = list(inspect.signature(getattr(f, "py_func", f)).parameters)
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in parameters:
            raise click.UsageError(f"--wrt {names}: there is no parameter {name!r}, only {', '.join(parameters)}")
    if len(set(wanted)) < len(wanted):
        raise click.UsageError(f"--wrt {names} names an argument twice")
    return tuple(map(parameters.index, wanted))


def raised(f: Any, error: Exception, remedy: str) -> IradError:
    """Exception of a user's function, in a line.

    Args:
        f: the dispatcher.
        error: the exception that it raises.
        remedy: the remedy.
    """
    return IradError(
        f"{f.py_func.__qualname__} raises {type(error).__name__} at these arguments: {error}",
        remedy,
        "there is no derivative where a function has no value",
        location=location_of(f.py_func),
    )
