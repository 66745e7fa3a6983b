"""Hydrological models: fluxes with optional states, root finders and time steps that are handed functions."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Named, Package, of
from tests.tools.catalogue import floats

P = "superflexpy.implementation."
E = P + "elements."
IMPLICIT = Named(P + "numerical_approximators.implicit_euler:ImplicitEulerNumba._differential_equation")
PEGASUS = Named(P + "root_finders.pegasus:PegasusNumba.solve")
LINEAR = Named(E + "hymod:LinearReservoir._fluxes_function_numba")
UPPER = Named(E + "hymod:UpperZone._fluxes_function_numba")
DT = np.full(4, 1.0)


def series(seed: int, low: float = 0.5, high: float = 2.0) -> np.ndarray:
    """A parameter or a forcing at four times."""
    return floats(4, low=low, high=high, seed=seed)


OF_UPPER = (series(0), series(1, 20.0, 30.0), series(2, 0.01, 0.02), series(3), series(4), DT)

PACKAGE = Package(
    "superflexpy",
    "superflexpy>=1.3",
    (
        of(E + "hymod:LinearReservoir._fluxes_function_numba", 1.3, 1.1, 0, series(0), series(1), DT),
        of(E + "hbv:PowerReservoir._fluxes_function_numba", 1.3, 1.1, 0, series(0), series(1), series(2), DT),
        of(
            "superflexpy.utils.numerical_approximator:NumericalApproximator._solve_numba",
            PEGASUS,
            IMPLICIT,
            UPPER,
            1.1,
            DT,
            4,
            OF_UPPER,
            (1e-10, 1e-10, 30),
            argnums=(3, 4, 6),
        ),
        of(E + "gr4j:RoutingStore._flux_function_numba", 1.3, 1.1, 0, *map(series, range(5)), DT),
        of(
            P + "numerical_approximators.explicit_euler:ExplicitEulerNumba._differential_equation",
            UPPER,
            1.3,
            1.1,
            DT,
            0,
            OF_UPPER,
        ),
        of(E + "hymod:UpperZone._fluxes_function_numba", 1.3, 1.1, 0, *OF_UPPER),
        of(
            P + "root_finders.pegasus:PegasusNumba.solve",
            IMPLICIT,
            LINEAR,
            1.1,
            DT,
            0,
            (series(0), series(1), DT),
            1e-10,
            1e-10,
            30,
        ),
        of(E + "gr4j:ProductionStore._flux_function_numba", 1.3, 1.1, 0, *map(series, range(6)), DT),
        of(
            E + "thur_model_hess:SnowReservoir._flux_function_numba",
            1.3,
            1.1,
            0,
            series(0),
            series(1, 3.0, 4.0),
            *map(series, range(2, 5)),
            DT,
        ),
        of(E + "hbv:UnsaturatedReservoir._fluxes_function_numba", 1.3, 1.1, 0, *map(series, range(6)), DT),
    ),
)
