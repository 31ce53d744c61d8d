"""Search in sorted arrays and in text, where they lie.

>>> import numpy, lightfoot
>>> keys = numpy.array([10, 20, 20, 40], dtype=numpy.uint32)
>>> lightfoot.searchsorted(keys, [20, 41])
array([1, 4])
>>> index = lightfoot.Index(keys)
>>> index.contains([20, 30])
array([ True, False])
>>> words = lightfoot.compile(r"\\w+ing")
>>> words.find_all(b"sing\\nsong\\ndancing with bears\\n")
array([[ 0,  4],
       [10, 17]])

Arrays, texts and columns are not copied, and other Python threads run while they are searched. The
calls say what they copy nevertheless.

``%load_ext lightfoot`` brings ``%%lightfoot`` to notebooks, and ``pytest --lightfoot`` counts
instructions and misses of tests; both need the command ``lightfoot`` on PATH.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._native import Column, __version__

if TYPE_CHECKING:
    from ._pattern import Pattern, compile
    from ._search import Index, searchsorted

__all__ = ["Column", "Index", "Pattern", "__version__", "compile", "searchsorted"]

#: Where names are defined that need NumPy. Its import takes longer than all else, and neither the
#: plug-in of pytest nor a counted cell should bring it.
_HOMES = {
    "Index": "._search",
    "searchsorted": "._search",
    "Pattern": "._pattern",
    "compile": "._pattern",
}


def __getattr__(name: str) -> Any:
    """Imports the module of a name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lightfoot' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: object) -> None:
    """Registers the cell magic ``%%lightfoot``; IPython calls this for ``%load_ext lightfoot``."""
    from . import _magic

    _magic.register(shell)
