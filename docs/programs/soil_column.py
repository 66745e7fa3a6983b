"""Temperatures in a column of freezing soil, and how badly they fit to measurements: a function of 200 lines.

It is what inverse problems look like: parameters on a logarithmic scale, a grid, a loop over time, iterations that end
when they have converged, branches on the state, a tridiagonal solver, a product with a matrix, a recursive integral.
The pages of `docs/inspector.md` show what irad makes of it.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LAYERS = 4
CELLS = 24
LATENT = 60.0  # MJ per cubic metre of wet soil
WIDTH = 2.0  # kelvins over which water freezes


@njit(error_model="numpy")
def frozen_share(temperature):
    """Share of the water that is ice: 0 above the freezing range, 1 below."""
    if temperature > WIDTH:
        return 0.0
    if temperature < -WIDTH:
        return 1.0
    scaled = 0.5 * (1.0 - temperature / WIDTH)
    return scaled * scaled * (3.0 - 2.0 * scaled)


@njit(error_model="numpy")
def latent_capacity(temperature):
    """Additional heat capacity within the freezing range."""
    if abs(temperature) > WIDTH:
        return 0.0
    scaled = 0.5 * (1.0 - temperature / WIDTH)
    return LATENT * 3.0 * scaled * (1.0 - scaled) / WIDTH


@njit(error_model="numpy")
def harmonic(a, b):
    """Conductivity between two cells."""
    return 2.0 * a * b / (a + b)


@njit(error_model="numpy")
def surface_temperature(air, sun, wind, first_cell, conductance):
    """Temperature at which the fluxes at the surface balance, by Newton's method."""
    exchange = 4.0 + 3.5 * math.sqrt(wind)
    guess = air
    step = 1.0
    rounds = 0
    while abs(step) > 1e-12 and rounds < 30:
        kelvin = guess + 273.15
        emitted = 5.67e-8 * kelvin**4
        balance = sun + exchange * (air - guess) - 0.95 * (emitted - 300.0) + conductance * (first_cell - guess)
        slope = -exchange - 0.95 * 4.0 * emitted / kelvin - conductance
        step = balance / slope
        guess -= step
        rounds += 1
    return guess


@njit(error_model="numpy")
def solve_tridiagonal(lower, diagonal, upper, right, solution):
    """Thomas's algorithm; the diagonal and the right-hand side are overwritten."""
    n = diagonal.size
    for i in range(1, n):
        factor = lower[i] / diagonal[i - 1]
        diagonal[i] -= factor * upper[i - 1]
        right[i] -= factor * right[i - 1]
    solution[n - 1] = right[n - 1] / diagonal[n - 1]
    for i in range(n - 2, -1, -1):
        solution[i] = (right[i] - upper[i] * solution[i + 1]) / diagonal[i]


@njit(error_model="numpy")
def stored_heat(low, high, capacity, levels):
    """Heat between two temperatures: a quadrature that halves the interval where water freezes in it."""
    middle = 0.5 * (low + high)
    is_above = low > WIDTH and high > WIDTH
    is_below = low < -WIDTH and high < -WIDTH
    if levels == 0 or is_above or is_below:
        return (high - low) * (capacity + latent_capacity(middle))
    return stored_heat(low, middle, capacity, levels - 1) + stored_heat(middle, high, capacity, levels - 1)


@njit(error_model="numpy")
def layer_properties(parameters):
    """Conductivity, heat capacity and water content of each layer."""
    water = np.empty(LAYERS)
    for layer in range(LAYERS):
        water[layer] = 1.0 / (1.0 + math.exp(-parameters[2 * LAYERS + layer]))
    return np.exp(parameters[:LAYERS]), 1e6 * np.exp(parameters[LAYERS : 2 * LAYERS]), water


@njit(error_model="numpy")
def grid(n):
    """Thickness of each cell, which grows with depth, and its layer."""
    thickness = np.empty(n)
    layer_of = np.empty(n, np.int64)
    size = 0.03
    for cell in range(n):
        thickness[cell] = size
        layer_of[cell] = min(cell * LAYERS // n, LAYERS - 1)
        size *= 1.12
    return thickness, layer_of


@njit(error_model="numpy")
def linear_profile(top, bottom, thickness):
    """Temperatures that are linear in depth."""
    temperature = np.empty(thickness.size)
    depth = 0.0
    total_depth = np.sum(thickness)
    for cell in range(thickness.size):
        depth += 0.5 * thickness[cell]
        temperature[cell] = top + (bottom - top) * depth / total_depth
        depth += 0.5 * thickness[cell]
    return temperature


@njit(error_model="numpy")
def conduct(k, thickness, lower, diagonal, upper):
    """Adds the flow between cells to the matrix of the system."""
    n = k.size
    for cell in range(n - 1):
        distance = 0.5 * (thickness[cell] + thickness[cell + 1])
        flow = harmonic(k[cell], k[cell + 1]) / distance
        upper[cell] = -flow
        lower[cell + 1] = -flow
        diagonal[cell] += flow
        diagonal[cell + 1] += flow


@njit(error_model="numpy")
def time_step(temperature, weather, bottom, properties, cells, dt):
    """Temperatures at the end of a step; properties depend on them: iterates until they no longer change."""
    conductivity, capacity, water = properties
    thickness, layer_of = cells
    n = temperature.size
    air, sun, wind = weather
    if sun > 0.0:
        albedo = 0.7 if air < -2.0 else 0.2
        sun *= 1.0 - albedo
    lower, diagonal, upper, right = np.zeros(n), np.empty(n), np.zeros(n), np.empty(n)
    solution, k, guess = np.empty(n), np.empty(n), temperature.copy()
    change = 1.0
    rounds = 0
    while change > 1e-9 and rounds < 60:
        for cell in range(n):
            layer = layer_of[cell]
            wet = conductivity[layer] * (1.0 + water[layer])
            k[cell] = wet * math.exp(frozen_share(guess[cell]) * water[layer] * math.log(2.2 / 0.57))
            latent = 1e6 * water[layer] * latent_capacity(guess[cell])
            diagonal[cell] = (capacity[layer] + latent) * thickness[cell] / dt
            right[cell] = diagonal[cell] * temperature[cell]
        conduct(k, thickness, lower, diagonal, upper)
        top = k[0] / (0.5 * thickness[0])
        diagonal[0] += top
        right[0] += top * surface_temperature(air, sun, wind, guess[0], top)
        below = k[n - 1] / (0.5 * thickness[n - 1])
        diagonal[n - 1] += below
        right[n - 1] += below * bottom
        solve_tridiagonal(lower, diagonal, upper, right, solution)

        change = 0.0
        for cell in range(n):
            change = max(change, abs(solution[cell] - guess[cell]))
            guess[cell] = solution[cell]
        rounds += 1
    return guess


@njit(error_model="numpy")
def compare(seen, measured, precision):
    """Misfit to what the sensors have shown; one that has not worked adds nothing."""
    residual = np.empty(seen.size)
    for i in range(seen.size):
        residual[i] = 0.0 if math.isnan(measured[i]) else seen[i] - measured[i]
    return 0.5 * np.dot(residual, np.dot(precision, residual))


@njit(error_model="numpy")
def misfit(parameters, weather, sensors, measured, precision, dt):
    """Misfit of the column's temperatures to those measured, with a penalty on rough profiles.

    Args:
        parameters: logarithms of the conductivity and of the heat capacity of each layer, then the water content of
            each layer before a logistic function, then the temperature at the bottom.
        weather: for each step the temperature of the air, the sunshine (W/m²) and the wind (m/s).
        sensors: rows of weights with which a sensor sees the cells.
        measured: for each step what the sensors have shown; NaN where they have not worked.
        precision: inverse covariance of the sensors.
        dt: seconds of a step.
    """
    steps = weather.shape[0]
    n = sensors.shape[1]
    properties, cells = layer_properties(parameters), grid(n)
    capacity = properties[1]
    thickness, layer_of = cells
    bottom = parameters[3 * LAYERS]
    temperature = linear_profile(weather[0, 0], bottom, thickness)
    loss = 0.0
    roughness = 0.0
    released = 0.0
    for step in range(steps):
        forcing = weather[step, 0], weather[step, 1], weather[step, 2]
        reached = time_step(temperature, forcing, bottom, properties, cells, dt)
        for cell in range(n):
            if reached[cell] != temperature[cell]:
                heat = stored_heat(reached[cell], temperature[cell], 1e-6 * capacity[layer_of[cell]], 3)
                released += thickness[cell] * heat
            temperature[cell] = reached[cell]
        loss += compare(np.dot(sensors, temperature), measured[step], precision)
        for cell in range(1, n):
            gap = temperature[cell] - temperature[cell - 1]
            roughness += gap * gap / (1.0 + gap * gap)
    return loss / steps + 1e-3 * roughness / (steps * n) + 1e-6 * released**2 / steps


def example(steps=48, seed=1):
    """Arguments of a call: two days in autumn, three sensors of which one fails for some hours."""
    rng = np.random.default_rng(seed)
    hours = np.arange(steps)
    sun = np.maximum(0.0, 350.0 * np.sin(2.0 * np.pi * (hours - 6) / 24.0))
    air = -1.0 + 4.0 * np.sin(2.0 * np.pi * (hours - 9) / 24.0) + rng.normal(0.0, 0.3, steps)
    weather = np.column_stack([air, sun, rng.uniform(0.5, 5.0, steps)])
    sensors = np.zeros((3, CELLS))
    for row, cell in enumerate((1, 6, 14)):
        sensors[row, cell - 1 : cell + 2] = 0.25, 0.5, 0.25
    measured = 1.0 + rng.normal(0.0, 0.2, (steps, 3))
    measured[10:16, 1] = np.nan
    logarithms = np.log([0.3, 0.8, 1.2, 1.6, 1.4, 1.8, 2.0, 2.2])
    parameters = np.concatenate([logarithms, [-0.5, 0.0, 0.3, 0.5, 4.0]])
    return parameters, weather, sensors, measured, np.eye(3) * 4.0 + 0.2, 3600.0
