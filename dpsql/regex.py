"""`regex`: a regular expression that is compiled when it is first used; a command uses few of those that it imports.

House rule: a module's own constants alone. What is made on the way `re` compiles, and remembers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    regex = re.compile
else:
    _METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")

    class _Later:
        def __init__(self, text, flags):
            self._made_of = text, flags

        def __getattr__(self, name):
            if name.startswith("__"):  # a copy asks before it is made
                raise AttributeError(name)
            compiled = re.compile(*self._made_of)
            for each in _METHODS:
                setattr(self, each, getattr(compiled, each))
            return getattr(compiled, name)

    def regex(text, flags=0):
        """Return what `re.compile` does; an error in the text comes at its first use."""
        return _Later(text, flags)
