"""The special functions: SciPy's own, and without the package around them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from foretest import special


def test_they_are_the_functions_of_scipy() -> None:
    import scipy.special

    names = [name for name, value in vars(special).items() if isinstance(value, np.ufunc)]
    assert len(names) >= 14
    for name in names:
        assert getattr(special, name) is getattr(scipy.special, name)


def test_the_package_is_not_imported_and_can_be_later() -> None:
    script = """
import sys
from foretest.special import ndtri
assert "scipy.special" not in sys.modules
assert ndtri(0.5) == 0.0
import scipy.special, scipy.stats
assert scipy.special.ndtri is ndtri
assert scipy.special.lambertw(0.0) == 0.0
assert scipy.stats.norm.ppf(0.5) == 0.0
"""
    subprocess.run([sys.executable, "-c", script], check=True)
