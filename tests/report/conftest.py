"""A report made by hand, of a program that nobody compiled: what it shows is known exactly. A browser to look at it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irad.errors import SourceLocation
from irad.report.model import (
    FunctionReport,
    LineFacts,
    Report,
    Stage,
    StageText,
    Storage,
    TapeEntry,
    TextLine,
    ValueFacts,
)

FILE = "/home/someone/model.py"
SOURCE = {
    10: "@njit",
    11: "def energy(x, scale):",
    12: '    """Sum of x·exp(x).',
    13: '    for every x."""',
    14: "    total = 0.0",
    15: "    for i in range(x.size):",
    16: "        total += np.exp(x[i]) * x[i]  # <b>not markup</b> & </script>",
    17: "    return scale * total",
}


def at(line: int, function: str = "energy") -> SourceLocation:
    return SourceLocation(FILE, line, function)


def line_facts(shares: dict[int, float]) -> tuple[LineFacts, ...]:
    known = {
        14: (("total",), (), 0, 0, ()),
        15: ((), ("i",), 0, 0, ()),
        16: (("total", "x"), ("i",), 8, 24, ("exp",)),
        17: (("scale", "total"), (), 16, 0, ()),
    }
    made = []
    for line, text in SOURCE.items():
        active, constant, per_call, per_iteration, rules = known.get(line, ((), (), 0, 0, ()))
        made.append(
            LineFacts(line, text, active, constant, per_call, per_iteration, rules, share_of_time=shares.get(line))
        )
    return tuple(made)


def stage(name: Stage, language: str, *lines: tuple[str, int | None, str | None, bool]) -> tuple[Stage, StageText]:
    return name, StageText(name, language, tuple(TextLine(*line) for line in lines))


def filler(text: str, count: int) -> list[tuple[str, int | None, str | None, bool]]:
    return [(f"{text}{i}", None, None, False) for i in range(count)]


def stages() -> dict[Stage, StageText]:
    return dict(
        [
            stage(Stage.PYTHON, "python", *((text, line, None, False) for line, text in SOURCE.items())),
            stage(
                Stage.LLVM,
                "llvm",
                ("define double @energy(ptr %x, double %scale) {", 11, None, False),
                *filler("  %filler = add i64 1, ", 400),
                ("  %e = call double @llvm.exp.f64(double %v)", 16, "%e", False),
                ("  call void @NRT_incref(ptr %x)", 16, None, True),
                ("  %p = fmul double %e, %v", 16, "%p", False),
                *filler("  %more = add i64 2, ", 400),
                ("  %r = fmul double %scale, %total", 17, "%r", False),
                ("}", None, None, False),
            ),
            stage(
                Stage.ADJOINT,
                "llvm",
                *filler("  ; forward sweep ", 60),
                ("  %16 = fmul double %23, %e", 16, "%e", False),
                ("  %17 = fadd double %16, %15", 16, None, False),
                ("  ret void", 11, None, False),
            ),
            stage(Stage.OPTIMIZED, "llvm", ("  %fast = fmul fast double %e, %v", 16, "%p", False)),
            stage(Stage.ASM, "nasm", *filler("\tmov\trax, ", 90), ("\tvmulsd\txmm0, xmm1, xmm2", 16, None, False)),
        ]
    )


def functions() -> tuple[FunctionReport, ...]:
    values = (
        ValueFacts("%e", "double", "call of exp", (at(16),), True, "depends on x", (), "saved: dear to compute", True,
                   "exp", SourceLocation("rules/elementwise.py", 40)),
        ValueFacts("%p", "double", "product", (at(16),), True, "depends on x", plan="recomputed"),
        ValueFacts("%i", "i64", "loop counter", (at(15),), False, "its type holds no floating-point number"),
        ValueFacts("%x", "ptr", "argument x", (at(11),), True, "has a shadow", ("may point to argument x",)),
    )  # fmt: skip
    tape = (
        TapeEntry("%a", "ptr", None, Storage.KEPT, (15,), at(14), "it holds cotangents", "shadow of an array"),
        TapeEntry("%slab", "ptr", 64, Storage.FRAME, (), at(16), "it points to the slab", "where the values are saved"),
        TapeEntry("%w", "<4 x double>", 32, Storage.RECORD, (15, 16), SourceLocation("/lib/other.py", 3),
                  "overwritten", "w"),
        TapeEntry("%e", "double", 8, Storage.SLAB, (15,), at(16), "exp is dear to recompute", "exp(…) on line 16"),
    )  # fmt: skip
    library = SourceLocation("/lib/other.py", 1, "helper")
    return (
        FunctionReport("_Zenergy", "energy", "by x, scale; result active", "energy.augmented", "energy.reverse", at(11),
                       (1, 1, 2), values, tape),
        FunctionReport("_Zhelper", "helper", "by a", "helper.augmented", "helper.reverse", library, (1,), (), ()),
        FunctionReport("_Zhelper", "helper", "by a, b", "helper.augmented.1", "helper.reverse.1", library, (1,),
                       (), ()),
    )  # fmt: skip


@pytest.fixture(scope="session")
def report() -> Report:
    return made_by_hand({})


@pytest.fixture(scope="session")
def profiled_report() -> Report:
    return made_by_hand({16: 0.75, 15: 0.2, 17: 0.05})


def made_by_hand(shares: dict[int, float]) -> Report:
    signature = "float64(float64[::1], float64)"
    return Report("energy", at(11), signature, "plan=default", functions(), line_facts(shares), stages())


CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Page:
    """A page in the browser, and what tests do with it. What it shows is in `screenshots`, if that is a folder."""

    def __init__(self, driver: Any, screenshots: Path) -> None:
        self.driver, self.screenshots = driver, screenshots

    def open(self, file: Path, fragment: str = "") -> None:
        self.driver.get("about:blank")  # else the same file with another fragment would not load again
        self.complaints()  # of the browser's own first page
        self.driver.get(f"{file.as_uri()}{fragment}")
        self.wait("return document.documentElement.dataset.ready !== undefined")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, seconds: float = 20.0) -> Any:
        """Until a script gives something true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)
        return found

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def click_line(self, line: int) -> None:
        """Clicks a line of the source as a user does, and waits until all panels show it."""
        [row] = [row for row in self.all("#source .row") if row.find_element("class name", "c-line").text == str(line)]
        row.click()
        self.wait(f"return document.querySelector('#facts-line h3')?.textContent.startsWith('Line {line}')")

    def keys(self, *keys: str) -> None:
        """Keys to whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def shows(self, pane: int) -> list[str]:
        """The code of the lines in view of a pane that are lit up."""
        return [row.text.strip() for row in self.all(f"#pane-{pane} .row.hit .c-code")]

    def picture(self, name: str) -> None:
        self.driver.save_screenshot(str(self.screenshots / f"{name}.png"))

    def theme(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def complaints(self) -> list[str]:
        """What the browser has logged, and the requests it has made for anything but files."""
        logged = [entry["message"] for entry in self.driver.get_log("browser")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    logged.append(f"requested {url}")
        return logged


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A headless Chromium."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install 'irad[test]'")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    size = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield Page(driver, tmp_path_factory.mktemp("screenshots"))
    finally:
        driver.quit()
