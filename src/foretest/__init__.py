"""Foretest: what an online A/B test of a recommender would show, from the log you already have.

The public names are those of `__init__.pyi`, which is the only list of them: editors and type checkers read it, and
`dir(foretest)` shows it. Each is imported when it is first used, so that `foretest --help` answers at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
