"""Differentially private drop-in replacements for `sklearn.metrics`; errors and losses need no bounds."""

import lazy_loader

# A name is imported when it is first used, from where `__init__.pyi` says.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name not in ("__version__", "exceptions", "mechanisms")]
