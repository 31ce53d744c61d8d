"""The plug-in of pytest and the magic, run in interpreters of their own under the command."""

import json
import sys

import pytest

from lightfoot import _magic

TESTS = """
    import pytest

    def work(rounds):
        return sum(number * number for number in range(rounds))

    @pytest.mark.lightfoot
    def test_marked():
        assert work(ROUNDS) > 0

    def test_called(counted):
        assert counted(work, 2000) == work(2000)

    @pytest.mark.parametrize("rounds", [10, 1000])
    def test_each(counted, rounds):
        counted(work, rounds)

    def test_other():
        pass
"""


@pytest.fixture
def project(pytester, command, monkeypatch):
    monkeypatch.setenv("LIGHTFOOT", command)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


def write_tests(project, rounds):
    project.makepyfile(test_it=TESTS.replace("ROUNDS", str(rounds)))


def test_counts_repeat_and_a_limit_fails_a_test(project):
    write_tests(project, 5000)
    run = project.runpytest_subprocess("--lightfoot", "--lightfoot-save", "counts.json")
    run.assert_outcomes(passed=5)
    run.stdout.fnmatch_lines(["*lightfoot: one call, caches of zen4*", "test_it.py::test_called*new"])
    saved = json.loads((project.path / "counts.json").read_text())
    assert (saved["schema"], saved["machine"]) == (1, "zen4")
    counts = saved["tests"]
    names = ["test_called", "test_each[10]", "test_each[1000]", "test_marked"]
    assert list(counts) == sorted(f"test_it.py::{name}" for name in names)
    # A round takes hundreds of instructions; an interpreter's start, tens of millions.
    small, large = (counts[f"test_it.py::test_each[{rounds}]"]["instructions"] for rounds in (10, 1000))
    assert 50 * 990 < large - small < 3000 * 990 and small < 100_000

    run = project.runpytest_subprocess(
        "--lightfoot", "--lightfoot-baseline", "counts.json", "--lightfoot-limit", "instructions=+1%", "-k", "called or 1000"
    )
    # The counts of the shortest test may differ by more: some hundred instructions are the interpreter's.
    run.assert_outcomes(passed=2, deselected=3)
    run.stdout.fnmatch_lines(["test_it.py::test_called* % instructions"])

    write_tests(project, 6000)
    run = project.runpytest_subprocess("--lightfoot", "--lightfoot-baseline", "counts.json", "-k", "marked or other")
    run.assert_outcomes(passed=1, failed=1, deselected=3)
    run.stdout.fnmatch_lines(
        ["lightfoot: test_it.py::test_marked: * instructions exceed * of the baseline by +*; the limit is +1%"]
    )
    allowed = ["--lightfoot-baseline", "counts.json", "--lightfoot-limit", "instructions=+50%"]
    project.runpytest_subprocess("--lightfoot", *allowed, "-k", "marked").assert_outcomes(passed=1, deselected=4)


def test_without_the_option_tests_run_as_they_are(project):
    write_tests(project, 10)
    run = project.runpytest_subprocess("--strict-markers")
    run.assert_outcomes(passed=5)
    run.stdout.no_fnmatch_line("*lightfoot: one call*")


def test_a_fixture_that_is_not_called_counts_nothing(project):
    project.makepyfile(test_it="def test_nothing(counted):\n    pass\n")
    run = project.runpytest_subprocess("--lightfoot")
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["*nothing was counted; the fixture `counted` has to be called"])


def test_a_test_that_fails_under_the_command_says_so(project):
    project.makepyfile(
        test_it="""
        import os, pytest

        @pytest.mark.lightfoot
        def test_it():
            assert "LIGHTFOOT_PYTEST_INSIDE" not in os.environ
        """
    )
    run = project.runpytest_subprocess("--lightfoot")
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["lightfoot: test_it.py::test_it did not pass under lightfoot cache:"])


@pytest.mark.parametrize(
    "options, message",
    [
        (["--lightfoot-baseline", "x"], "--lightfoot-baseline counts nothing without --lightfoot; add it"),
        (["--lightfoot", "--lightfoot-baseline", "x"], "there is no x; write it with --lightfoot-save x"),
        (["--lightfoot", "--lightfoot-baseline", "other.json"], "other.json is no baseline of this plug-in"),
        (["--lightfoot", "--lightfoot-baseline", "broken.json"], "broken.json: Expecting value"),
        (["--lightfoot", "--lightfoot-baseline", "small.json"], "is of machine celeron, not zen4"),
        (["--lightfoot", "--lightfoot-limit", "l9=+1%"], "expected EVENT=+N or EVENT=+N% with an event of"),
        (["--lightfoot", "--lightfoot-limit", "l1d=1"], "got 'l1d=1'"),
    ],
)
def test_options_that_are_wrong(project, options, message):
    (project.path / "other.json").write_text("{}")
    (project.path / "broken.json").write_text("no")
    (project.path / "small.json").write_text('{"schema": 1, "machine": "celeron", "tests": {}}')
    run = project.runpytest_subprocess(*options)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert message in run.stderr.str()


def test_without_the_command_one_sentence_says_so(pytester, monkeypatch):
    monkeypatch.delenv("LIGHTFOOT", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    run = pytester.runpytest_subprocess("--lightfoot")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert "the command lightfoot is needed, and it is not on PATH: install it with" in run.stderr.str()
    monkeypatch.setenv("LIGHTFOOT", "/nowhere/lightfoot")
    run = pytester.runpytest_subprocess("--lightfoot")
    assert "LIGHTFOOT names /nowhere/lightfoot, which is no program" in run.stderr.str()


def test_a_cell_is_counted_without_the_start(command, monkeypatch):
    monkeypatch.setenv("LIGHTFOOT", command)
    cell = "print(sum(range(COUNT)))\n"
    counts = []
    for count in (1000, 11_000):
        printed, report, status = _magic.cell_report("--format json", cell.replace("COUNT", str(count)))
        assert (printed, status) == (f"{sum(range(count))}\n", 0)
        counts.append(json.loads(report)["totals"]["instructions"])
    assert 10 * 10_000 < counts[1] - counts[0] < 1000 * 10_000
    printed, report, status = _magic.cell_report("--top 3", cell.replace("COUNT", "7"))
    assert "lightfoot cache: " in report and "instructions" in report


def test_a_cell_that_fails_shows_its_error(command, monkeypatch):
    monkeypatch.setenv("LIGHTFOOT", command)
    _, report, status = _magic.cell_report("", "1 / 0\n")
    assert status == 1 and 'File "<cell>", line 1' in report and "ZeroDivisionError" in report
    _, report, status = _magic.cell_report("--no-such-option", "pass\n")
    assert status != 0 and "--no-such-option" in report


def test_the_magic_in_ipython(command, monkeypatch, capsys):
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("LIGHTFOOT", command)
    shell = shell_module.InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "lightfoot")
        shell.run_cell_magic("lightfoot", "--top 2", "print(3 * 14)\n")
        said = capsys.readouterr()
        assert said.out.startswith("42\n") and "L1D load misses" in said.out
        monkeypatch.setenv("LIGHTFOOT", "/nowhere/lightfoot")
        shell.run_cell_magic("lightfoot", "", "pass\n")
        assert "the command lightfoot is needed" in capsys.readouterr().err
    finally:
        shell_module.InteractiveShell.clear_instance()


assert sys.version_info >= (3, 11)
