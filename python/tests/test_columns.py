"""Patterns over columns of pyarrow and polars, row by row against ``re`` and pyarrow.compute."""

import random
import re

import numpy
import polars
import pyarrow
import pyarrow.compute
import pytest

import lightfoot

PATTERNS = [
    "needle",
    r"\d+\.\d+\.\d+\.\d+",
    r"\b[0-9a-f]{4,8}\b",
    r"^GET /(\w+)",
    r"(\w+)=(\d+)?",
    r"(?i)error",
    r"ing$",
    r"x*",
    r"[äöü]+",
]
PARTS = "needle GET /index 10.0.0.1 cafe12 user=7 key= ERROR sing äö xx \n \0 z".split(" ")
STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]
BINARIES = [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()]


def random_rows(seed, count, nulls=0.1):
    chosen = random.Random(seed)
    return [
        None if chosen.random() < nulls else " ".join(chosen.choices(PARTS, k=chosen.choice([0, 1, 2, 5])))
        for _ in range(count)
    ]


def searched(pattern, row):
    """``$`` is the end of the row alone, as in ``regex``."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), row)


def expected(pattern, rows, answer):
    return [None if row is None else answer(searched(pattern, row), row) for row in rows]


def expected_all(pattern, rows, group):
    def start(found, row):
        return None if found is None else len(row[: found.start()].encode())

    def count(_, row):
        found = [match.span() for match in re.finditer(re.sub(r"\$$", r"\\Z", pattern), row)]
        # `re` finds an empty match behind a match; `regex` does not.
        return len([1 for at, span in enumerate(found) if span[0] < span[1] or at == 0 or found[at - 1][1] != span[0]])

    return {
        "contains": expected(pattern, rows, lambda found, row: found is not None),
        "count": expected(pattern, rows, count),
        "find": expected(pattern, rows, start),
        "extract": expected(pattern, rows, lambda found, row: found and found[group]),
    }


def answers(compiled, column, group):
    found = {
        "contains": compiled.contains(column),
        "count": compiled.count(column),
        "find": compiled.find(column),
        "extract": compiled.extract(column, group),
    }
    return {
        name: one.to_list() if isinstance(one, polars.Series) else one.to_pylist() for name, one in found.items()
    }


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 3000])
def test_rows_are_those_of_re(pattern, size):
    compiled = lightfoot.compile(pattern)
    group = compiled.groups
    for seed, nulls in [(size, 0.1), (size + 1, 0.0)]:
        rows = random_rows(seed, size, nulls)
        wanted = expected_all(pattern, rows, group)
        for kind in STRINGS:
            column = pyarrow.array(rows, kind)
            assert answers(compiled, column, group) == wanted
            # A slice begins in the middle of offsets and of a byte of validity.
            for start in [1, 8, 13]:
                part = {name: one[start:] for name, one in wanted.items()}
                assert answers(compiled, column[start:], group) == part
        for library in [polars.Series("rows", rows, dtype=polars.String), pyarrow.chunked_array([rows], pyarrow.string())]:
            assert answers(compiled, library, group) == wanted
        if "ö" not in pattern:
            encoded = [None if row is None else row.encode() for row in rows]
            wanted["extract"] = [None if one is None else one.encode() for one in wanted["extract"]]
            for kind in BINARIES:
                assert answers(compiled, pyarrow.array(encoded, kind), group) == wanted


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pyarrow_finds_the_same_rows(pattern):
    rows = pyarrow.array(random_rows(9, 5000))
    theirs = pyarrow.compute.match_substring_regex(rows, pattern.replace("$", r"\z"))
    assert lightfoot.compile(pattern).contains(rows).equals(theirs)


def test_chunks_stay_chunks():
    chunks = [random_rows(seed, size) for seed, size in enumerate([100, 0, 33, 7])]
    column = pyarrow.chunked_array([pyarrow.array(chunk, pyarrow.string()) for chunk in chunks])
    found = lightfoot.compile("needle").contains(column)
    assert isinstance(found, pyarrow.ChunkedArray)
    assert [len(chunk) for chunk in found.chunks] == [100, 0, 33, 7]
    assert found.to_pylist() == expected("needle", sum(chunks, []), lambda match, _: match is not None)
    series = polars.concat([polars.Series("r", chunk, dtype=polars.String) for chunk in chunks], rechunk=False)
    found = lightfoot.compile("needle").contains(series)
    assert found.name == "r" and found.dtype == polars.Boolean and len(found) == 140
    nothing = pyarrow.chunked_array([], pyarrow.string())
    assert lightfoot.compile("a").contains(nothing).to_pylist() == []


def test_answers_have_the_type_of_the_question():
    compiled = lightfoot.compile("a(b)?")
    types = {
        pyarrow.string(): pyarrow.string(),
        pyarrow.large_string(): pyarrow.large_string(),
        pyarrow.string_view(): pyarrow.string(),
        pyarrow.binary(): pyarrow.binary(),
        pyarrow.large_binary(): pyarrow.large_binary(),
        pyarrow.binary_view(): pyarrow.binary(),
    }
    for kind, extracted in types.items():
        column = pyarrow.array([b"ab", None, b"x"], pyarrow.binary()).cast(kind)
        assert compiled.extract(column).type == extracted
        assert compiled.contains(column).type == pyarrow.bool_()
        assert compiled.count(column).type == pyarrow.uint32()
        assert compiled.find(column).type == pyarrow.int64()
        for found in [compiled.extract(column), compiled.contains(column), compiled.count(column)]:
            found.validate(full=True)


def test_no_half_of_a_character_becomes_a_string():
    """A pattern that may match a part of a character gives binaries, an empty match stands between
    characters."""
    column = pyarrow.array(["é"])
    halves = lightfoot.compile(r"(?-u:\xa9)").extract(column)
    assert halves.type == pyarrow.binary() and halves.to_pylist() == [b"\xa9"]
    replaced = lightfoot.compile("x*").replace(column, "-")
    replaced.validate(full=True)
    assert replaced.to_pylist() == ["-é-"]
    assert lightfoot.compile("é").replace(column, b"\xff").type == pyarrow.binary()


def test_rows_are_replaced_as_by_re():
    compiled = lightfoot.compile(r"(\w+)=(\d)")
    rows = random_rows(3, 2000)
    wanted = [None if row is None else re.sub(r"(\w+)=(\d)", r"\2:\1", row) for row in rows]
    for kind in STRINGS:
        assert compiled.replace(pyarrow.array(rows, kind), "$2:$1").to_pylist() == wanted
    assert compiled.replace(polars.Series(rows), "$2:$1").to_list() == wanted
    first = [None if row is None else re.sub(r"(\w+)=(\d)", r"x", row, count=1) for row in rows]
    assert compiled.replace(pyarrow.array(rows), "x", first_only=True).to_pylist() == first


class Other:
    """A column of a library that is not known here: its capsules alone."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_stream__(self, requested_schema=None):
        return self.column.__arrow_c_stream__(requested_schema)


def test_columns_of_other_libraries():
    column = pyarrow.chunked_array([["a", "b"], ["ba"]])
    found = lightfoot.compile("a").contains(Other(column))
    assert isinstance(found, lightfoot.Column)
    assert (found.type, len(found), found.num_chunks, found.null_count) == ("bool", 3, 2, 0)
    assert repr(found) == "<lightfoot.Column: bool, 3 rows, 0 null>"
    assert pyarrow.chunked_array(found).to_pylist() == found.to_pylist() == [True, False, True]
    assert polars.Series(found).to_list() == [True, False, True]
    out = numpy.empty(3, bool)
    found.write_to(out.view(numpy.uint8))
    assert out.tolist() == [True, False, True]


def test_an_answer_outlives_what_it_came_from():
    found = lightfoot.compile("a").count(Other(pyarrow.chunked_array([["aa", "b"] * 500])))
    array = pyarrow.chunked_array(found)
    del found
    assert array.to_pylist() == [2, 0] * 500


def test_capsules_that_nobody_takes_are_freed():
    """Under a checker of leaks this test is the one that shows them; here it must not crash."""
    found = lightfoot.compile("a").contains(Other(pyarrow.chunked_array([["a"] * 1000])))
    for _ in range(1000):
        found.__arrow_c_stream__()
        found.__arrow_c_schema__()
