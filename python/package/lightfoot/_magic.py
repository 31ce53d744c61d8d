"""The cell magic ``%%lightfoot``: a cell runs in a fresh interpreter, and its report is shown.

A notebook's own interpreter is not measured, since its memory and threads are not the cell's. So the
cell has to import what it uses, and its names are gone afterwards.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import _command

#: The cell is compiled first, so that only what it does is counted.
_RUNNER = """
import sys
from lightfoot._command import Counted
with open(sys.argv[1], encoding="utf-8") as file:
    code = compile(file.read(), "<cell>", "exec")
names = {"__name__": "__main__"}
with Counted():
    exec(code, names)
"""


def cell_report(line: str, cell: str) -> tuple[str, str, int]:
    """Runs a cell under ``lightfoot cache`` with the options of the magic's line.

    Returns what the cell printed, the report or the errors, and the exit status.

    Raises :class:`~lightfoot._command.CommandError` where the command is not there.
    """
    with tempfile.TemporaryDirectory(prefix="lightfoot-cell-") as folder:
        source = Path(folder, "cell.py")
        source.write_text(cell, encoding="utf-8")
        report = Path(folder, "report")
        options = ["--repeatable", "-o", str(report), *shlex.split(line)]
        program = [sys.executable, "-c", _RUNNER, str(source)]
        done = _command.run(
            options, program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        said = report.read_text(encoding="utf-8") if report.exists() else ""
    return done.stdout, said + done.stderr, done.returncode


def register(shell: Any) -> None:
    """Registers the magic with a shell of IPython."""

    def lightfoot(line: str, cell: str) -> None:
        """Counts a cell: ``%%lightfoot [options of lightfoot cache]``."""
        try:
            printed, report, status = cell_report(line, cell)
        except (_command.CommandError, ValueError) as error:
            print(error, file=sys.stderr)
            return
        print(printed, end="")
        print(report, end="", file=sys.stdout if status == 0 else sys.stderr)

    shell.register_magic_function(lightfoot, magic_kind="cell", magic_name="lightfoot")
