"""Random numbers: NumPy's functions, its `Generator`, Python's module.

The derivative of a draw by its parameters is that of its quantile: see docs/contracts.md.
"""

from __future__ import annotations

from tests.support.entries import Entry, Group, compiled, constant, refused, rejected, yes

_SEED = "np.random.seed(7); "
_PYTHON_SEED = "random.seed(7); "
_NONCENTRAL = "a noncentral chi-square draw"


def _drawn(name: str, arguments: str, note: str = "") -> Entry:
    return compiled(yes(f"np.random.{name}", f"{_SEED}np.random.{name}({arguments})", note))


def _counted(names: str, arguments: str) -> Entry:
    name = names.split()[0]
    use = f"{_SEED}np.random.{name}({arguments})"
    return compiled(constant(" ".join(f"np.random.{n}" for n in names.split()), use))


def _python(name: str, arguments: str, note: str = "") -> Entry:
    return compiled(yes(f"random.{name}", f"{_PYTHON_SEED}random.{name}({arguments})", note))


def _generated(name: str, arguments: str) -> Entry:
    return yes(f"Generator.{name}", f"g.{name}({arguments})")


LEGACY = Group(
    "NumPy: np.random",
    (
        rejected(_drawn("beta", "u, v")),
        _counted("binomial", "10, u"),
        rejected(_drawn("chisquare", "v")),
        _drawn("choice", "x"),
        rejected(_drawn("dirichlet", "x")),
        _drawn("exponential", "u"),
        rejected(_drawn("f", "u, v")),
        rejected(_drawn("gamma", "u, v")),
        _counted("geometric", "u"),
        _drawn("gumbel", "u, v"),
        _counted("hypergeometric", "5, 4, 3"),
        _drawn("laplace", "u, v"),
        _drawn("logistic", "u, v"),
        _drawn("lognormal", "u, v"),
        _counted("logseries", "u"),
        _counted("multinomial", "10, x / x.sum()"),
        _counted("negative_binomial", "10, u"),
        refused("np.random.noncentral_chisquare", f"{_SEED}np.random.noncentral_chisquare(v, u)", _NONCENTRAL),
        _drawn("normal", "u, v"),
        _drawn("pareto", "v"),
        _drawn("permutation", "x"),
        _counted("poisson", "v"),
        _drawn("power", "v"),
        _counted("rand", "2"),
        _counted("randint", "1, 9"),
        _counted("randn", "2"),
        _counted("random", "3"),
        _counted("random_sample ranf sample", "3"),
        _drawn("rayleigh", "v"),
        compiled(yes("np.random.seed np.random.shuffle", f"{_SEED}z = x.copy(); np.random.shuffle(z); z")),
        _counted("standard_cauchy", ""),
        _counted("standard_exponential", "3"),
        rejected(_drawn("standard_gamma", "v")),
        _counted("standard_normal", "3"),
        rejected(_drawn("standard_t", "v")),
        _drawn("triangular", "u, u + 0.3 * v, u + v"),
        _drawn("uniform", "u, v"),
        _drawn("vonmises", "u, 1.3", "with respect to the mean direction"),
        rejected(_drawn("wald", "u, v")),
        _drawn("weibull", "v"),
        _counted("zipf", "3.0 + u"),
    ),
)

GENERATOR = Group(
    "NumPy: methods of np.random.Generator",
    (
        rejected(_generated("beta", "u, v")),
        constant("Generator.binomial", "g.binomial(10, u)"),
        rejected(_generated("chisquare", "v")),
        _generated("exponential", "u"),
        rejected(_generated("f", "u, v")),
        rejected(_generated("gamma", "v, u")),
        constant("Generator.geometric", "g.geometric(u)"),
        constant("Generator.integers", "g.integers(1, 9)"),
        _generated("laplace", "u, v"),
        _generated("logistic", "u, v"),
        _generated("lognormal", "u, v"),
        constant("Generator.logseries", "g.logseries(u)"),
        constant("Generator.negative_binomial", "g.negative_binomial(10, u)"),
        refused("Generator.noncentral_chisquare", "g.noncentral_chisquare(v, u)", _NONCENTRAL),
        refused("Generator.noncentral_f", "g.noncentral_f(u, v, u)", _NONCENTRAL),
        _generated("normal", "u, v"),
        _generated("pareto", "v"),
        _generated("permutation", "x"),
        constant("Generator.poisson", "g.poisson(v)"),
        _generated("power", "v"),
        constant("Generator.random", "g.random(3)"),
        _generated("rayleigh", "v"),
        yes("Generator.shuffle", "z = x.copy(); g.shuffle(z); z"),
        constant("Generator.standard_cauchy", "g.standard_cauchy()"),
        constant("Generator.standard_exponential", "g.standard_exponential(3)"),
        rejected(_generated("standard_gamma", "v")),
        constant("Generator.standard_normal", "g.standard_normal(3)"),
        rejected(_generated("standard_t", "v")),
        _generated("triangular", "u, u + 0.3 * v, u + v"),
        _generated("uniform", "u, v"),
        rejected(_generated("wald", "u, v")),
        _generated("weibull", "v"),
        constant("Generator.zipf", "g.zipf(3.0 + u)"),
    ),
)

PYTHON = Group(
    "Python: random",
    (
        rejected(_python("betavariate", "u, v")),
        _python("expovariate", "v"),
        rejected(_python("gammavariate", "v, u")),
        _python("gauss", "u, v"),
        compiled(constant("random.getrandbits", f"{_PYTHON_SEED}random.getrandbits(9)")),
        _python("lognormvariate", "u, v"),
        _python("normalvariate", "u, v"),
        _python("paretovariate", "v"),
        compiled(constant("random.randint", f"{_PYTHON_SEED}random.randint(1, 9)")),
        compiled(constant("random.random", f"{_PYTHON_SEED}random.random()")),
        compiled(constant("random.randrange", f"{_PYTHON_SEED}random.randrange(1, 9)")),
        compiled(yes("random.seed random.shuffle", f"{_PYTHON_SEED}z = x.copy(); random.shuffle(z); z")),
        _python("triangular", "u, u + v, u + 0.3 * v"),
        _python("uniform", "u, v"),
        _python("vonmisesvariate", "u, 1.3", "with respect to the mean direction"),
        _python("weibullvariate", "u, v"),
    ),
)

GROUPS = (LEGACY, GENERATOR, PYTHON)
