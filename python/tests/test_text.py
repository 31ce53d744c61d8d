"""Patterns over texts, against ``re`` line by line."""

import array
import mmap
import pickle
import random
import re
import threading

import numpy
import pytest

import lightfoot

#: Patterns of one meaning in ``re`` and here, over ASCII and UTF-8.
PATTERNS = [
    "needle",
    "e",
    r"\d{2,4}-\d\d",
    r"\b[0-9a-f]{4,8}\b",
    r"^\w+",
    r"\w+ing\b",
    r"(ab|a)(c|bcd)?",
    r"[^a-z ]+$",
    r"-*$",
    r"^$",
    r"(?i)error|warn",
    r"ü+|é",
    r".b",
]
WORDS = "needle hay sing dancing 2026-11-25 beef00 deadbeef abcd ac xx ERROR Warn üü é b - 12 q".split(" ")


def random_text(seed, lines):
    chosen = random.Random(seed)
    rows = [" ".join(chosen.choices(WORDS, k=chosen.choice([0, 0, 1, 3, 9]))) for _ in range(lines)]
    return "\n".join(rows) + chosen.choice(["", "\n"])


def lines_of(text):
    """Places and contents of the lines of a text, without what ends them."""
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, line.removesuffix("\n")
        at += len(line.encode())


def expected_spans(pattern, text):
    """Spans in bytes of the matches of ``re`` in each line by itself. An empty match right behind a
    match, which ``re`` alone finds, is left out."""
    spans = []
    for at, line in lines_of(text):
        end = None
        for found in re.finditer(pattern, line):
            span = [at + len(line[:place].encode()) for place in found.span()]
            if span[0] < span[1] or span[0] != end:
                spans.append(span)
            end = span[1]
    return spans


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("lines", [0, 1, 7, 2000])
def test_matches_are_those_of_re_in_each_line(pattern, lines):
    compiled = lightfoot.compile(pattern)
    for seed in range(3):
        text = random_text(seed, lines)
        encoded = text.encode()
        spans = expected_spans(pattern, text)
        assert compiled.find_all(encoded).tolist() == spans
        assert compiled.count(encoded) == len(spans)
        matching = [(at, line) for at, line in lines_of(text) if re.search(pattern, line)]
        assert compiled.count_matching(encoded) == len(matching)
        assert compiled.contains(encoded) == bool(matching)
        assert compiled.find(encoded) == (tuple(spans[0]) if spans else None)
        ends = [(at, min(at + len(line.encode()) + 1, len(encoded))) for at, line in matching]
        assert compiled.lines(encoded).tolist() == [list(span) for span in ends]
        for group in range(compiled.groups + 1):
            found = [re.search(pattern, line)[group] for _, line in matching]
            held = compiled.extract(encoded, group).to_pylist()
            assert held == [None if one is None else one.encode() for one in found]


def test_all_kinds_of_memory_are_texts(tmp_path):
    text = random_text(1, 500).encode()
    path = tmp_path / "text"
    path.write_bytes(text)
    compiled = lightfoot.compile(r"\w+ing\b")
    spans = compiled.find_all(text).tolist()
    assert len(spans) > 50
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert compiled.find_all(mapped).tolist() == spans
    kinds = [bytearray(text), memoryview(text), array.array("b", text), numpy.frombuffer(text, numpy.uint8)]
    for kind in [*kinds, numpy.memmap(path, numpy.uint8, "r"), memoryview(b"x" + text)[1:]]:
        assert compiled.find_all(kind).tolist() == spans
    assert compiled.contains(b"") is False and compiled.find_all(b"").shape == (0, 2)


def test_an_empty_match_may_stand_between_any_two_bytes():
    """A text is bytes, whatever they are; rows of strings are strings."""
    text = "aü".encode()
    assert lightfoot.compile("x*").find_all(text).tolist() == [[at, at] for at in range(4)]


def test_spans_may_be_written():
    spans = lightfoot.compile("a").find_all(b"aa")
    spans += 1
    assert spans.tolist() == [[1, 2], [2, 3]]


def test_a_bytearray_may_be_resized_afterwards():
    text = bytearray(b"abc")
    lightfoot.compile("b").contains(text)
    text.extend(b"more")


def test_options():
    assert lightfoot.compile("é", ignore_case=True).contains("É".encode())
    assert not lightfoot.compile(r"\w", unicode=False).contains("é".encode())
    assert lightfoot.compile("a.c", literal=True).find_all(b"abc a.c").tolist() == [[4, 7]]
    assert lightfoot.compile("a b # comment", verbose=True).contains(b"ab")
    assert lightfoot.compile(r"(?-u:\xff)").contains(b"\xff")


def test_patterns_are_values():
    pattern = lightfoot.compile("a+", ignore_case=True)
    again = pickle.loads(pickle.dumps(pattern))
    assert again == pattern and hash(again) == hash(pattern) and again.contains(b"A")
    assert pattern != lightfoot.compile("a+") and pattern != "a+"
    assert repr(pattern) == "lightfoot.compile('a+')"
    assert "texts:" in pattern.explain() and "columns:" in pattern.explain()


def test_threads_share_a_pattern():
    text = random_text(4, 20_000).encode()
    compiled = lightfoot.compile(r"\b[0-9a-f]{4,8}\b")
    count = len(re.findall(r"\b[0-9a-f]{4,8}\b", text.decode()))
    counts = []
    threads = [threading.Thread(target=lambda: counts.append(compiled.count(text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [count] * 4
