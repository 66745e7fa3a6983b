"""Other tools that differentiate, and their formulations of the cases: a module for each tool. See README.md."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bench.case import Case

Found: TypeAlias = tuple[float, tuple[Any, ...]]  # a value and its gradients, in NumPy's arrays


@dataclass(frozen=True)
class Prepared:
    """A value and gradient that can be called.

    Attributes:
        run: computes them and waits until they are there.
        read: takes what ``run`` returned to NumPy.
    """

    run: Callable[[], Any]
    read: Callable[[Any], Found]


@dataclass(frozen=True)
class Tool:
    """A tool and where its formulations are.

    Its module has ``prepare(case, args, compiled)``, which returns `Prepared` or, where the case has no natural
    formulation, None; and ``warm_up()``, which loads what the first use of the tool in a process loads.
    """

    name: str
    package: str
    module: str
    compiled: bool = True

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None

    def prepare(self, case: Case, args: tuple[Any, ...]) -> Prepared | None:
        """Value and gradient of a case at these arguments; None where the tool has no natural formulation."""
        prepared: Prepared | None = importlib.import_module(self.module).prepare(case, args, self.compiled)
        return prepared

    def warm_up(self) -> None:
        """Loads the tool, so that its start does not count as compile time."""
        importlib.import_module(self.module).warm_up()


def formulation(module: dict[str, Any], case: Case) -> Callable[..., Any] | None:
    """The loss of a case in a tool's module, the function of its name; None where there is none."""
    found: Callable[..., Any] | None = module.get(case.name.replace("-", "_"))
    return found


TOOLS = (
    Tool("jax", "jax", "bench.competitors.with_jax"),
    Tool("torch", "torch", "bench.competitors.with_torch", compiled=False),
    Tool("torch.compile", "torch", "bench.competitors.with_torch"),
    Tool("autograd", "autograd", "bench.competitors.with_autograd", compiled=False),
    Tool("enzyme", "enzyme_ad", "bench.competitors.with_enzyme"),
)
BY_NAME = {tool.name: tool for tool in TOOLS}
