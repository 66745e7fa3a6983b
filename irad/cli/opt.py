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
  clang -O2 -S -emit-llvm model.c -o - | irad opt - | clang -x ir - -lm -o model

\b
In the source:
  double __irad_autodiff(void *, ...);
  extern int enzyme_dup, enzyme_const;
  double d = __irad_autodiff((void *)f, x);
  __irad_autodiff((void *)loss, enzyme_dup, w, dw, enzyme_const, data, n);
  double t = __irad_fwddiff((void *)f, x, dx);
  void *__enzyme_inactivefn[] = {(void *)log_it};
  void *__enzyme_register_gradient_f[] = {(void *)f, (void *)f_augmented, (void *)f_reverse};

\b
Markers, before the argument that they are about:
  enzyme_const      has no derivative; the default for integers
  enzyme_dup        a pointer, followed by the pointer to its shadow, to which the derivative is added; the default
  enzyme_dupnoneed  as enzyme_dup, and what is left in the memory itself is not needed
  enzyme_out        a number whose derivative is returned; the default for float and double

\b
In forward mode (__irad_fwddiff), where the tangent of the result is returned:
  enzyme_dup            a number followed by its tangent, or a pointer followed by the pointer to its shadow, which
                        holds tangents; the default
  enzyme_primal_return  before any argument: return the value, followed by its tangent

\b
A hand-written derivative:
  f_augmented takes what f takes, with the shadow after each pointer, and returns the tape, if there is one, and
  what f returns; f_reverse takes the same, the cotangent of the result if f returns a number, and the tape, adds to
  the shadows and returns the derivatives with respect to the numbers. Mark f noinline, or define it in another file.

\b
Environment:
  IRAD_PLAN, IRAD_STRICT, IRAD_VERIFY and IRAD_ERRORS count, options before them; IRAD_DEBUG, IRAD_BOUNDSCHECK and
  IRAD_MAX_TAPE_BYTES have no effect, because what they report needs Python when the derivative runs

\b
Status:
  0  every call for a derivative was replaced
  1  the file cannot be read, asks for none, or a function cannot be differentiated
  2  the command line is wrong
"""
_FORMS = {"ll": "ll", "bc": "bc", "asm": "s", "obj": "o"}


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Output file; standard output by default."
)
@click.option(
    "--emit",
    type=click.Choice(list(_FORMS)),
    help="Form of the output; by default that of its suffix, otherwise LLVM text.",
)
@click.option("--plan", type=click.Choice(["default", "save_all"]), help="Plan for the saved values.")
@click.option("--strict", is_flag=True, help="Keep the order of all sums of the adjoint.")
@click.option("-O", "level", type=click.IntRange(0, 3), default=3, show_default=True, help="Optimise the derivatives.")
@click.option("-v", "--verbose", is_flag=True, help="List the replaced calls.")
def opt(
    file: Path, output: Path | None, emit: str | None, plan: str | None, strict: bool, level: int, verbose: bool
) -> None:
    """Differentiate LLVM IR of any front end: text (.ll) or bitcode (.bc), from a file or, as -, from standard input.

    Calls of functions whose name holds __irad_autodiff (reverse mode) or __irad_fwddiff (forward mode), or __enzyme_…
    of both, are replaced by derivatives; the result needs neither Python nor Numba. What is not differentiated stays
    as it is.
    """
    suffix = _FORMS[emit] if emit is not None else output.suffix[1:] if output is not None else "ll"
    if suffix not in _FORMS.values():
        raise click.UsageError(
            f"'.{suffix}' is not a form of output: choose one with --emit", click.get_current_context()
        )
    if output is None and suffix in ("bc", "o") and is_terminal():
        raise click.UsageError(
            "this form cannot be written to a terminal: pass a file with -o", click.get_current_context()
        )
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
