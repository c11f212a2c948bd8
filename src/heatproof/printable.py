"""Text from files and users, made safe for a terminal: control characters are shown as escapes."""

from __future__ import annotations

import unicodedata

# Controls, formats (direction overrides, joiners), lone surrogates, line separators, unassigned code points.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: object, keep: str = "\n\t") -> str:
    r"""The text with every character that is not shown as itself written out: `\x1b[31m`, `\u202e`, `\udc80`."""
    words = str(text)
    if words.isprintable():
        return words
    return "".join(
        letter.encode("unicode_escape").decode()
        if letter not in keep and unicodedata.category(letter) in _UNSEEN
        else letter
        for letter in words
    )
