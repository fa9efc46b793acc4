"""The special functions of SciPy, without what else `scipy.special` imports.

`scipy.special` takes seven times as long to import as its functions: most of it prepares them for arrays of other
libraries, which are never passed here. The functions are the same objects either way.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType


def _functions() -> ModuleType:
    import scipy

    name = "scipy.special"
    if name in sys.modules:
        return sys.modules[name]
    bare = ModuleType(name)
    bare.__path__ = [str(Path(scipy.__file__).parent / "special")]
    sys.modules[name] = bare  # so that importing the functions does not run the package's own module
    try:
        return import_module(f"{name}._ufuncs")
    except ImportError:  # a SciPy that has them elsewhere
        del sys.modules[name]
        return import_module(name)
    finally:
        if sys.modules.get(name) is bare:
            del sys.modules[name]


_ufuncs = _functions()
betainc = _ufuncs.betainc
chdtrc = _ufuncs.chdtrc
erfcx = _ufuncs.erfcx
expit = _ufuncs.expit
fdtrc = _ufuncs.fdtrc
gammainc = _ufuncs.gammainc
gammaincc = _ufuncs.gammaincc
gammaln = _ufuncs.gammaln
kolmogorov = _ufuncs.kolmogorov
logit = _ufuncs.logit
ndtr = _ufuncs.ndtr
ndtri = _ufuncs.ndtri
stdtr = _ufuncs.stdtr
stdtrit = _ufuncs.stdtrit
