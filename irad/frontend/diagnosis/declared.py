"""Arguments that no explicit signature of a function takes."""

from __future__ import annotations

from numba.core.types import Type

from irad.frontend.numba.messages import Explanation, readable


def no_signature(declared: list[tuple[Type, ...]], given: tuple[Type, ...]) -> Explanation:
    """Why a function that was declared with signatures cannot be compiled for other types.

    Args:
        declared: the arguments of each signature, as Numba types.
        given: those of the call.
    """
    known = " or ".join(map(_listed, declared))
    return Explanation(
        f"it is declared for arguments ({known}), not ({_listed(given)})",
        "a function with explicit signatures is compiled only for those",
        f"(a) pass arguments of the declared types: {known} or (b) leave the signature out of the decorator, or add "
        "one for these types",
        None,
        (),
    )


def _listed(kinds: tuple[Type, ...]) -> str:
    return ", ".join(readable(str(kind)) for kind in kinds)
