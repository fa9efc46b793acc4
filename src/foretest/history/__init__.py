"""Offline against online over a history of A/B tests.

`__init__.pyi` lists the names to import from here; each is loaded when it is first used, since only a run of a history
needs the whole of the offline test.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
