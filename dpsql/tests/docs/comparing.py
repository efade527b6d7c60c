"""Whether what a document shows of the command line is what was printed: noisy numbers by their size, all else to the letter.

A line of `…` in a document stands for any lines that it leaves out. Noisy are the rows of answers, whose numbers are
held to their error bars where they have some and else to their size, and what `dpsql audit`, `dpsql local
estimate` and `dpsql bounds` measure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["NUMBER", "compare"]

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
RULE = re.compile(r"[-+]*--[-+]*")
DRAWN = frozenset("█●├─┤")
BARRED = re.compile(r"(-?[\d.]+) +± ([\d.]+)")
ESTIMATE = re.compile(r"(\w+) +(\d+) +(-?[\d.]+) +([\d.]+)")
LEFT_OUT = "…"
MEASURED = "# measured privately"

HALF_WIDTHS = 6
"""Two draws are further apart than so many ends of a 95 % bar once in 10^6: of Laplace noise, 7 10^-8 · 10."""


def close(shown: str, printed: str) -> bool:
    """Say whether two noisy numbers can be draws of one: within a quarter, and 40 for a count."""
    a, b = float(shown), float(printed)
    return abs(a - b) <= abs(a) / 4 + (0 if "." in shown else 40)


def blank(line: str) -> str:
    return re.sub(r"\s+", " ", NUMBER.sub("0", line)).strip()


def bars(header: str, row: str) -> dict[int, float]:
    """Return how far apart two draws may be, by the number's place in the row, for numbers that have bars."""
    names, cells = ([part.strip() for part in line.split(" | ")] for line in (header, row))
    found: dict[int, float] = {}
    place = 0
    for name, cell in zip(names, cells, strict=True):
        base = re.sub(r"_(low|high)$", "", name)
        if {f"{base}_low", f"{base}_high"} <= set(names) and NUMBER.fullmatch(cell):
            low, high = (float(cells[names.index(f"{base}_{end}")]) for end in ("low", "high"))
            found[place] = HALF_WIDTHS * (high - low) / 2
        if barred := BARRED.fullmatch(cell):
            found[place] = HALF_WIDTHS * float(barred[2])
            found[place + 1] = max(float(barred[2]) / 4, 10.0 ** -len(barred[2].partition(".")[2]))
        place += len(NUMBER.findall(cell))
    return found


def is_same_row(header: str, shown: str, printed: str) -> bool:
    if blank(shown) != blank(printed):
        return False
    allowed = bars(header, shown)
    numbers = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(
        abs(float(a) - float(b)) <= allowed[place] if place in allowed else close(a, b)
        for place, (a, b) in enumerate(numbers)
    )


def is_same_picture(shown: str, printed: str) -> bool:
    """Of a bar that is drawn, its label and its number are held, and its length is not."""
    texts = [re.split(r"\s{2,}", line.rstrip("".join(DRAWN) + " ").strip()) for line in (shown, printed)]
    header = " | ".join(map(str, range(len(texts[0]))))
    return len(texts[0]) == len(texts[1]) and is_same_row(header, *map(" | ".join, texts))


def is_same_estimate(shown: str, printed: str) -> bool:
    a, b = ESTIMATE.fullmatch(shown.strip()), ESTIMATE.fullmatch(printed.strip())
    if not a or not b or a[1] != b[1]:
        return False
    allowed = HALF_WIDTHS * float(a[4])
    return close(a[4], b[4]) and all(abs(float(a[place]) - float(b[place])) <= allowed for place in (2, 3))


def is_same_finding(shown: str, printed: str) -> bool:
    """Of a row of `dpsql audit` what is claimed and moved is exact; what was measured has a decimal point."""
    numbers = list(zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=False))
    return blank(shown) == blank(printed) and all(close(a, b) if "." in a else a == b for a, b in numbers)


def kinds(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Say of each line what it is (row, estimate, finding, drawn, picture, scale, plain), and for a row which header it is below."""
    kind, header = "plain", ""
    for index, line in enumerate(lines):
        if index + 1 < len(lines) and RULE.fullmatch(lines[index + 1]):
            kind, header = "drawn", line
        elif kind == "drawn" and not RULE.fullmatch(line):
            kind = "row"
        if DRAWN & set(line):
            kind = "picture"
        elif kind == "picture":
            kind = "scale"
        elif kind == "scale" or line.startswith("(") or not line:
            kind = "plain"
        yield kind, header
        if line.startswith("answer   "):
            kind = "estimate"
        elif line.startswith("statement   "):
            kind = "finding"


def is_same(kind: str, header: str, shown: str, printed: str) -> bool:
    if kind == "row":
        return is_same_row(header, shown, printed)
    if kind == "estimate":
        return is_same_estimate(shown, printed)
    if kind == "finding":
        return is_same_finding(shown, printed)
    if kind == "picture":
        return is_same_picture(shown, printed)
    if kind == "scale":
        return blank(shown) == blank(printed)
    if kind == "drawn":
        return re.sub(r"[-\s]+", "", shown) == re.sub(r"[-\s]+", "", printed)
    if MEASURED in shown:
        a, b = (NUMBER.findall(line.partition(MEASURED)[0]) for line in (shown, printed))
        return blank(shown) == blank(printed) and all(map(close, a, b))
    return TIME.sub("then", shown) == TIME.sub("then", printed)


def compare(shown: str, printed: str) -> None:
    """Hold a transcript to what was printed."""
    others = printed.rstrip("\n").split("\n")
    known = list(kinds(others))
    place, is_open = 0, False
    for line in shown.rstrip("\n").split("\n"):
        if line == LEFT_OUT:
            is_open = True
            continue
        here = range(place, len(others) if is_open else min(place + 1, len(others)))
        found = next((i for i in here if is_same(*known[i], line, others[i])), None)
        assert found is not None, f"not printed: {line}\n{printed}"
        place, is_open = found + 1, False
    assert is_open or place == len(others), f"not shown: {others[place]}\n{printed}"
