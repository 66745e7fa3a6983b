"""`irad.inspect`, of functions and of CUDA kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from irad.api.functions import kernel_of
from irad.api.selection import chosen
from irad.decompile.text import PythonText
from irad.errors import IradError, SignatureError
from irad.options import Options
from irad.report.collect import Collector
from irad.report.html import notebook, render
from irad.report.model import Report, Stage
from irad.report.shown.amounts import short_signature
from irad.report.shown.text import difference, explain, overview, stage_text, to_json
from irad.report.subject import subject_of

if TYPE_CHECKING:
    from irad.report.kernels.collect import KernelCollector


# What a report is about: a function for the CPU or a kernel.

AnyCollector: TypeAlias = Union[Collector, "KernelCollector"]


def collector_of(
    f: Any, args: tuple[Any, ...], argnums: int | Sequence[int] | None = None, options: Options | None = None
) -> AnyCollector:
    """Collector of reports on a derivative of a function or a kernel; the arguments are those of `irad.inspect`."""
    kernel = kernel_of(f)
    if kernel is None:
        return Collector(subject_of(f, args, argnums, options), args)
    from irad.report.kernels.collect import KernelCollector  # imports numba.cuda
    from irad.report.kernels.subject import kernel_subject

    positions = (argnums,) if isinstance(argnums, int) else argnums
    if kernel is not f:
        if options is not None:
            raise SignatureError(
                f"{f!r} is already created: its options cannot be changed",
                "inspect the kernel",
                "options are chosen when a derivative is created",
            )
        options = f.options
    return KernelCollector(kernel_subject(kernel, args, positions, options), args)


class Inspection:
    """The stages of a function on its way to its derivative, with reasons; made by `irad.inspect`.

    Each stage is an attribute that holds its text: ``python``, ``numba_ir``, ``llvm``, ``prepared``, ``types``,
    ``activity``, ``plan``, ``tape``, ``adjoint_python``, ``adjoint``, ``optimized``, ``asm``, and ``ptx`` for kernels.
    Nothing is computed before it is asked for. ``str()`` gives an overview; a notebook shows the HTML page.

    Examples:
        >>> import irad
        >>> from numba import float64, njit
        >>> @njit
        ... def cube(x):
        ...     return x * x * x
        >>> inspection = irad.inspect(cube, float64)
        >>> "fmul" in inspection.adjoint
        True
        >>> inspection.stage("adjoint") == inspection.adjoint
        True
        >>> inspection.explain("x").splitlines()[0]
        'x: a variable of cube'
        >>> inspection.report.function
        'cube'
        >>> inspection.diff("adjoint", "optimized").splitlines()[0]
        '--- adjoint'
        >>> "def " in str(inspection.adjoint_as_python())
        True
        >>> inspection.json().startswith("{")
        True
    """

    def __init__(self, collector: AnyCollector) -> None:
        self._collector = collector
        self._reports: dict[tuple[frozenset[Stage], bool], Report] = {}

    @property
    def report(self) -> Report:
        """All facts as data, without the text of the stages.

        If arguments were given, and not types, the derivative is called once, on copies of them: the bytes of the tape
        are those of that call.

        Raises:
            IradError: the function cannot be differentiated.
        """
        return self._report(frozenset(), measures=True)

    def stage(self, name: str, *, noise: bool = False) -> str:
        """The text of a stage.

        Args:
            name: the stage as on the command line: "adjoint", "numba-ir", …
            noise: whether to show metadata, reference counts and mangled names, too.

        Returns:
            The text, in LLVM IR, Numba IR, Python or assembly.

        Raises:
            SignatureError: there is no such stage.
            IradError: the function cannot be differentiated; the stages before "types" are available all the same.
        """
        stage = _stage(name)
        return stage_text(self._report(frozenset({stage})).stages[stage], noise=noise)

    def adjoint_as_python(self) -> PythonText:
        """The value and the gradient as Python source that can be run; the stage "adjoint" for people.

        Returns:
            The source; ``str()`` gives its text.

        Raises:
            UnsupportedError: something in it has no Python form.
            IradError: the function cannot be differentiated.
        """
        return self._collector.adjoint_as_python()

    def diff(self, before: str, after: str, *, noise: bool = False) -> str:
        """The differences between two stages.

        Args:
            before: a stage, as in `stage`.
            after: another stage.
            noise: whether to show metadata, reference counts and mangled names, too.

        Returns:
            A unified diff.

        Raises:
            SignatureError: there is no such stage.
            IradError: the function cannot be differentiated.
        """
        stages = _stage(before), _stage(after)
        found = self._report(frozenset(stages)).stages
        return "\n".join(difference(found[stages[0]], found[stages[1]], noise=noise)) + "\n"

    def explain(self, question: str | int) -> str:
        """The reasons for a decision: why a line is active, why a value is saved.

        Args:
            question: a line (13), a value ("%.190"), a Python variable ("total") or "tape".

        Returns:
            A text of a few lines.

        Raises:
            SignatureError: there is no such line, value or variable.
        """
        return explain(self.report, str(question))

    def json(self, *stages: str) -> str:
        """The facts, and the text of some stages, as JSON.

        Args:
            stages: names of stages, as in `stage`.

        Returns:
            The JSON text.

        Raises:
            SignatureError: there is no such stage.
            IradError: the function cannot be differentiated.
        """
        return to_json(self._report(frozenset(map(_stage, stages)), measures=True))

    def html(self, *, profile: bool = False) -> str:
        """All stages and facts as one HTML page, which needs no other file. It needs Jinja2.

        The page of a function that is refused shows the reason, its source, and the stages before the analyses.

        Args:
            profile: whether to run the derivative for a second to find which share of the time each line takes.

        Returns:
            The HTML text.

        Raises:
            SignatureError: a profile is wanted, and the arguments are types.
            IradError: Numba does not compile the function, or Jinja2 is not installed.

        Examples:
            >>> import irad
            >>> from numba import float64, njit
            >>> @njit
            ... def cube(x):
            ...     return x * x * x
            >>> page = irad.inspect(cube, float64).html()
            >>> "</html>" in page
            True
        """
        report = self._page()
        return render(self._collector.profile.applied_to(report) if profile and not report.refusals else report)

    def _page(self) -> Report:
        """Report that the page shows."""
        try:
            return self._report(frozenset(self._collector.stages), measures=True)
        except IradError as error:
            return self._collector.refused(error)

    def _repr_html_(self) -> str:
        """HTML for notebooks: the page in a frame, or why there is none."""
        try:
            return notebook(self._page())
        except IradError as error:
            return f"<pre>{escape(str(error))}</pre>"

    def __getattr__(self, name: str) -> str:
        stages = {stage.value.replace("-", "_") for stage in Stage}
        if name not in stages:
            raise AttributeError(f"an inspection has no {name!r}; its stages are {', '.join(sorted(stages))}")
        return self.stage(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(stage.value.replace("-", "_") for stage in Stage)})

    def __str__(self) -> str:
        return overview(self.report)

    def __repr__(self) -> str:
        subject = self._collector.subject
        return f"<irad.inspect of {subject.primal.py_func.__qualname__}{short_signature(str(subject.signature))}>"

    def _report(self, stages: frozenset[Stage], *, measures: bool = False) -> Report:
        key = stages, measures
        found = self._reports.get(key)
        if found is None:
            found = self._reports[key] = self._collector.report(stages, measures=measures)
        return found


def inspect(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Inspection:
    """The stages of a function on its way to its derivative, with reasons.

    Args:
        f: the function, as in `irad.grad`; or the result of `irad.grad`, `irad.value_and_grad` and the like; or a
            kernel of ``numba.cuda.jit`` or its derivative, for which neither a GPU nor a driver is needed.
        args: arguments of one call, or Numba types in their place (``numba.float64[:]``). With types nothing is run;
            with arguments the derivative is called once, on copies of them, to measure its tape, when the facts are
            first asked for.
        argnums: positions to differentiate with respect to; by default all arguments that hold floats.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        An `irad.Inspection`.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or does not take such arguments.
        BackendError: Numba cannot compile it.

    Examples:
        >>> import irad
        >>> from numba import float64, njit
        >>> @njit
        ... def cube(x):
        ...     return x * x * x
        >>> print(irad.inspect(cube, float64).explain("x"))
        x: a variable of cube
        ...
    """
    kernel = kernel_of(f)
    named = f if kernel is None else kernel.py_func
    return Inspection(collector_of(f, args, chosen(named, argnums, argnames, None), options))


def _stage(name: str) -> Stage:
    try:
        return Stage(name.replace("_", "-"))
    except ValueError:
        raise SignatureError(
            f"{name!r} is not a stage",
            f"name one of {', '.join(Stage)}",
            "a stage is one of the forms that the function takes on its way to machine code",
        ) from None
