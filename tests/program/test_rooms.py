"""`control/`, `cli/`, `engine/` and `port/` name no element (docs/architecture.md): adding one is a folder and a line.

What counts as a name, in sources that are no tests: an include of the element's folder; a text that is its name, or has
it as code, a section or a path ("`acl`", "[acl]", "/api/v1/acl"), or as the beginning of a reason or a metric; and an
identifier with it in. Some names are words of the language that mean other things, too (a route of the kernel's): for
these an identifier says nothing.
"""

import re
import subprocess

import pytest
from gateway import ROOT, SLUICE

ROOMS = ("control", "cli", "engine", "port")
WORDS = {"bridge", "echo", "inspect", "mirror", "passive", "route", "touch"}
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# Something else of that name: a family of nftables' rules; metrics of the mirror of the kernel's tables.
ELSE = {("src/control/netlink/source_rules.cc", "bridge"), ("src/control/metrics.cc", "mirror")}


def tokens(line):
    """The line's texts, and its code without them and without comments."""
    texts, code, place = [], "", 0
    while place < len(line):
        if line.startswith("//", place):
            break
        found = TEXT.match(line, place) if line[place] == '"' and line[place - 1:place] != "'" else None
        if found:
            texts.append(found.group()[1:-1].replace('\\"', '"'))
            place = found.end()
        else:
            code += line[place]
            place += 1
    return texts, code


def named(line, names):
    """Elements that a line of a source names."""
    if line.startswith("#include"):
        folder = re.match(r'#include "function/(\w+)/', line)
        return {folder.group(1)} & names if folder else set()
    found = set()
    texts, code = tokens(line)
    for name in names:
        marked = re.compile(rf'^{name}$|[`"\[/]{name}\b|^{name}_')
        part = re.compile(rf'(?<![a-zA-Z]){name}(?![a-z])|{name.capitalize()}(?![a-z])')
        if any(marked.search(text) for text in texts) or (name not in WORDS and part.search(code)):
            found.add(name)
    return found


@pytest.mark.parametrize("line, names", [
    ('#include "function/acl/acl.h"', {"acl"}),
    ('#include "function/routing.h"', set()),
    ('#include "control/netlink/mirror.h"', set()),
    ('  if (name == "bridge") return;  // a bridge', {"bridge"}),
    ('  get("/api/v1/acl/sets", f);', {"acl"}),
    ('  return "set [srtp] max_keys";', {"srtp"}),
    ('  return "not with `inspect`";', {"inspect"}),
    ('  {"inspect_rejected"},', {"inspect"}),
    ('  AclTable table = list_acl(limit);', {"acl"}),
    ('  using media::srtp::Suite;', {"srtp"}),
    ('  Route route = mirror.route();  // "acl"', set()),
    ('  return "no route to a bridge";', set()),
    ('  auto oracle = miracle;', set()),
])
def test_what_names_an_element(line, names):
    assert named(line, {"acl", "bridge", "inspect", "route", "mirror", "srtp"}) == names


def test_rooms_name_no_element():
    listed = subprocess.run([SLUICE, "functions"], capture_output=True, text=True, timeout=60, check=True).stdout
    names = set(re.findall(r"^(\w+): ", listed, re.M))
    assert {"acl", "route", "srtp"} <= names
    names.add("rtsp")  # `srtp`'s own
    wrong = []
    for room in ROOMS:
        for path in sorted((ROOT / "src" / room).rglob("*")):
            if path.suffix not in (".cc", ".h", ".cu", ".cuh") or re.search(r"_test$|^sample_", path.stem):
                continue
            place = str(path.relative_to(ROOT))
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                wrong += [f"{place}:{number}: {name}: {line.strip()}" for name in sorted(named(line, names))
                          if (place, name) not in ELSE]
    assert not wrong, "\n".join(wrong)
