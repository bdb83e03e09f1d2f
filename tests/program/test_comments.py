"""Comments that clang-format tore: it breaks what is longer than a line, and so takes tables, code and rulers apart."""

import re

from gateway import ROOT

SOURCES = sorted(path for folder in ("src", "examples", "tests") for path in (ROOT / folder).rglob("*.*")
                 if path.suffix in {".h", ".cc", ".cu", ".cuh"})


def torn(text):
    """Numbers of lines that were the end of the line before, and of rulers that stand alone."""
    lines = text.split("\n")
    comments = [re.match(r"\s*//( *)(.*)", line) for line in lines]
    found = [i + 1 for i, comment in enumerate(comments) if comment and re.fullmatch(r"-{5,}", comment[2])]
    for i, (before, this, behind) in enumerate(zip(comments, comments[1:], comments[2:]), 1):
        if not (before and this and behind and this[2] and behind[2]):
            continue
        # A few words as far left as the row before, and then the row's second line in its column.
        is_end = len(this[1]) == len(before[1]) and len(this[2]) < 40 and not this[2].endswith(":")
        if is_end and len(lines[i - 1]) > 95 and len(behind[1]) > len(this[1]) + 1:
            found.append(i + 1)
    return found


def test_a_torn_row_and_a_torn_ruler_are_found():
    row = "//   name    " + "word " * 21 + "the\n//   last\n//           column\n"
    assert torn(row) == [2]
    assert torn("// --- A part\n// ------------------\n") == [2]
    assert torn("// --- A part ---\n//   name   a row\n//          in two lines\n") == []


def test_no_comment_is_torn():
    assert SOURCES
    wrong = [f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in torn(path.read_text(encoding="utf-8"))]
    assert not wrong, "torn by clang-format; write it in lines that fit: " + ", ".join(wrong)
