"""A plug-in of pytest: instructions and misses of tests, with baselines and limits.

``pytest --lightfoot`` runs each test that is marked ``@pytest.mark.lightfoot``, or that takes the
fixture ``counted``, once more in a fresh interpreter under ``lightfoot cache``: equal code gives equal
numbers there, on a busy machine too, but for some hundred instructions where files or the environment
differ. Of a marked test its whole function is counted; with the fixture,
one call is. Tests that fail are not counted.

A test that exceeds a limit fails. ``--lightfoot-baseline FILE`` names what it is compared with, and
``--lightfoot-save FILE`` writes what was counted.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import _command

#: Set in the interpreter that runs one test under the command.
_INSIDE = "LIGHTFOOT_PYTEST_INSIDE"
#: The form of a baseline file.
_SCHEMA = 1
_LIMIT = re.compile(r"(?P<event>\w+)=\+(?P<more>\d+(\.\d+)?)(?P<percent>%?)")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plug-in."""
    group = parser.getgroup("lightfoot", "instructions and misses of tests, counted by lightfoot")
    group.addoption(
        "--lightfoot",
        action="store_true",
        help="count tests that are marked `lightfoot` or take the fixture `counted`",
    )
    group.addoption(
        "--lightfoot-baseline",
        metavar="FILE",
        type=Path,
        help="compare with the counts in FILE",
    )
    group.addoption(
        "--lightfoot-save",
        metavar="FILE",
        type=Path,
        help="write the counts to FILE; it may be the baseline",
    )
    group.addoption(
        "--lightfoot-limit",
        metavar="EVENT=+N%",
        action="append",
        default=[],
        help=f"fail where EVENT grew by more than N, or N %%, of the baseline: one of "
        f"{', '.join(_command.EVENTS)}; may be repeated [default: instructions=+1%%]",
    )
    group.addoption(
        "--lightfoot-machine",
        metavar="NAME",
        default="zen4",
        help="the machine whose caches are simulated, as for lightfoot cache [default: zen4]",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker; with ``--lightfoot``, checks the options and finds the command."""
    config.addinivalue_line("markers", "lightfoot: count the test under `pytest --lightfoot`")
    if os.environ.get(_INSIDE):
        return
    if not config.getoption("--lightfoot"):
        for option in ("--lightfoot-baseline", "--lightfoot-save"):
            if config.getoption(option):
                raise pytest.UsageError(f"{option} counts nothing without --lightfoot; add it")
        return
    if hasattr(config, "workerinput") or config.getoption("numprocesses", None):
        raise pytest.UsageError("--lightfoot counts in one process; leave out -n")
    try:
        _command.find()
    except _command.CommandError as error:
        raise pytest.UsageError(str(error)) from None
    limits = [_limit(text) for text in config.getoption("--lightfoot-limit") or ["instructions=+1%"]]
    config.pluginmanager.register(_Counting(config, limits), "lightfoot-counting")


def _limit(text: str) -> tuple[str, float, bool]:
    """The event, the growth that it may have, and whether that is in percent."""
    found = _LIMIT.fullmatch(text)
    if found is None or found["event"] not in _command.EVENTS:
        known = ", ".join(_command.EVENTS)
        raise pytest.UsageError(
            f"--lightfoot-limit: expected EVENT=+N or EVENT=+N% with an event of {known}, got {text!r}"
        )
    return found["event"], float(found["more"]), bool(found["percent"])


def _is_counted(item: pytest.Item) -> bool:
    return item.get_closest_marker("lightfoot") is not None or _has_fixture(item)


def _has_fixture(item: pytest.Item) -> bool:
    return "counted" in getattr(item, "fixturenames", ())


@pytest.fixture
def counted() -> Callable[..., Any]:
    """Calls a function and counts that call: ``counted(function, *arguments, **options)``.

    Under ``pytest --lightfoot`` the function is called once before, to warm up, and the collector of
    garbage rests during the call that is counted. Otherwise it is called once. Returns what the call
    returned.
    """
    if not os.environ.get(_INSIDE):
        return lambda function, *arguments, **options: function(*arguments, **options)

    def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        function(*arguments, **options)
        with _quiet(), _command.Counted():
            return function(*arguments, **options)

    return call


class _quiet:
    """Collects garbage now, and not until the end of the block."""

    def __enter__(self) -> None:
        gc.collect()
        self.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_exception: object) -> None:
        if self.was_enabled:
            gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, None, None]:
    """Inside, opens the region around the function of a marked test."""
    if not os.environ.get(_INSIDE) or _has_fixture(pyfuncitem):
        yield
        return
    with _quiet(), _command.Counted():
        yield


class _Counting:
    """Counts tests that passed, and compares them."""

    def __init__(self, config: pytest.Config, limits: list[tuple[str, float, bool]]) -> None:
        self.config = config
        self.limits = limits
        self.baseline = self._read_baseline()
        self.counts: dict[str, dict[str, int]] = {}
        self.notes: list[str] = []

    def _read_baseline(self) -> dict[str, dict[str, int]]:
        path: Path | None = self.config.getoption("--lightfoot-baseline")
        if path is None:
            return {}
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if path == self.config.getoption("--lightfoot-save"):
                # The first run writes it.
                return {}
            raise pytest.UsageError(
                f"--lightfoot-baseline: there is no {path}; write it with --lightfoot-save {path}"
            ) from None
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"--lightfoot-baseline: {path}: {error}") from None
        machine = self.config.getoption("--lightfoot-machine")
        tests = kept.get("tests") if isinstance(kept, dict) and kept.get("schema") == _SCHEMA else None
        if not isinstance(tests, dict):
            raise pytest.UsageError(
                f"--lightfoot-baseline: {path} is no baseline of this plug-in; write it anew with "
                f"--lightfoot-save {path}"
            )
        if kept.get("machine") != machine:
            raise pytest.UsageError(
                f"--lightfoot-baseline: {path} is of machine {kept.get('machine')}, not {machine}; pass "
                f"--lightfoot-machine {kept.get('machine')}"
            )
        return tests

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        """Counts a test behind its call; the test fails if it exceeds a limit."""
        outcome = yield
        report: pytest.TestReport = outcome.get_result()
        if report.when != "call" or report.outcome != "passed" or not _is_counted(item):
            return
        try:
            counts = self._count(item)
        except _command.CommandError as error:
            report.outcome = "failed"
            report.longrepr = f"lightfoot: {error}"
            return
        self.counts[item.nodeid] = counts
        exceeded = list(self._exceeded(item.nodeid, counts))
        if exceeded:
            report.outcome = "failed"
            report.longrepr = "\n".join(exceeded)

    def _count(self, item: pytest.Item) -> dict[str, int]:
        with tempfile.TemporaryDirectory(prefix="lightfoot-test-") as folder:
            path = Path(folder, "report.json")
            machine = self.config.getoption("--lightfoot-machine")
            options = [*_command.REPEATABLE, "--machine", machine, "--format", "json", "-o", str(path)]
            # The cache of results is that of the run outside.
            program = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            program += ["--rootdir", str(self.config.rootpath)]
            if self.config.inipath is not None:
                program += ["-c", str(self.config.inipath)]
            program.append(item.nodeid)
            done = _command.run(
                options,
                program,
                cwd=self.config.rootpath,
                env={**os.environ, _INSIDE: "1", "PYTEST_ADDOPTS": ""},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            if "nothing was counted" in done.stdout:
                raise _command.CommandError(
                    f"{item.nodeid}: nothing was counted; the fixture `counted` has to be called"
                )
            if done.returncode != 0 or not path.exists():
                said = done.stdout.strip().splitlines()
                last = "\n".join(said[-15:]) if said else "nothing was printed"
                raise _command.CommandError(f"{item.nodeid} did not pass under lightfoot cache:\n{last}")
            return _command.events(path.read_text(encoding="utf-8"))

    def _exceeded(self, name: str, counts: dict[str, int]) -> Iterator[str]:
        before = self.baseline.get(name)
        if before is None:
            return
        for event, more, is_percent in self.limits:
            allowed = before[event] * (1 + more / 100) if is_percent else before[event] + more
            if counts[event] > allowed:
                yield (
                    f"lightfoot: {name}: {counts[event]:,} {event} exceed {before[event]:,} of the "
                    f"baseline by {_percent(before[event], counts[event])}; the limit is "
                    f"+{more:g}{'%' if is_percent else ''}"
                )

    def pytest_sessionfinish(self) -> None:
        """Writes the counts; tests that were not run keep those of the baseline."""
        path: Path | None = self.config.getoption("--lightfoot-save")
        if path is None or not self.counts:
            return
        tests = {**self.baseline, **self.counts}
        kept = {
            "schema": _SCHEMA,
            "machine": self.config.getoption("--lightfoot-machine"),
            "tests": dict(sorted(tests.items())),
        }
        text = json.dumps(kept, indent=1) + "\n"
        try:
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        except OSError as error:
            self.notes.append(f"--lightfoot-save: {path}: {error}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Prints a line for each test that was counted."""
        if self.counts:
            machine = self.config.getoption("--lightfoot-machine")
            terminalreporter.section(f"lightfoot: one call, caches of {machine}")
            events = list(_command.EVENTS)
            width = max(len(name) for name in self.counts)
            heads = "".join(f"{event:>14}" for event in events)
            terminalreporter.write_line(f"{'test':{width}}{heads}  against the baseline")
            for name, counts in self.counts.items():
                numbers = "".join(f"{counts[event]:>14,}" for event in events)
                before = self.baseline.get(name)
                change = "new"
                if before is not None:
                    change = _percent(before["instructions"], counts["instructions"]) + " instructions"
                terminalreporter.write_line(f"{name:{width}}{numbers}  {change}")
        for note in self.notes:
            terminalreporter.write_line(note, red=True)


def _percent(before: int, now: int) -> str:
    if now == before:
        return "+0 %"
    return f"{100 * (now - before) / max(before, 1):+.2f} %"
