"""The completion of bash, as a shell runs it: what follows is what the program itself says."""

import subprocess

import pytest
from gateway import ROOT, SLUICE

SCRIPT = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sluice
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(*words, cwd=None):
    """Lines that a shell would offer after these words; the last one is being typed."""
    script = ROOT / "packaging" / "sluice.bash-completion"
    ran = subprocess.run(["bash", "-c", SCRIPT, "bash", script, SLUICE.resolve(), *words], capture_output=True, text=True, timeout=60, check=True, cwd=cwd)
    return sorted(ran.stdout.split("\n")[:-1]) if ran.stdout.strip() else []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["r"], ["rules", "run"]),
        (["ctl", "re"], ["reload", "reopen"]),
        (["ctl", "acl", "set", "a"], ["add"]),
        (["ctl", "stats", "--js"], ["--json"]),
        (["capture", "--direction", ""], ["in", "out"]),
        (["functions", "--re"], ["--reference"]),
        (["bench", "so"], ["soak"]),
        (["bench", "echo", "--stagger", "o"], ["off", "on"]),
        (["bench", "touch", "--settings", ""], ["path = "]),
        (["no-such-command", "x"], []),
    ],
)
def test_words_are_the_programs(words, offered):
    assert complete(*words) == offered


def test_files_are_those_that_a_command_takes(tmp_path):
    for name in ("a b.toml", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "more").mkdir()
    assert complete("check", "", cwd=tmp_path) == ["a b.toml", "more"]
    assert complete("rules", "", cwd=tmp_path) == ["a b.toml", "more", "notes.txt"]
    assert complete("check", "a b.toml", "", cwd=tmp_path) == ["--help"]
