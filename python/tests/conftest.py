"""What several tests need: the command, and other interpreters."""

import os
import shutil
import subprocess

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def command():
    """The command lightfoot; tests that need it say that they skip."""
    found = shutil.which(os.environ.get("LIGHTFOOT", "lightfoot"))
    if found is None:
        pytest.skip("no command lightfoot: put it on PATH, or its path in LIGHTFOOT")
    done = subprocess.run([found, "count", "--", "/bin/true"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"lightfoot measures nothing here: {done.stderr.strip()}")
    return found
