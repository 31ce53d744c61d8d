"""Bad input: one sentence that names what was refused and what would be accepted, and no panic."""

import ctypes
import re

import numpy
import pyarrow
import pytest

import lightfoot

KEYS = numpy.arange(10, dtype=numpy.int64)


def refuses(kind, message, function, *arguments, **options):
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    # A fault of the native half would be no Exception.
    assert isinstance(caught.value, Exception)
    said = str(caught.value)
    assert re.search(message, said), said


def test_keys_of_other_types():
    search = lightfoot.searchsorted
    refuses(TypeError, r"a: expected an array of uint32.*got int16", search, KEYS.astype("int16"), 1)
    refuses(TypeError, r"got float16", search, KEYS.astype("float16"), 1)
    refuses(TypeError, r"got >i8", search, KEYS.astype(">i8"), 1)
    refuses(TypeError, r"got <U1", search, numpy.array(["a"]), 1)
    refuses(TypeError, r"got object", search, numpy.array([{}]), 1)
    refuses(TypeError, r"keys: expected an array of .*got complex128", lightfoot.Index, KEYS + 1j)
    refuses(ValueError, r"a: expected 1 dimension, got 2", search, KEYS.reshape(2, 5), 1)
    refuses(ValueError, r"a: expected 1 dimension, got 0", search, numpy.int64(3), 1)
    refuses(ValueError, r"a: the array has gaps; pass numpy.ascontiguousarray", search, KEYS[::2], 1)
    odd = numpy.frombuffer(bytes(81), dtype=numpy.uint8)[1:].view(numpy.int64)
    refuses(ValueError, r"a: the array is not aligned; pass a copy", search, odd, 1)


def test_queries_of_other_types():
    search = lightfoot.searchsorted
    refuses(TypeError, r"v: expected numbers, got <U1", search, KEYS, ["a"])
    refuses(TypeError, r"v: expected numbers, got complex128", search, KEYS, 1j)
    refuses(TypeError, r"v: expected numbers, got object", search, KEYS, [None])
    refuses(TypeError, r"v: expected numbers, got object", search, KEYS, 10**30)
    refuses(TypeError, r"v: expected numbers, got datetime64", search, KEYS, numpy.array(["2026"], "M8[s]"))
    refuses(ValueError, r"side: expected 'left' or 'right', got 'middle'", search, KEYS, 1, "middle")
    refuses(ValueError, r"threads: expected 1 to 1024, got 0", search, KEYS, 1, threads=0)
    refuses(TypeError, r"", search, KEYS, 1, threads="two")


def test_out_arrays():
    search = lightfoot.searchsorted

    def refuse(kind, message, out, v=(1, 2)):
        refuses(kind, message, search, KEYS, v, out=out)
        refuses(kind, message, lightfoot.Index(KEYS).searchsorted, v, out=out)

    refuse(ValueError, r"out: expected shape \(2,\), got \(3,\)", numpy.empty(3, numpy.intp))
    refuse(TypeError, r"out: expected an array of numpy.intp, got float64", numpy.empty(2))
    refuse(TypeError, r"out: expected an array of numpy.intp, got list", [0, 0])
    refuse(ValueError, r"out: the array has gaps", numpy.empty(4, numpy.intp)[::2])
    fixed = numpy.empty(2, numpy.intp)
    fixed.flags.writeable = False
    refuse(ValueError, r"out: the array is read-only", fixed)
    queries = numpy.array([1, 2])
    refuse(ValueError, r"out: the array shares memory with v", queries, queries)
    refuses(ValueError, r"out: the array shares memory with a", search, KEYS, [1, 2], out=KEYS[3:5])


def test_keys_that_are_not_sorted():
    message = r"keys: the key at position 2 is smaller than the one before it; pass numpy.sort"
    for kind in ["int32", "uint64", "float64"]:
        refuses(ValueError, message, lightfoot.Index, numpy.array([1, 5, 3], dtype=kind))


def test_ranks_that_are_not_there():
    index = lightfoot.Index(KEYS)
    refuses(IndexError, r"rank: there are 10 keys, got 10", lambda: index[10])
    refuses(IndexError, r"rank: there are 10 keys, got -11", lambda: index[-11])
    refuses(ValueError, r"slice: expected step 1, got 2", lambda: index[::2])
    refuses(ValueError, r"inclusive: expected 'left'", index.range, 1, 2, inclusive="all")


def test_files_that_are_no_index(tmp_path):
    refuses(FileNotFoundError, r"No such file or directory: .*none", lightfoot.Index.open, tmp_path / "none")
    refuses(OSError, r"not a regular file|Is a directory", lightfoot.Index.open, tmp_path)
    refuses(FileNotFoundError, r"none", lightfoot.Index(KEYS).save, tmp_path / "none" / "x")
    path = tmp_path / "x.index"
    for junk in [b"", b"x", b"LFINDEX\x1a", bytes(1000), b"LFINDEX\x1a" + bytes(1000)]:
        path.write_bytes(junk)
        refuses(ValueError, r"x\.index: .*index", lightfoot.Index.open, path)
    lightfoot.Index(KEYS).save(path)
    whole = bytearray(path.read_bytes())
    path.write_bytes(whole[:-64])
    refuses(ValueError, r"index file is truncated: \d+ bytes of \d+", lightfoot.Index.open, path)
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        path.write_bytes(damaged)
        refuses((ValueError, TypeError), r"index", lightfoot.Index.open, path)


def test_patterns_that_do_not_parse():
    refuses(ValueError, r"regex parse error:\n    a\(\n     \^\nerror: unclosed group", lightfoot.compile, "a(")
    refuses(ValueError, r"look-around", lightfoot.compile, "(?=a)")
    refuses(ValueError, r"exceeds the limit", lightfoot.compile, r"(\w{900}){900}")
    refuses(TypeError, r"pattern: expected str, got bytes", lightfoot.compile, b"a")
    refuses(TypeError, r"pattern: expected str, got int", lightfoot.compile, 3)
    # Rows may hold a line's end, texts are searched line by line.
    pattern = lightfoot.compile("a\nb")
    assert pattern.contains(pyarrow.array(["a\nb", "ab"])).to_pylist() == [True, False]
    refuses(ValueError, r"line", pattern.contains, b"a\nb")


def test_texts_that_are_none():
    pattern = lightfoot.compile("a")
    for method in [pattern.contains, pattern.count, pattern.find, pattern.find_all, pattern.extract]:
        refuses(TypeError, r"expected bytes, got str; pass text.encode\(\)", method, "a")
        refuses(TypeError, r"expected bytes, or a column of .*, got int", method, 3)
        refuses(TypeError, r"expected bytes, or a column of .*, got NoneType", method, None)
        refuses(TypeError, r"expected bytes, or a column of .*, got list", method, ["a"])
        refuses(TypeError, r"expected bytes, got items of 8 bytes", method, KEYS)
        refuses(ValueError, r"gaps", method, memoryview(b"abcd")[::2])
    refuses(TypeError, r"expected a text, got a column", pattern.find_all, pyarrow.array(["a"]))
    refuses(TypeError, r"expected a column, got a text", pattern.replace, b"a", "b")
    refuses(IndexError, r"group: the pattern has groups 0 to 0, got 1", pattern.extract, b"a", 1)
    refuses(IndexError, r"group: the pattern has groups 0 to 0, got -1", pattern.extract, b"a", -1)
    refuses(IndexError, r"group: the pattern has no group named .x.", pattern.extract, b"a", "x")


def test_columns_of_other_types():
    pattern = lightfoot.compile("a")
    refuses(TypeError, r"strings or binaries, got the Arrow format .l.", pattern.contains, pyarrow.array([1]))
    refuses(TypeError, r"got the Arrow format .n.", pattern.contains, pyarrow.nulls(3))
    table = pyarrow.table({"a": ["x"]})
    refuses(TypeError, r"column: a table; pass one of its columns", pattern.contains, table)
    dictionary = pyarrow.array(["a", "b"]).dictionary_encode()
    refuses(TypeError, r"column: a dictionary; cast it to strings", pattern.contains, dictionary)
    refuses(TypeError, r"got the Arrow format .w:3.", pattern.contains, pyarrow.array([b"abc"], pyarrow.binary(3)))


class Lying:
    """An object whose Arrow methods give what they should not."""

    def __init__(self, given):
        self.given = given

    def __arrow_c_array__(self, requested_schema=None):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def test_objects_with_wrong_capsules():
    pattern = lightfoot.compile("a")
    refuses(TypeError, r"expected a pair of capsules", pattern.contains, Lying(3))
    refuses(TypeError, r"expected a pair of capsules", pattern.contains, Lying((1, 2, 3)))
    refuses(TypeError, r"expected a capsule arrow_schema", pattern.contains, Lying((1, 2)))
    schema, array = pyarrow.array(["a"]).__arrow_c_array__()
    refuses(TypeError, r"expected a capsule arrow_schema", pattern.contains, Lying((array, schema)))
    refuses(KeyError, r"mine", pattern.contains, Lying(KeyError("mine")))
    pair = pyarrow.array(["a"]).__arrow_c_array__()
    assert pattern.contains(Lying(pair)).to_pylist() == [True]
    # A capsule may be taken from once.
    refuses(ValueError, r"column: the schema has no format", pattern.contains, Lying(pair))


def column_of(offsets, values, kind=pyarrow.utf8(), validity=None, offset=0):
    offsets = numpy.array(offsets, dtype=numpy.int64 if "large" in str(kind) else numpy.int32)
    buffers = [validity, pyarrow.py_buffer(offsets), pyarrow.py_buffer(values)]
    return pyarrow.Array.from_buffers(kind, len(offsets) - 1 - offset, buffers, offset=offset)


def test_columns_that_contradict_themselves():
    pattern = lightfoot.compile("a")
    for kind in [pyarrow.utf8(), pyarrow.large_utf8()]:
        for method in [pattern.contains, pattern.count, pattern.find, pattern.extract]:
            refuses(
                ValueError,
                r"column: offsets decrease: row 0 ends at 5, the last one at 2",
                method,
                column_of([0, 5, 2], b"aaaaa", kind),
            )
            message = r"offsets decrease at row 0: -3 after 0"
            refuses(ValueError, message, method, column_of([0, -3, 5], b"aaaaa", kind))
            refuses(ValueError, r"column: offsets decrease: row 0 ends at 9", method, column_of([0, 9, 5], b"aaaaa", kind))


class Structure(ctypes.Structure):
    """``struct ArrowArray``, of which a test sets what it likes."""

    _fields_ = [
        *[(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")],
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        *[(name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private_data")],
    ]


def forged(kind, buffers, **fields):
    """An object with the schema of a type and a structure that nobody checked."""
    schema, _ = pyarrow.array([], kind).__arrow_c_array__()
    pointers = (ctypes.c_void_p * len(buffers))(*buffers)
    array = Structure(buffers=pointers, n_buffers=len(buffers), null_count=-1)
    for name, value in fields.items():
        setattr(array, name, value)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    lying = Lying((schema, make(ctypes.addressof(array), b"arrow_array", None)))
    lying.kept = array, pointers
    return lying


def test_structures_that_are_forged():
    pattern = lightfoot.compile("a")
    text, view = pyarrow.utf8(), pyarrow.string_view()
    words = numpy.zeros(8, numpy.int64)
    at = words.ctypes.data
    no_memory = r"column: a length or offset that no memory has"
    refuses(ValueError, no_memory, pattern.contains, forged(text, [0, at, at], length=-1))
    refuses(ValueError, no_memory, pattern.contains, forged(text, [0, at, at], offset=-1))
    refuses(ValueError, no_memory, pattern.contains, forged(text, [0, at, at], length=1 << 62))
    refuses(ValueError, no_memory, pattern.contains, forged(view, [0, at], n_buffers=-5))
    refuses(ValueError, r"fewer buffers", pattern.contains, forged(text, [0, at], length=1))
    refuses(ValueError, r"fewer buffers", pattern.contains, forged(view, [0], length=1))
    refuses(ValueError, r"a buffer is missing", pattern.contains, forged(text, [0, 0, at], length=1))
    refuses(ValueError, r"a buffer is missing", pattern.contains, forged(view, [0, 0], length=1))
    refuses(ValueError, r"not aligned", pattern.contains, forged(text, [0, at + 1, at], length=1))
    words[0] = 5 << 32
    refuses(ValueError, r"a buffer is missing", pattern.contains, forged(text, [0, at, 0], length=1))
    # A view of 13 bytes in buffer 1, of which there is none.
    words[:2] = 13, 1
    refuses(ValueError, r"row 0 lies in buffer 1; the column has 0", pattern.contains, forged(view, [0, at], length=1))
    words[:2] = 13, 0
    words[7] = 12
    lying = forged(view, [0, at, at, at + 56], length=1)
    refuses(ValueError, r"row 0 ends at 13, beyond the 12 bytes of buffer 0", pattern.contains, lying)
    assert pattern.contains(forged(text, [0, 0, 0], length=0)).to_pylist() == []


def test_what_numpy_cannot_hold():
    pattern = lightfoot.compile("a")
    found = pattern._native.contains(pyarrow.array(["a", None]))
    refuses(ValueError, r"the column has null rows", found.write_to, numpy.empty(2, numpy.uint8))
    found = pattern._native.extract(pyarrow.array(["a"]), 0)
    refuses(TypeError, r"strings have no NumPy array here; use to_pylist", found.write_to, numpy.empty(1, numpy.uint8))
