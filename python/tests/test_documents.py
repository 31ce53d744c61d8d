"""Examples in docstrings and in the README are run, types are checked, the ABI is the stable one."""

import doctest
import importlib.metadata
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lightfoot
from lightfoot import _native, _pattern, _search

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("module", [lightfoot, _search, _pattern])
def test_examples_in_docstrings(module):
    tried = doctest.testmod(module)
    assert tried.attempted > 0 and tried.failed == 0


def test_examples_in_the_readme():
    text = README.read_text(encoding="utf-8")
    parser = doctest.DocTestParser()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    examples = parser.get_doctest("\n".join(block for block in blocks if ">>>" in block), {}, "README", None, 0)
    assert len(examples.examples) > 5
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_everything_public_is_documented_and_typed():
    for name in lightfoot.__all__:
        found = getattr(lightfoot, name)
        if name.startswith("__") or found is lightfoot.Column:
            continue
        members = [found] if inspect.isfunction(found) else [found, *vars(found).values()]
        for member in members:
            member = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(member) and not member.__name__.startswith("_"):
                assert member.__doc__, member
                assert "return" in member.__annotations__, member


def test_numpy_is_imported_when_it_is_needed():
    """The plug-in of pytest is loaded in every run of tests, and a counted cell starts anew."""
    code = "import sys, lightfoot.pytest_plugin; assert 'numpy' not in sys.modules; lightfoot.Index"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="module 'lightfoot' has no attribute 'nothing'"):
        lightfoot.nothing  # noqa: B018
    assert set(dir(lightfoot)) >= {"Index", "Pattern", "compile", "searchsorted"}


def test_types_hold():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    package = Path(lightfoot.__file__).parent
    assert (package / "py.typed").exists()
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "-p", "lightfoot"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_names_what_the_native_half_has():
    stub = Path(lightfoot.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    declared = set(re.findall(r"^(?:class|def) (\w+)", stub, re.MULTILINE)) | {"__version__"}
    present = {name for name in dir(_native) if not name.startswith("__") or name == "__version__"}
    assert declared == present
    for name in declared - {"__version__"}:
        found = getattr(_native, name)
        if inspect.isclass(found):
            body = re.search(rf"^class {name}:\n((?:    .*\n|\n)+)", stub, re.MULTILINE)[1]
            methods = {one for one in re.findall(r"def (\w+)", body) if not one.startswith("__")}
            assert methods == {one for one in vars(found) if not one.startswith("__")}


def test_the_wheel_is_one_for_all_later_interpreters():
    assert _native.__file__.endswith(".abi3.so")
    assert importlib.metadata.version("lightfoot") == lightfoot.__version__
    entries = importlib.metadata.entry_points(group="pytest11")
    assert any(entry.value == "lightfoot.pytest_plugin" for entry in entries)
