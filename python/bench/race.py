"""Races searches and patterns with NumPy, pyarrow, polars and google-re2, and prints tables.

    python bench/race.py search [--keys 100_000_000]
    python bench/race.py columns [--rows 2_000_000]

Every contender of a row answers the same question over the same memory, in turn, ``--rounds`` times;
answers are compared. Times are medians on one thread; a ratio is the contender's time by that of
lightfoot.
"""

import argparse
import os
import re
import statistics
import time
from importlib.metadata import PackageNotFoundError, version

# One thread each: what more of them give is another question.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy

import lightfoot

PATTERNS = {
    "literal": "timeout",
    "IPv4": r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}",
    "hexadecimal": r"\b[0-9a-f]{8}-[0-9a-f]{4}\b",
    "e-mail": r"[\w.+-]+@[\w-]+\.[a-z]{2,6}",
    "date, level": r"^2026.*(ERROR|WARN)",
    "words in -ing": r"\b[a-z]+ing\b",
    "digits, letters": r"[0-9]{3,5}[a-z]{2}[0-9]",
    "quoted": r'"[^"]{3,20}"',
}


def medians(contenders, rounds):
    """The median time of each contender, in turn, and its answer."""
    times = {name: [] for name in contenders}
    answers = {}
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            answers[name] = call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(one) for name, one in times.items()}, answers


def search(arguments):
    """Random queries among random sorted keys."""
    random = numpy.random.default_rng(1)
    count, queries = arguments.keys, arguments.queries
    print(f"{count:,} keys, {queries:,} random queries; ns a query, ratio to NumPy\n")
    print("| keys | numpy.searchsorted | lightfoot.searchsorted | | Index.searchsorted | | build |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind in arguments.types:
        if kind.startswith("f"):
            keys = random.random(count, dtype=kind)
            asked = random.random(queries, dtype=kind)
        else:
            keys = random.integers(0, numpy.iinfo(kind).max, count, dtype=kind)
            asked = random.integers(0, numpy.iinfo(kind).max, queries, dtype=kind)
        keys.sort()
        start = time.perf_counter()
        index = lightfoot.Index(keys)
        built = time.perf_counter() - start
        out = numpy.empty(queries, dtype=numpy.intp)
        contenders = {
            "numpy": lambda: numpy.searchsorted(keys, asked),
            "array": lambda: lightfoot.searchsorted(keys, asked, out=out).copy(),
            "index": lambda: index.searchsorted(asked, out=out).copy(),
        }
        times, answers = medians(contenders, arguments.rounds)
        assert (answers["numpy"] == answers["array"]).all() and (answers["numpy"] == answers["index"]).all()
        numpys, array, indexed = (times[name] / queries * 1e9 for name in contenders)
        print(
            f"| {kind} | {numpys:.0f} | {array:.1f} | {numpys / array:.1f} | {indexed:.1f} | "
            f"{numpys / indexed:.1f} | {built:.2f} s |",
            flush=True,
        )


def log_rows(count):
    """Rows of a log, drawn from a seed."""
    random = numpy.random.default_rng(2)
    levels = numpy.array(["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"])
    words = numpy.array(
        "request served loading cache of user session with retry after missing config checking disk "
        "volume mounted by peer connecting closed handler started waiting".split()
    )
    some = min(count, 200_000)
    rows = []
    for number in range(some):
        parts = [f"2026-11-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:07", random.choice(levels)]
        parts += list(random.choice(words, random.integers(3, 14)))
        dice = random.random(7)
        if dice[0] < 0.2:
            parts.append(".".join(map(str, random.integers(0, 256, 4))))
        if dice[1] < 0.1:
            parts.append(f"id={random.integers(1 << 32):08x}-{random.integers(1 << 16):04x}")
        if dice[2] < 0.05:
            parts.append(f"<{random.choice(words)}@example.org>")
        if dice[3] < 0.1:
            parts.append(f'path="/{random.choice(words)}"')
        if dice[4] < 0.01:
            parts.append("timeout")
        rows.append(" ".join(parts))
    return rows * (count // some)


def columns(arguments):
    """Which rows of a column of a log match, by pattern."""
    import polars
    import pyarrow
    import pyarrow.compute

    try:
        import re2
    except ImportError:
        re2 = None
    rows = log_rows(arguments.rows)
    column = pyarrow.array(rows, pyarrow.string())
    series = polars.Series(rows)
    encoded = [row.encode() for row in rows[: arguments.loop_rows]]
    size = column.get_total_buffer_size() - 4 * (len(rows) + 1)
    print(f"{len(rows):,} rows, {size / 1e6:.0f} MB of strings; GB/s, ratio to lightfoot's time\n")
    print("| pattern | lightfoot | of polars | pyarrow | | polars | | google-re2 | | re | |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    ratios = {name: [] for name in ("pyarrow", "polars", "re2", "re")}
    for name, pattern in PATTERNS.items():
        compiled, ours = lightfoot.compile(pattern), re.compile(pattern.encode())
        contenders = {
            "lightfoot": lambda: compiled.contains(column),
            "lightfoot of polars": lambda: compiled.contains(series),
            "pyarrow": lambda: pyarrow.compute.match_substring_regex(column, pattern),
            "polars": lambda: series.str.contains(pattern),
        }
        times, answers = medians(contenders, arguments.rounds)
        found = answers["lightfoot"]
        assert found.equals(answers["pyarrow"]), name
        assert answers["polars"].equals(answers["lightfoot of polars"]), name
        assert found.to_pylist() == answers["polars"].to_list(), name
        # These two are called row by row, over fewer rows.
        bytes_of_loop = sum(map(len, encoded))
        loops = {"re": ours.search}
        if re2 is not None:
            loops["re2"] = re2.compile(pattern.encode()).search
        looped, answers = medians(
            {one: (lambda call=call: [call(row) is not None for row in encoded]) for one, call in loops.items()},
            arguments.rounds,
        )
        for one, answer in answers.items():
            assert answer == found.slice(0, len(encoded)).to_pylist(), (name, one)
        speed = {one: size / taken / 1e9 for one, taken in times.items()}
        speed |= {one: bytes_of_loop / taken / 1e9 for one, taken in looped.items()}
        cells = [f"{speed['lightfoot']:.2f}", f"{speed['lightfoot of polars']:.2f}"]
        for one in ratios:
            if one not in speed:
                cells += ["", ""]
                continue
            base = speed["lightfoot of polars"] if one == "polars" else speed["lightfoot"]
            ratios[one].append(base / speed[one])
            cells += [f"{speed[one]:.3f}", f"{base / speed[one]:.1f}"]
        print(f"| {name} `{pattern}` | {' | '.join(cells)} |", flush=True)
    means = [f"{statistics.geometric_mean(one):.1f}" if one else "" for one in ratios.values()]
    print(f"| geometric mean | | | | {' | | '.join(means)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("race", choices=["search", "columns"])
    parser.add_argument("--keys", type=int, default=100_000_000)
    parser.add_argument("--queries", type=int, default=2_000_000)
    parser.add_argument("--types", nargs="+", default=["uint32", "float64"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--loop-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    peers = ["lightfoot", "numpy", "pyarrow", "polars", "google-re2"]
    versions = []
    for peer in peers:
        try:
            versions.append(f"{peer} {version(peer)}")
        except PackageNotFoundError:
            versions.append(f"{peer} is not installed")
    print(", ".join(versions), end="\n\n")
    {"search": search, "columns": columns}[arguments.race](arguments)


if __name__ == "__main__":
    main()
