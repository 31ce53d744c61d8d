"""The command ``lightfoot``: where it is, and how a Python program runs under it.

What is counted lies between two marks of the native half, so that neither the start of the
interpreter nor imports are part of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from . import _native

#: The region between the marks.
REGION = "python"

#: Equal in all runs: clocks, random bytes and with them the seeds of hashes, addresses.
REPEATABLE = ("--repeatable",)

#: What a report has of a run: its name here, and those of the report that it is the sum of.
EVENTS = {
    "instructions": ("instructions",),
    "l1i": ("l1i_misses",),
    "l1d": ("l1d_load_misses", "l1d_store_misses"),
    "l2": ("l2_misses",),
    "l3": ("l3_misses",),
    "dtlb": ("dtlb_misses",),
    "cycles": ("estimated_cycles",),
}


class CommandError(Exception):
    """The command is not there, or could not measure; the message is one sentence."""


def find() -> str:
    """The path of the command: that of the variable LIGHTFOOT, or what PATH has.

    Raises :class:`CommandError` where there is none.
    """
    named = os.environ.get("LIGHTFOOT")
    found = shutil.which(named or "lightfoot")
    if found is not None:
        return found
    where = f"LIGHTFOOT names {named}, which is no program" if named else "it is not on PATH"
    raise CommandError(
        f"the command lightfoot is needed, and {where}: "
        "install it with `cargo install lightfoot`, or set LIGHTFOOT to its path"
    )


def run(
    options: Sequence[str], program: Sequence[str], **how: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program under ``lightfoot cache``, counting what lies between the marks."""
    command = [find(), "cache", "--region", REGION, *options, "--", *program]
    return subprocess.run(command, text=True, check=False, **how)


def events(report: str) -> dict[str, int]:
    """The events of a JSON report."""
    totals = json.loads(report)["totals"]
    return {name: sum(totals[part] for part in parts) for name, parts in EVENTS.items()}


class Counted:
    """A block of Python that is counted, where the interpreter runs under the command."""

    def __enter__(self) -> None:
        _native.region_begin()

    def __exit__(self, *_exception: object) -> None:
        _native.region_end()
