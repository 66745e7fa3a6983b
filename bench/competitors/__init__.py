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
    """A tool in one of its settings, and where its formulations are.

    Its module has ``prepare(case, args, setting)``, which returns `Prepared` or, where the case has no natural
    formulation, None; and ``warm_up()``, which loads what the first use of the tool in a process loads.
    """

    name: str
    package: str
    module: str
    setting: str = ""

    @property
    def is_installed(self) -> bool:
        """True if its package can be imported."""
        return importlib.util.find_spec(self.package) is not None

    def prepare(self, case: Case, args: tuple[Any, ...]) -> Prepared | None:
        """Value and gradient of a case at these arguments; None where the tool has no natural formulation."""
        prepared: Prepared | None = importlib.import_module(self.module).prepare(case, args, self.setting)
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
    Tool("torch", "torch", "bench.competitors.with_torch"),
    Tool("torch.compile", "torch", "bench.competitors.with_torch", "compile"),
    Tool("autograd", "autograd", "bench.competitors.with_autograd"),
    Tool("enzyme", "enzyme_ad", "bench.competitors.with_enzyme"),
    Tool("enzyme.shapes", "enzyme_ad", "bench.competitors.with_enzyme", "shapes"),
    Tool("enzyme.fast", "enzyme_ad", "bench.competitors.with_enzyme", "fast"),
    Tool("enzyme.libmvec", "enzyme_ad", "bench.competitors.with_enzyme", "libmvec"),
)
BY_NAME = {tool.name: tool for tool in TOOLS}
