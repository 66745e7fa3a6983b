"""`shadow_like`: a shadow for any array, views included."""

from __future__ import annotations

from typing import Any

import numpy as np

from irad.errors import HERE, SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.offered import refuse_in_compiled_code
from irad.message import with_article


@public
def shadow_like(array: Any) -> Any:
    """A zeroed array that lies in memory of its own as ``array`` does in its: a shadow for ``irad.Duplicated``.

    ``np.zeros_like`` gives contiguous arrays. A shadow has the strides of its primal, so that of a view (sliced,
    reversed, transposed, broadcast, a sliding window) has to skip what the view skips, and repeat what it repeats.

    Args:
        array: a NumPy array of any dtype and strides.

    Returns:
        An array of the same shape, dtype and strides, which can be written to. Its memory takes as many bytes as lie
        between the first and the last byte of ``array``.

    Raises:
        SignatureError: it is not a NumPy array.

    Arrays that share memory and are written to need shadows that share memory alike: make one of the array that they
    are views of, and take the same views of it.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> view = np.arange(6.0)[::-2]
        >>> irad.shadow_like(view).strides == view.strides
        True
    """
    if not isinstance(array, np.ndarray):
        raise SignatureError(
            f"irad.shadow_like takes a NumPy array, not {with_article(type(array).__name__)}",
            "pass a NumPy array; the derivative with respect to a number is returned: irad.Active(x)",
            "a shadow is memory that holds the derivative with respect to other memory",
            HERE,
        )
    if array.size == 0 or array.flags.c_contiguous or array.flags.f_contiguous:
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        return np.zeros(array.shape, array.dtype, order)
    reaches = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    before = -sum(reach for reach in reaches if reach < 0)
    behind = sum(reach for reach in reaches if reach > 0) + array.itemsize
    memory = np.zeros(before + behind, np.uint8)
    return np.ndarray(array.shape, array.dtype, memory, before, array.strides)


refuse_in_compiled_code(
    shadow_like,
    "(a) np.zeros_like(x), where x is contiguous or (b) create the shadow in Python and pass it as an argument",
)
