"""Ranks in sorted arrays: NumPy's ``searchsorted``, and an index that is built once.

The order is NumPy's: -0.0 equals 0.0, and NaN lies behind all other numbers. Queries of another type
than the keys are converted so that no comparison changes; keys are never converted. The native half
checks types, dimensions and memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy
from numpy.typing import ArrayLike, NDArray

from . import _native

Side = Literal["left", "right"]
Ranks = NDArray[numpy.intp]

_KEY_TYPES = tuple(
    numpy.dtype(name) for name in ("uint32", "int32", "uint64", "int64", "float32", "float64")
)


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: Side = "left",
    *,
    out: Ranks | None = None,
    threads: int = 1,
) -> Any:
    """The positions at which the values ``v`` would be inserted into the sorted array ``a``.

    Answers are those of ``numpy.searchsorted``. ``a`` is a NumPy array of 32 or 64 bit integers or
    floats, one-dimensional and without gaps; it is not copied, and not checked to be sorted. With
    ``out``, an array of ``numpy.intp`` of the shape of ``v``, nothing is allocated but what
    converting ``v`` takes. An :class:`Index` answers several times as fast once it is built.

    >>> import numpy
    >>> keys = numpy.array([1.0, 2.0, 2.0, numpy.nan])
    >>> searchsorted(keys, [2.0, 3.0], side="right")
    array([3, 3])
    >>> int(searchsorted(keys, numpy.nan))
    3
    """
    keys = numpy.asarray(a)
    _check_keys("a", keys)

    def search(queries: NDArray[Any], ranks: Ranks) -> None:
        _native.searchsorted(keys, queries, side, ranks, _checked_threads(threads))

    return _ranks(keys.dtype, len(keys), v, side, out, search)


class Index:
    """An index over sorted keys, which answers ranks by reading one line of memory.

    ``keys`` is a sorted NumPy array of 32 or 64 bit integers or floats, which may be dropped
    afterwards. Building takes some nanoseconds a key, on as many ``threads``. An index never
    changes, and threads may share it.

    >>> import numpy
    >>> index = Index(numpy.array([10, 20, 20, 40], dtype=numpy.int64))
    >>> index.searchsorted([5, 20, 50])
    array([0, 1, 4])
    >>> 20 in index, 30 in index
    (True, False)
    >>> index.range(15, 40)
    slice(1, 3, None)
    >>> index[1:3]
    array([20, 20])

    Of a file that cannot be read, the error is the system's; of one that is no index or was
    changed, it is ``ValueError``.
    """

    __slots__ = ("_native", "dtype")

    _native: _native.Index
    #: The type of the keys.
    dtype: numpy.dtype[Any]

    def __init__(self, keys: ArrayLike, *, threads: int = 1) -> None:
        array = numpy.asarray(keys)
        _check_keys("keys", array)
        self._native = _native.Index(array, _checked_threads(threads))
        self.dtype = array.dtype

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Index:
        """Reads the file that :meth:`save` wrote, and checks it: its sums, and its order.

        The file is read into memory of this process, not mapped: what another program does to it
        later changes no answer. Cost: one pass over the file.

        >>> import numpy, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "keys.index")
        >>> Index(numpy.arange(0, 100, 2)).save(path)
        >>> len(Index.open(path))
        50
        """
        index = cls.__new__(cls)
        index._native = _native.Index.open(os.fspath(path))
        index.dtype = numpy.dtype(index._native.dtype())
        return index

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a file, whole or not at all."""
        self._native.save(os.fspath(path))

    def searchsorted(
        self,
        v: ArrayLike,
        side: Side = "left",
        *,
        out: Ranks | None = None,
        threads: int = 1,
    ) -> Any:
        """The positions at which the values ``v`` would be inserted: ``numpy.searchsorted``."""

        def search(queries: NDArray[Any], ranks: Ranks) -> None:
            self._native.searchsorted(queries, side, ranks, _checked_threads(threads))

        return _ranks(self.dtype, len(self), v, side, out, search)

    def contains(self, v: ArrayLike, *, threads: int = 1) -> Any:
        """Whether each value of ``v`` equals a key: an array of bool of the shape of ``v``. NaN
        equals nothing.

        >>> import numpy
        >>> Index(numpy.array([1, 3, 5])).contains([[1, 2], [2.5, 5]])
        array([[ True, False],
               [False,  True]])
        """
        values = numpy.asarray(v)
        queries = _queries(self.dtype, values, "left")
        found = numpy.empty(queries.values.shape, dtype=numpy.bool_)
        self._native.contains(queries.values, found.view(numpy.uint8), _checked_threads(threads))
        # A value that had to be rounded or clipped equals no key.
        if queries.exact is not None:
            found &= queries.exact
        return found.reshape(values.shape)[()]

    def __contains__(self, value: object) -> bool:
        return bool(self.contains(value))  # type: ignore[arg-type]

    def range(
        self,
        low: float | None = None,
        high: float | None = None,
        *,
        inclusive: Literal["left", "right", "both", "neither"] = "left",
    ) -> slice:
        """The slice of the keys between ``low`` and ``high``, for whatever is sorted alike.

        By default ``low <= key < high``, as in Python's ranges; None is no bound.

        >>> import numpy
        >>> seconds = numpy.array([10, 25, 25, 70], dtype=numpy.uint32)
        >>> task = numpy.array(["boot", "login", "sync", "idle"])
        >>> task[Index(seconds).range(20, 30)]
        array(['login', 'sync'], dtype='<U5')
        """
        if inclusive not in ("left", "right", "both", "neither"):
            raise ValueError(
                f"inclusive: expected 'left', 'right', 'both' or 'neither', got {inclusive!r}"
            )
        with_low, with_high = inclusive in ("left", "both"), inclusive in ("right", "both")
        start = 0 if low is None else int(self.searchsorted(low, "left" if with_low else "right"))
        stop = len(self)
        if high is not None:
            stop = int(self.searchsorted(high, "right" if with_high else "left"))
        return slice(start, max(start, stop))

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, rank: Any) -> Any:
        """The key at a rank, or those of a slice of ranks as an array."""
        if isinstance(rank, slice):
            start, stop, step = rank.indices(len(self))
            if step != 1:
                raise ValueError(f"slice: expected step 1, got {step}; take every key, then some")
            keys = numpy.empty(max(stop - start, 0), dtype=self.dtype)
            self._native.keys(start if len(keys) else 0, keys)
            return keys
        number = rank.__index__()
        at = number + len(self) if number < 0 else number
        if not 0 <= at < len(self):
            raise IndexError(f"rank: there are {len(self)} keys, got {number}")
        key = numpy.empty(1, dtype=self.dtype)
        self._native.keys(at, key)
        return key[0]

    @property
    def nbytes(self) -> int:
        """The bytes of the index."""
        return self._native.nbytes()

    def explain(self) -> str:
        """The plan in words: the layout and why, the lines that a query reads, the memory."""
        return self._native.explain()

    def __repr__(self) -> str:
        return f"<lightfoot.Index: {len(self)} keys of {self.dtype}, {self.nbytes} bytes>"


def _check_keys(name: str, keys: NDArray[Any]) -> None:
    if keys.dtype not in _KEY_TYPES:
        supported = ", ".join(str(kind) for kind in _KEY_TYPES)
        raise TypeError(f"{name}: expected an array of {supported}, got {keys.dtype}")
    if keys.ndim != 1:
        raise ValueError(f"{name}: expected 1 dimension, got {keys.ndim}")


def _checked_threads(threads: int) -> int:
    if not 1 <= threads <= 1024:
        raise ValueError(f"threads: expected 1 to 1024, got {threads}")
    return threads


def _ranks(
    kind: numpy.dtype[Any],
    keys: int,
    v: ArrayLike,
    side: Side,
    out: Ranks | None,
    search: Callable[[NDArray[Any], Ranks], None],
) -> Any:
    """Searches converted queries, and puts right the ranks of those beyond the key type's range."""
    if side not in ("left", "right"):
        raise ValueError(f"side: expected 'left' or 'right', got {side!r}")
    values = numpy.asarray(v)
    queries = _queries(kind, values, side)
    if out is None:
        ranks = numpy.empty(values.shape, dtype=numpy.intp)
    else:
        ranks = out
        if not isinstance(out, numpy.ndarray) or out.dtype != numpy.intp:
            got = getattr(out, "dtype", type(out).__name__)
            raise TypeError(f"out: expected an array of numpy.intp, got {got}")
        if out.shape != values.shape:
            raise ValueError(f"out: expected shape {values.shape}, got {out.shape}")
        if not out.flags.c_contiguous:
            raise ValueError("out: the array has gaps; pass one that is contiguous")
    flat = ranks.reshape(-1)
    search(queries.values, flat)
    if queries.below is not None:
        flat[queries.below] = 0
    if queries.above is not None:
        flat[queries.above] = keys
    return ranks if out is not None else ranks[()]


class _Queries:
    """Queries of the key type, and which of those asked for they do not stand for."""

    __slots__ = ("above", "below", "exact", "values")

    def __init__(self, values: NDArray[Any]) -> None:
        #: One dimension, contiguous, of the key type.
        self.values = numpy.ascontiguousarray(values).reshape(-1)
        #: Which lie before all values of the key type, where some do.
        self.below: NDArray[numpy.bool_] | None = None
        #: Which lie behind all of them.
        self.above: NDArray[numpy.bool_] | None = None
        #: Which equal the value asked for; None where all do.
        self.exact: NDArray[numpy.bool_] | None = None


def _queries(kind: numpy.dtype[Any], values: NDArray[Any], side: Side) -> _Queries:
    """Converts queries to the key type so that their ranks stay those of the values asked for."""
    if values.dtype == kind:
        return _Queries(values)
    if values.size == 0 and values.dtype == numpy.float64:
        # What numpy.asarray([]) makes.
        return _Queries(numpy.empty(values.shape, dtype=kind))
    if values.dtype.kind not in "biuf":
        raise TypeError(f"v: expected numbers, got {values.dtype}")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if numpy.can_cast(values.dtype, kind, "safe"):
        return _Queries(values.astype(kind))
    flat = values.reshape(-1)
    if kind.kind == "f":
        return _rounded(kind, flat, side)
    return _clipped(kind, flat, side)


def _rounded(kind: numpy.dtype[Any], values: NDArray[Any], side: Side) -> _Queries:
    """Wider numbers as floats: each becomes the next float of the key type that ranks alike."""
    wide = values.astype(numpy.result_type(values.dtype, numpy.float64), copy=False)
    with numpy.errstate(over="ignore"):
        near = wide.astype(kind)
    if side == "left":
        near = numpy.where(near < wide, numpy.nextafter(near, kind.type(numpy.inf)), near)
    else:
        near = numpy.where(near > wide, numpy.nextafter(near, kind.type(-numpy.inf)), near)
    queries = _Queries(near.astype(kind, copy=False))
    queries.exact = near == wide
    return queries


def _clipped(kind: numpy.dtype[Any], values: NDArray[Any], side: Side) -> _Queries:
    """Other integers, or floats, as integers of the key type: clipped, and rounded to where they
    rank alike."""
    limits = numpy.iinfo(kind)
    if values.dtype.kind == "f":
        # Half floats cannot hold the limits of the key types.
        values = values.astype(numpy.result_type(values.dtype, numpy.float64), copy=False)
        whole = numpy.ceil(values) if side == "left" else numpy.floor(values)
        # NaN ranks behind all numbers. The largest 64-bit integers are no floats: the next float
        # behind them is.
        above = ~(whole < float(limits.max) + 1.0) if limits.bits == 64 else ~(whole <= limits.max)
        below = whole < limits.min
        inside = ~(above | below)
        converted = numpy.zeros(values.shape, dtype=kind)
        converted[inside] = whole[inside].astype(kind)
        queries = _Queries(converted)
        queries.exact = inside & (whole == values)
    else:
        as_python = int(values.min()), int(values.max())
        below = values < limits.min if as_python[0] < limits.min else numpy.zeros(values.shape, bool)
        above = values > limits.max if as_python[1] > limits.max else numpy.zeros(values.shape, bool)
        inside = ~(above | below)
        converted = numpy.zeros(values.shape, dtype=kind)
        converted[inside] = values[inside].astype(kind)
        queries = _Queries(converted)
        queries.exact = inside
    queries.below, queries.above = below, above
    return queries
