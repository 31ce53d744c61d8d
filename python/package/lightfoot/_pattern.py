"""Regular expressions over texts and columns.

A text is anything that lends its bytes: bytes, bytearray, memoryview, mmap, NumPy arrays of uint8. It
is searched line by line, as ``grep`` does: no match spans a line's end. A column is an array of strings
or binaries of pyarrow, polars, or another library with Arrow's capsules; it is searched row by row.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy
from numpy.typing import NDArray

from . import _native

Spans = NDArray[numpy.int64]


class Pattern:
    """A compiled regular expression, as :func:`compile` makes it.

    The syntax is that of Rust's ``regex``: no look-around and no back references, and time is
    linear. Threads may share a pattern.

    ================  ==============================  ==========================================
    call              of a text                       of a column
    ================  ==============================  ==========================================
    contains          whether it matches              bool a row
    count             the number of matches           their number in each row
    count_matching    the number of matching lines    the number of matching rows
    find              span of the first match         where the first match of each row starts
    find_all          spans of all matches
    lines             spans of matching lines
    extract           a group, for each such line     a group of the first match of each row
    replace                                           the rows with matches replaced
    ================  ==============================  ==========================================

    Columns come back as they went in: as arrays of pyarrow, series of polars, or else as
    :class:`Column`. Null rows stay null. Places are counted in bytes.

    >>> pattern = compile(r"(?<key>\\w+)=(?<value>\\d+)")
    >>> pattern.contains(b"a=1")
    True
    >>> import pyarrow
    >>> rows = pyarrow.array(["a=1, b=22", None, "none"])
    >>> pattern.count(rows).to_pylist()
    [2, None, 0]
    >>> pattern.extract(rows, "value").to_pylist()
    ['1', None, None]
    """

    __slots__ = ("_native", "_options", "pattern")

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool = False,
        unicode: bool = True,
        dot_all: bool = False,
        multi_line: bool = False,
        verbose: bool = False,
        literal: bool = False,
    ) -> None:
        if isinstance(pattern, (bytes, bytearray)):
            raise TypeError(
                r"pattern: expected str, got bytes; write bytes as (?-u:\xff) or with unicode=False"
            )
        if not isinstance(pattern, str):
            raise TypeError(f"pattern: expected str, got {type(pattern).__name__}")
        options = (ignore_case, unicode, dot_all, multi_line, verbose, literal)
        self._options = [name for name, is_on in zip(_OPTIONS, options, strict=True) if is_on]
        self._native = _native.Pattern(pattern, self._options)
        #: The pattern as it was given.
        self.pattern = pattern

    def contains(self, subject: Any) -> Any:
        """Whether a text matches; of a column, which rows do.

        >>> compile("o").contains(memoryview(b"song"))
        True
        >>> import pyarrow
        >>> compile("^s").contains(pyarrow.array(["song", "dance", None])).to_pylist()
        [True, False, None]
        """
        return _like(subject, self._native.contains(subject))

    def count(self, subject: Any) -> Any:
        """The number of matches in a text, none overlapping; of a column, that of each row.

        >>> compile(r"\\d+").count(b"7 of 12")
        2
        """
        return _like(subject, self._native.count(subject))

    def count_matching(self, subject: Any) -> int:
        """The number of lines of a text, or rows of a column, that match.

        >>> compile("o").count_matching(b"song\\nno, no\\nsix\\n")
        2
        """
        return self._native.count_matching(subject)

    def find(self, subject: Any) -> Any:
        """The span of the first match in a text, or None; of a column, where the first match of
        each row starts, null where there is none.

        >>> compile(r"\\d+").find(b"no 12")
        (3, 5)
        >>> import polars
        >>> compile(r"\\d+").find(polars.Series(["no 12", "none"])).to_list()
        [3, None]
        """
        return _like(subject, self._native.find(subject))

    def find_all(self, text: Any) -> Spans:
        """The spans of all matches in a text, an array of two columns.

        >>> compile(r"\\d+").find_all(b"7 of 12")
        array([[0, 1],
               [5, 7]])
        """
        return _spans(self._native.spans(text, "matches"))

    def lines(self, text: Any) -> Spans:
        """The spans of the lines of a text that match, an array of two columns; the line's end
        belongs to it.

        >>> compile("o").lines(b"song\\nsix\\nno")
        array([[ 0,  5],
               [ 9, 11]])
        """
        return _spans(self._native.spans(text, "lines"))

    def extract(self, subject: Any, group: int | str = 0) -> Any:
        """What a group holds in the first match of each row, null where the group is not.

        Of a text, the rows are the lines that match, and the result is a :class:`Column` of
        binaries. Group 0 is the whole match; named groups may be named.

        >>> compile(r"uid=(\\d+)").extract(b"uid=1\\nnobody\\nuid=22\\n", 1).to_pylist()
        [b'1', b'22']
        """
        if isinstance(group, str):
            number = self._native.group_index(group)
        else:
            number = group.__index__()
            if number < 0:
                raise IndexError(f"group: the pattern has groups 0 to {self.groups}, got {number}")
        return _like(subject, self._native.extract(subject, number))

    def replace(self, column: Any, replacement: str | bytes, *, first_only: bool = False) -> Any:
        """The rows of a column with matches replaced; ``$1`` and ``${name}`` stand for groups.

        >>> import pyarrow
        >>> swap = compile(r"(\\w)=(\\d)")
        >>> swap.replace(pyarrow.array(["a=1, b=2", "c"]), "$2=$1").to_pylist()
        ['1=a, 2=b', 'c']
        """
        if isinstance(replacement, str):
            replacement = replacement.encode()
        return _like(column, self._native.replace(column, replacement, bool(first_only)))

    @property
    def groups(self) -> int:
        """The number of groups, the whole match not counted."""
        return self._native.groups

    def explain(self) -> str:
        """How texts and columns are searched, and why."""
        return self._native.explain()

    def __repr__(self) -> str:
        return f"lightfoot.compile({self.pattern!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return (self.pattern, self._options) == (other.pattern, other._options)

    def __hash__(self) -> int:
        return hash((self.pattern, *self._options))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.pattern, self._options)


def compile(
    pattern: str,
    *,
    ignore_case: bool = False,
    unicode: bool = True,
    dot_all: bool = False,
    multi_line: bool = False,
    verbose: bool = False,
    literal: bool = False,
) -> Pattern:
    """Compiles a regular expression.

    ``ignore_case``: letters match both cases. ``unicode=False``: classes, case and boundaries are
    ASCII's. ``dot_all``: in rows, a dot matches line ends. ``multi_line``: in rows, ``^`` and ``$``
    match at line ends; in texts they always do. ``verbose``: white space and comments in the
    pattern are skipped. ``literal``: the pattern is a string.

    >>> compile("Error", ignore_case=True).contains(b"disk error")
    True
    >>> compile("a(")
    Traceback (most recent call last):
      ...
    ValueError: regex parse error:
        a(
         ^
    error: unclosed group
    """
    return Pattern(
        pattern,
        ignore_case=ignore_case,
        unicode=unicode,
        dot_all=dot_all,
        multi_line=multi_line,
        verbose=verbose,
        literal=literal,
    )


_OPTIONS = ("ignore_case", "unicode", "dot_all", "multi_line", "verbose", "literal")


def _unpickled(pattern: str, options: list[str]) -> Pattern:
    return Pattern(pattern, **{name: name in options for name in _OPTIONS})


def _spans(words: _native.Words) -> Spans:
    return numpy.frombuffer(memoryview(words), dtype=numpy.int64).reshape(-1, 2)


def _like(subject: Any, found: Any) -> Any:
    """The answer in the library that the question came from."""
    if not isinstance(found, _native.Column):
        return found
    library = type(subject).__module__.split(".")[0]
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        if isinstance(subject, pyarrow.Array):
            return pyarrow.chunked_array(found).chunk(0)
        if isinstance(subject, pyarrow.ChunkedArray):
            return pyarrow.chunked_array(found)
    if library == "polars":
        polars = sys.modules["polars"]
        return polars.Series(found).alias(getattr(subject, "name", ""))
    return found
