"""Ranks, against NumPy, over random keys and queries of every pair of types."""

import sys
import threading
import time

import numpy
import pytest

import lightfoot

KEY_TYPES = ["uint32", "int32", "uint64", "int64", "float32", "float64"]
QUERY_TYPES = [*KEY_TYPES, "int8", "uint8", "int16", "uint16", "float16", "bool"]
SIZES = [0, 1, 2, 31, 32, 33, 1000, 70_000]
SIDES = ["left", "right"]


def random_numbers(random, kind, size):
    """Numbers of which many are equal, and some lie at the ends of the type's range."""
    dtype = numpy.dtype(kind)
    if dtype.kind == "b":
        return random.integers(0, 2, size).astype(bool)
    if dtype.kind == "f":
        values = random.choice([random.normal(size=size), random.integers(-9, 9, size)]).astype(dtype)
        special = [0.0, -0.0, numpy.inf, -numpy.inf, numpy.nan, -numpy.nan, numpy.finfo(dtype).max]
    else:
        limits = numpy.iinfo(dtype)
        low = max(limits.min, -(10 ** random.integers(1, 18)))
        high = min(limits.max, 10 ** random.integers(1, 18))
        values = random.integers(low, high, size, dtype=dtype, endpoint=True)
        special = [limits.min, limits.max, 0]
    chosen = random.random(size) < 0.1
    values[chosen] = random.choice(numpy.array(special, dtype=dtype), chosen.sum())
    return values


def expected(keys, queries, side):
    """NumPy's ranks, where NumPy compares the same values: not of integers and floats of 64 bits."""
    if keys.dtype.kind == queries.dtype.kind or queries.dtype.kind == "b":
        if {keys.dtype.kind, queries.dtype.kind} == {"i", "u"}:
            return exact(keys, queries, side)
        return numpy.searchsorted(keys, queries, side)
    return exact(keys, queries, side)


def exact(keys, queries, side):
    """Ranks of Python's own numbers, whose comparisons are exact."""
    import bisect

    finite = [key for key in keys.tolist() if key == key]
    rank = bisect.bisect_left if side == "left" else bisect.bisect_right
    behind = len(finite) if side == "left" else len(keys)
    return numpy.array(
        [rank(finite, query) if query == query else behind for query in queries.tolist()],
        dtype=numpy.intp,
    )


@pytest.mark.parametrize("kind", KEY_TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_ranks_are_numpys(kind, size):
    random = numpy.random.default_rng([size, KEY_TYPES.index(kind)])
    for _ in range(4):
        keys = numpy.sort(random_numbers(random, kind, size))
        queries = numpy.concatenate([random_numbers(random, kind, 700), keys[:300]])
        index = lightfoot.Index(keys)
        for side in SIDES:
            ranks = numpy.searchsorted(keys, queries, side)
            for threads in (1, 3):
                found = lightfoot.searchsorted(keys, queries, side, threads=threads)
                assert found.dtype == numpy.intp and (found == ranks).all()
                assert (index.searchsorted(queries, side, threads=threads) == ranks).all()
        assert (index.contains(queries) == numpy.isin(queries, keys)).all()


@pytest.mark.parametrize("kind", KEY_TYPES)
@pytest.mark.parametrize("others", QUERY_TYPES)
def test_queries_of_other_types_rank_as_the_values_they_are(kind, others):
    random = numpy.random.default_rng([KEY_TYPES.index(kind), QUERY_TYPES.index(others)])
    for _ in range(6):
        keys = numpy.sort(random_numbers(random, kind, 500))
        queries = random_numbers(random, others, 500)
        if numpy.dtype(kind).kind == "f" and numpy.dtype(others).kind in "iu":
            # As in NumPy, such integers become floats.
            queries = queries.astype(numpy.float64)
        index = lightfoot.Index(keys)
        for side in SIDES:
            ranks = expected(keys, queries, side)
            assert (lightfoot.searchsorted(keys, queries, side) == ranks).all()
            assert (index.searchsorted(queries, side) == ranks).all()
        members = set(keys[keys == keys].tolist())
        found = [query in members for query in queries.tolist()]
        assert index.contains(queries).tolist() == found


@pytest.mark.parametrize("kind", KEY_TYPES)
@pytest.mark.parametrize("remainder", [0, 1, 63])
def test_ranks_of_large_arrays_go_through_a_sample(kind, remainder):
    """From 2^18 keys on, many queries are led by an index over every 64th key."""
    random = numpy.random.default_rng(remainder)
    size = (1 << 18) + remainder
    for distinct in (7, 10**9):
        keys = numpy.sort((random.integers(0, distinct, size) - distinct // 3).astype(kind))
        if numpy.dtype(kind).kind == "f":
            keys[-5:] = numpy.nan
            keys[size // 3] = -0.0
            keys.sort()
        queries = numpy.concatenate([random.permutation(keys)[:9000], keys[:99], keys[-99:]])
        queries = numpy.concatenate([queries, random_numbers(random, kind, 999)])
        for side in SIDES:
            ranks = numpy.searchsorted(keys, queries, side)
            for threads in (1, 2):
                assert (lightfoot.searchsorted(keys, queries, side, threads=threads) == ranks).all()


def test_the_largest_integer_may_be_many_keys():
    for kind in ["uint32", "int32", "uint64", "int64"]:
        keys = numpy.full(1 << 18, numpy.iinfo(kind).max, dtype=kind)
        queries = numpy.full(5000, numpy.iinfo(kind).max, dtype=kind)
        assert (lightfoot.searchsorted(keys, queries, "right") == len(keys)).all()
        assert (lightfoot.searchsorted(keys, queries, "left") == 0).all()
        assert (lightfoot.Index(keys).searchsorted(queries, "right") == len(keys)).all()


def test_an_array_that_is_not_sorted_gives_positions_within_it():
    random = numpy.random.default_rng(5)
    keys = random.normal(size=1 << 19)
    ranks = lightfoot.searchsorted(keys, random.normal(size=20_000))
    assert ranks.min() >= 0 and ranks.max() <= len(keys)


def test_shapes_are_those_of_the_queries():
    keys = numpy.arange(10, dtype=numpy.int64)
    assert lightfoot.searchsorted(keys, 3) == 3
    assert isinstance(lightfoot.searchsorted(keys, 3), numpy.intp)
    assert lightfoot.searchsorted(keys, [[1, 2], [3, 40]]).tolist() == [[1, 2], [3, 10]]
    assert lightfoot.searchsorted(keys, []).shape == (0,)
    assert lightfoot.searchsorted(keys, numpy.arange(20)[::2]).tolist() == [0, 2, 4, 6, 8] + [10] * 5
    out = numpy.empty((2, 1), dtype=numpy.intp)
    assert lightfoot.searchsorted(keys, [[4], [5]], out=out) is out
    assert out.tolist() == [[4], [5]]


def test_keys_are_not_copied(tmp_path):
    """A file of keys that is mapped read-only is searched where it lies."""
    path = tmp_path / "keys"
    numpy.arange(0, 2000, 2, dtype=numpy.uint64).tofile(path)
    keys = numpy.memmap(path, dtype=numpy.uint64, mode="r")
    assert lightfoot.searchsorted(keys, numpy.array([7, 8], dtype=numpy.uint64)).tolist() == [4, 4]
    assert lightfoot.Index(keys).searchsorted([9]).tolist() == [5]


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_an_index_is_saved_and_opened(kind, tmp_path):
    random = numpy.random.default_rng(3)
    keys = numpy.sort(random_numbers(random, kind, 5000))
    index = lightfoot.Index(keys, threads=2)
    index.save(tmp_path / "x.index")
    again = lightfoot.Index.open(tmp_path / "x.index")
    assert (again.dtype, len(again), again.nbytes) == (keys.dtype, 5000, index.nbytes)
    queries = random_numbers(random, kind, 999)
    assert (again.searchsorted(queries) == numpy.searchsorted(keys, queries)).all()
    assert numpy.array_equal(again[:], keys, equal_nan=keys.dtype.kind == "f")
    assert again[7] == keys[7] and again[-1000] == keys[-1000]
    assert numpy.array_equal(again[100:2200], keys[100:2200]) and len(again[30:20]) == 0


def test_ranges_are_slices():
    keys = numpy.array([1, 3, 3, 5, 9], dtype=numpy.int32)
    index = lightfoot.Index(keys)
    within = {
        "left": lambda key: 3 <= key < 5,
        "right": lambda key: 3 < key <= 5,
        "both": lambda key: 3 <= key <= 5,
        "neither": lambda key: 3 < key < 5,
    }
    for inclusive, holds in within.items():
        found = keys[index.range(3, 5, inclusive=inclusive)].tolist()
        assert found == [key for key in keys.tolist() if holds(key)], inclusive
    assert keys[index.range(low=4)].tolist() == [5, 9]
    assert keys[index.range(high=2.5)].tolist() == [1]
    assert index.range() == slice(0, 5)
    assert keys[index.range(8, 2)].tolist() == []
    assert 9 in index and 8 not in index and 3.5 not in index and -1 not in index


def test_floats_keep_numpys_order():
    """0 and -0 are equal, and any NaN lies behind all numbers."""
    for kind in ["float32", "float64"]:
        keys = numpy.array([-1, 0.0, -0.0, 0.0, 2, numpy.inf, -numpy.nan, numpy.nan], dtype=kind)
        queries = numpy.array([0.0, -0.0, numpy.nan, -numpy.nan, numpy.inf], dtype=kind)
        for side in SIDES:
            ranks = numpy.searchsorted(keys, queries, side).tolist()
            assert lightfoot.searchsorted(keys, queries, side).tolist() == ranks
            assert lightfoot.Index(keys).searchsorted(queries, side).tolist() == ranks
        with pytest.raises(ValueError, match="position 1 is smaller"):
            lightfoot.Index(numpy.array([-numpy.nan, 1, numpy.nan], dtype=kind))


def test_threads_of_python_share_an_index():
    keys = numpy.arange(0, 1_000_000, 3, dtype=numpy.uint32)
    index = lightfoot.Index(keys)
    queries = numpy.random.default_rng(1).integers(0, 1_000_000, 200_000, dtype=numpy.uint32)
    ranks = numpy.searchsorted(keys, queries)
    wrong = []

    def search():
        for _ in range(3):
            if not (index.searchsorted(queries) == ranks).all():
                wrong.append(1)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_lock_is_released_during_a_search():
    """Another Python thread runs while one long search does; with the lock held it would not."""
    keys = numpy.arange(1 << 20, dtype=numpy.float64)
    queries = numpy.random.default_rng(1).uniform(0, 1 << 20, 4_000_000)
    ticks, searching = [], threading.Event()

    def tick():
        searching.wait()
        while searching.is_set():
            ticks.append(1)
            # Gives the lock back, since nobody is made to here.
            time.sleep(0)

    thread = threading.Thread(target=tick)
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        thread.start()
        searching.set()
        lightfoot.searchsorted(keys, queries)
        during = len(ticks)
    finally:
        searching.clear()
        sys.setswitchinterval(before)
        thread.join()
    assert during > 100
