"""Methods, attributes and indexing of arrays."""

from __future__ import annotations

from tests.support.entries import Group, compiled, constant, fails, yes

METHODS = Group(
    "NumPy: methods of arrays",
    (
        constant("array.all", "(x > 0.8).all()"),
        constant("array.any", "(x > 0.8).any()"),
        fails("array.allclose", "x.allclose(y)"),
        constant("array.argmax", "x.argmax()"),
        constant("array.argmin", "x.argmin()"),
        yes("array.argsort", "x[x.argsort()] * y", "indices are constant"),
        yes("array.astype", "x.astype(np.float32) * y", "rounding has derivative 1", reference="x * y", rtol=1e-6),
        yes("array.clip", "x.clip(0.8, u + 0.5)"),
        yes("array.conj array.conjugate", "(x + 1j * y).conj() * (x + 1j * y).conjugate()"),
        yes("array.copy", "z = x.copy(); z[0] = u; z"),
        yes("array.cumprod", "x.cumprod()"),
        yes("array.cumsum", "x.cumsum()"),
        yes("array.dot", "A.dot(B)"),
        yes("array.fill", "z = x.copy(); z[1:].fill(u); z"),
        yes("array.flatten", "A.flatten()"),
        yes("array.item", "x[:1].item() * u"),
        yes("array.max", "x.max()"),
        yes("array.mean", "x.mean()"),
        yes("array.min", "x.min()"),
        constant("array.nonzero", "(x > 0.8).nonzero()[0]"),
        yes("array.prod", "x.prod()"),
        yes("array.ravel", "A.ravel()"),
        yes("array.repeat", "x.repeat(2)"),
        yes("array.reshape", "A.reshape(9)"),
        yes("array.sort", "z = x * y; z.sort(); z"),
        yes("array.std", "x.std()"),
        yes("array.sum", "A.sum(axis=0) * A.sum()"),
        yes("array.take", "x.take(k)"),
        constant("array.tobytes", "x.tobytes()[7]", "constant data only"),
        yes("array.transpose", "A.transpose() * B"),
        yes("array.var", "x.var()"),
        yes("array.view", "x.view(np.int64).view(np.float64) * y", "bits that come back as numbers keep their derivative"),
    ),
)  # fmt: skip

ATTRIBUTES = Group(
    "NumPy: attributes of arrays",
    (
        yes("array.T", "A.T * B"),
        yes("array.flat", "s = 0.0;for a in A.flat: s += a * a;s"),
        yes("array.real array.imag", "(x * (u + 1j * y)).real + (x * (v + 1j * x)).imag"),
        constant("array.dtype", "z = np.zeros(2, x.dtype); z"),
        compiled(constant("flags.contiguous flags.c_contiguous flags.f_contiguous array.flags", "A.flags.contiguous + 2 * A.T.flags.c_contiguous + 4 * A.T.flags.f_contiguous")),
        constant("array.itemsize array.nbytes array.ndim array.size", "A.itemsize + 2 * A.nbytes + 3 * A.ndim + 5 * A.size"),
        constant("array.shape array.strides", "A.shape[0] + 2 * A.strides[1]"),
        constant("array.ctypes ctypes.data", "A.ctypes.data - A.ctypes.data"),
        compiled(constant("dtype.kind dtype.type", "x.dtype.type(1.5)")),
    ),
)  # fmt: skip

INDEXING = Group(
    "NumPy: indexing",
    (
        yes("x[i]", "x[n] * x[-1]"),
        yes("x[i,j]", "A[n, 0] * A[0, n]"),
        yes("x[a:b:c]", "x[::-2] * u"),
        yes("x[None]", "x[None, :] * x[:, None]"),
        yes("x[...]", "A[..., 1] * A[1, ...]"),
        yes("x[integers]", "x[k] * x[k[::-1]]", "repeated indices add up"),
        yes("x[integers,integers]", "A[k % 3, k // 2]"),
        yes("x[mask]", "x[m] * u"),
        yes("x[i]=v", "z = np.zeros(5); z[n] = u; z[0] += z[n] * v; z"),
        yes("x[a:b]=y", "z = x.copy(); z[1:] = y[:-1]; z[1:] *= x[:-1]; z"),
        yes("x[integers]=y", "z = x.copy(); z[np.array([3, 0])] = y[:2]; z"),
        yes("x[mask]=v", "z = x.copy(); z[m] = u; z"),
    ),
)

GROUPS = (METHODS, ATTRIBUTES, INDEXING)
