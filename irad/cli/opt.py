"""`irad opt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from irad.cli.output import is_terminal, working
from irad.options import Options

_EXAMPLES = """\b
Examples:
  clang -O2 -g -emit-llvm -c model.c -o model.bc
  irad opt model.bc -o model.o && clang model.o -lm -o model
  irad opt model.ll                       # LLVM text to standard output
  irad opt model.bc -o out.ll --plan save_all
  clang -O2 -S -emit-llvm model.c -o - | irad opt - | clang -x ir - -lm

\b
In the source:
  double __irad_autodiff(void *, ...);
  extern int enzyme_dup, enzyme_const;
  double d = __irad_autodiff((void *)f, x);
  __irad_autodiff((void *)loss, enzyme_dup, w, dw, enzyme_const, data, n);
  double t = __irad_fwddiff((void *)f, x, dx);
  void *__enzyme_inactivefn[] = {(void *)log_it};
  void *__enzyme_register_gradient_f[] = {
      (void *)f, (void *)f_augmented, (void *)f_reverse};

\b
Markers, each before its argument:
  enzyme_const      has no derivative; the default for integers
  enzyme_dup        a pointer, followed by the pointer to its shadow, to which
                    the derivative is added; the default for pointers
  enzyme_dupnoneed  as enzyme_dup; the final contents of the memory are not
                    needed
  enzyme_out        a number whose derivative is returned; the default for
                    float and double

\b
In forward mode (__irad_fwddiff), which returns the tangent of the result:
  enzyme_dup            a number followed by its tangent, or a pointer
                        followed by the pointer to its shadow, which holds
                        tangents; the default
  enzyme_primal_return  before any argument: return the value, followed by its
                        tangent

\b
A derivative written by hand:
  f_augmented takes the arguments of f, with the shadow after each pointer,
  and returns the tape, if there is one, and the result of f. f_reverse
  takes the same arguments, the cotangent of the result if f returns a
  number, and the tape; it adds to the shadows and returns the derivatives
  with respect to the numbers. Mark f noinline, or define it in another
  file.

\b
Environment:
  IRAD_PLAN, IRAD_STRICT, IRAD_VERIFY and IRAD_ERRORS apply; options take
  precedence. IRAD_DEBUG, IRAD_BOUNDSCHECK and IRAD_MAX_TAPE_BYTES have no
  effect, because their reports need Python when the derivative runs.

\b
Exit status:
  0  every call for a derivative was replaced
  1  the file cannot be read, has no such call, or a function cannot be
     differentiated
  2  the command line is invalid
"""
_FORMS = {"ll": "ll", "bc": "bc", "asm": "s", "obj": "o"}


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file; by default to standard output.",
)
@click.option(
    "--emit", type=click.Choice(list(_FORMS)), help="Form of the output; by default that of its suffix, or LLVM text."
)
@click.option(
    "--plan", type=click.Choice(["default", "save_all"]), help="Save a minimum of values, or all that are needed."
)
@click.option("--strict", is_flag=True, help="Keep the order of all sums of the adjoint.")
@click.option(
    "-O",
    "level",
    type=click.IntRange(0, 3),
    default=3,
    show_default=True,
    help="Level of optimisation of the derivatives.",
)
@click.option("-v", "--verbose", is_flag=True, help="Report which calls were replaced.")
def opt(
    file: Path, output: Path | None, emit: str | None, plan: str | None, strict: bool, level: int, verbose: bool
) -> None:
    """Differentiate LLVM IR of any front end, as text (.ll) or bitcode (.bc), from a file or (-) standard input.

    Calls of functions whose name contains __irad_autodiff (reverse mode) or __irad_fwddiff (forward mode), or the same
    with __enzyme_, are replaced by derivatives. The result needs neither Python nor Numba. Other code stays as it is.
    """
    suffix = _FORMS[emit] if emit is not None else output.suffix[1:] if output is not None else "ll"
    if suffix not in _FORMS.values():
        raise click.UsageError(
            f"'.{suffix}' is not a form of output: choose one with --emit", click.get_current_context()
        )
    if output is None and suffix in ("bc", "o") and is_terminal():
        raise click.UsageError("this form is not for a terminal: give a file with -o", click.get_current_context())
    from irad.frontend.numba.library import CPU  # these load LLVM and Numba
    from irad.raw.differentiate import differentiate
    from irad.raw.files import Form, encode, read_module

    environment = Options.from_environment()
    options = Options(
        plan="save_all" if (plan or environment.plan) == "save_all" else "default",
        strict=strict or environment.strict,
        verify=environment.verify,
        zero_times_infinity=environment.zero_times_infinity,
    )
    without_effect = {
        "IRAD_DEBUG": environment.debug,
        "IRAD_BOUNDSCHECK": environment.boundscheck,
        "IRAD_MAX_TAPE_BYTES": environment.max_tape_bytes is not None,
    }
    for name in (name for name, is_set in without_effect.items() if is_set):
        click.echo(f"{name} has no effect here: what it reports needs Python when the derivative runs", err=True)
    with working("differentiating …"):
        done = differentiate(read_module(file), CPU, options, level)
        content = encode(done.module, Form(suffix))
    if verbose:
        for call in done.calls:
            click.echo(f"replaced: derivative of {call}", err=True)
    _write(content, output)


def _write(content: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise click.FileError(str(output), str(error.strerror)) from None
