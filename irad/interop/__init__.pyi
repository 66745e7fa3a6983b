"""The bridges of irad. This is what `irad.lazy` reads, so each name is written once."""

from irad.interop import dask as dask, ipopt as ipopt, jax as jax, pytensor as pytensor, scipy as scipy, torch as torch

__all__: list[str]
