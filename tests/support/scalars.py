"""Python's numbers: `math`, `cmath`, built-in functions, `operator`."""

from __future__ import annotations

from tests.support.entries import Group, compiled, constant, fails, yes

MATH = Group(
    "Python: math",
    (
        yes("math.acos math.asin math.atan", "math.acos(u) * math.asin(u) * math.atan(u)"),
        yes("math.acosh math.asinh math.atanh", "math.acosh(1 + u) * math.asinh(u) * math.atanh(u)"),
        yes("math.atan2", "math.atan2(u, v)"),
        constant("math.ceil math.floor math.trunc", "math.ceil(u) + 2 * math.floor(v) + 3 * math.trunc(v)"),
        yes("math.copysign", "math.copysign(u, -v)"),
        yes("math.cos math.sin math.tan", "math.cos(u) * math.sin(u) * math.tan(u)"),
        yes("math.cosh math.sinh math.tanh", "math.cosh(u) * math.sinh(u) * math.tanh(u)"),
        yes("math.degrees math.radians", "math.degrees(u) * math.radians(v)"),
        yes("math.erf math.erfc", "math.erf(u) * math.erfc(v)"),
        yes("math.exp math.exp2 math.expm1", "math.exp(u) * math.exp2(u) * math.expm1(u)"),
        yes("math.fabs", "math.fabs(u - v)"),
        yes("math.frexp", "math.frexp(u)[0]", "the mantissa; the exponent is constant"),
        yes("math.gamma math.lgamma", "math.gamma(v) * math.lgamma(u)"),
        constant("math.gcd", "math.gcd(n, 6)"),
        yes("math.hypot", "math.hypot(u, v)"),
        constant("math.isfinite math.isinf math.isnan", "math.isfinite(u) + 2 * math.isinf(u) + 3 * math.isnan(u)"),
        yes("math.ldexp", "math.ldexp(u, n)"),
        yes("math.log math.log2 math.log10 math.log1p", "math.log(u) * math.log2(u) * math.log10(u) * math.log1p(u)"),
        yes("math.nextafter", "math.nextafter(u, v)"),
        yes("math.pow", "math.pow(u, v)"),
        yes("math.sqrt", "math.sqrt(u)"),
    ),
)

CMATH = Group(
    "Python: cmath",
    (
        yes("cmath.acos cmath.asin cmath.atan", "z = complex(u, v); cmath.acos(z) * cmath.asin(z) * cmath.atan(z)"),
        yes("cmath.acosh cmath.asinh cmath.atanh", "z = complex(u, v); cmath.acosh(z) * cmath.asinh(z) * cmath.atanh(z)"),
        yes("cmath.cos cmath.sin cmath.tan", "z = complex(u, v); cmath.cos(z) * cmath.sin(z) * cmath.tan(z)"),
        yes("cmath.cosh cmath.sinh cmath.tanh", "z = complex(u, v); cmath.cosh(z) * cmath.sinh(z) * cmath.tanh(z)"),
        yes("cmath.exp cmath.log cmath.log10 cmath.sqrt", "z = complex(u, v); cmath.exp(z) * cmath.log(z) * cmath.log10(z) * cmath.sqrt(z)"),
        yes("cmath.phase cmath.polar cmath.rect", "z = complex(u, v); cmath.phase(z) * cmath.polar(z)[0] * cmath.rect(u, v)"),
        constant("cmath.isfinite cmath.isinf cmath.isnan", "z = complex(u, v); cmath.isfinite(z) + 2 * cmath.isinf(z) + 3 * cmath.isnan(z)"),
    ),
)  # fmt: skip

BUILTINS = Group(
    "Python: built-in functions and types",
    (
        yes("abs", "abs(u - v) * abs(complex(u, v))"),
        constant("bool", "bool(u)"),
        constant("bytes", "z = b'gradient'; len(z) + z[1]"),
        constant("chr ord", "ord(chr(100)) + ord('b')"),
        yes("complex", "complex(u, v) ** 2"),
        yes("dict", "z = {1: x[0], 2: u}; z[2] * z[1]", "see typed.Dict"),
        yes("divmod", "divmod(u, 0.3)[1]"),
        yes("enumerate", "s = 0.0;for i, a in enumerate(x): s += i * a * a;s"),
        compiled(yes("filter", "s = 0.0;for a in filter(lambda a: a > 0.8, x): s += a * a;s")),
        yes("float", "float(n) * float(u)"),
        constant("getattr hasattr", "getattr(x, 'size') + 2 * hasattr(x, 'nothing')"),
        constant("hash", "hash(n) + hash(u) - hash(u)"),
        constant("int", "int(3.0 * v)"),
        constant("isinstance", "isinstance(u, float)"),
        yes("iter next", "z = iter(x); next(z) * next(z)"),
        constant("len", "len(x)"),
        yes("list", "z = list(x); z[0] * z[1]"),
        compiled(yes("map", "s = 0.0;for a in map(lambda a: a * a, x): s += a;s")),
        yes("max min", "max(u, v, 1.0) * min(u, v) * max(x) * min(x)"),
        yes("pow", "pow(u, v) * u ** n"),
        constant("print", "print(n); n", "constant and active values are printed once"),
        yes("range", "s = 0.0;for i in range(1, 9, 2): s += u ** i;s"),
        constant("range.start range.stop range.step", "z = range(1, n); z.start + 2 * z.stop + 3 * z.step"),
        constant("repr str", "len(str(n)) + len(repr(n))"),
        yes("round", "round(u * 10.0) * u", "the result is constant"),
        yes("set", "z = set([u, v, u * v]); s = 0.0;for a in z: s += a * a;s"),
        compiled(constant("slice slice.start slice.stop slice.step slice.indices", "z = slice(1, n, 1); z.start + 2 * z.stop + 3 * z.step + z.indices(2)[1]")),
        yes("sorted", "sorted(x)[1]"),
        yes("sum", "sum([u, v, u * v])"),
        yes("tuple", "z = (u, v, u * v); z[0] * z[2] + len(z)"),
        constant("tuple.index", "z = (1, 2, 3); z.index(2)"),
        compiled(yes("type", "z = type(u)(n); z * u")),
        yes("zip", "s = 0.0;for a, b in zip(x, y): s += a * b;s"),
        yes("number.real number.imag number.conjugate", "z = complex(u, v); z.real * z.imag + z.conjugate() * u.real"),
        compiled(yes("number.item number.view", "np.float64(u).item() * v", "view: constants only")),
        fails("functools.reduce", "functools.reduce(lambda a, b: a * b, x, 1.0)"),
        yes("heapq.heapify heapq.heappop heapq.heappush heapq.heappushpop heapq.heapreplace",
            "z = [x[0], x[1], x[2]]; heapq.heapify(z); heapq.heappush(z, u);"
            "heapq.heappop(z) + 2.0 * heapq.heappushpop(z, v) + 3.0 * heapq.heapreplace(z, v * 2)"),
        yes("heapq.nlargest heapq.nsmallest", "heapq.nlargest(2, x)[1] * heapq.nsmallest(2, x)[1]"),
        constant("enum.value", "Shade.DARK.value + 2 * (Shade.DARK == Shade.LIGHT)"),
    ),
)  # fmt: skip

OPERATORS = Group(
    "Python: operators and module operator",
    (
        yes("operator.add operator.sub operator.mul operator.truediv", "operator.add(u, v) * operator.sub(u, v) * operator.mul(u, u) * operator.truediv(u, v)"),
        yes("operator.iadd operator.isub operator.imul operator.itruediv", "z = x.copy(); z += y; z -= u; z *= y; z /= v; z"),
        yes("operator.pow operator.ipow", "operator.pow(u, v) * operator.ipow(u, n)"),
        yes("operator.mod operator.imod", "operator.mod(v, u) * operator.imod(v, 0.4)"),
        constant("operator.floordiv operator.ifloordiv", "operator.floordiv(v, 0.4) + operator.ifloordiv(v, 0.3)"),
        yes("operator.neg operator.pos", "operator.neg(u) * operator.pos(v)"),
        yes("operator.matmul", "operator.matmul(A, B) @ B"),
        yes("operator.getitem operator.setitem", "z = x.copy(); operator.setitem(z, 1, u); operator.getitem(z, 1) * z"),
        yes("operator.delitem", "z = [u, v, u * v]; del z[0]; z[0] * z[1]"),
        constant("operator.contains", "operator.contains((1, 2), n)"),
        constant("operator.eq operator.ne operator.lt operator.le operator.gt operator.ge",
                 "(u == v) + 2 * (u != v) + 4 * (u < v) + 8 * (u <= v) + 16 * (u > v) + 32 * (u >= v)"),
        constant("operator.is_ operator.is_not", "(u is None) + 2 * (u is not None)"),
        constant("operator.not_ operator.truth", "(not u) + operator.truth(m[0])"),
        constant("operator.and_ operator.or_ operator.xor operator.invert", "(n & 3) + 2 * (n | 1) + 3 * (n ^ 7) + (~n)"),
        constant("operator.iand operator.ior operator.ixor", "z = n; z &= 3; z |= 8; z ^= 1; z"),
        constant("operator.lshift operator.rshift operator.ilshift operator.irshift", "z = n; z <<= 3; z >>= 1; (n << 2) + (n >> 1) + z"),
    ),
)  # fmt: skip

GROUPS = (MATH, CMATH, BUILTINS, OPERATORS)
