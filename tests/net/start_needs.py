"""What `check` says of a start on this machine, beside what `run` says."""

import re
import subprocess

from gateway import SLUICE

SMALL = {"size": "128M", "memory": ("frames = 4096",)}
NOT_YET = "until then 'sluice run' refuses to start on this machine"


def both(host, folder, text, before=()):
    """What `check` says of a start, and of `run` its words and its exit status."""
    path = folder / "sluice.toml"
    path.write_text(text, encoding="utf-8")
    checked = host.spawn([*before, SLUICE, "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = checked.communicate(timeout=30)[0]
    assert checked.returncode == 0, said
    run = host.spawn([*before, SLUICE, "run", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    refusal = run.communicate(timeout=30)[0]
    lacks = [line for line in said.splitlines() if line.endswith(NOT_YET)]
    return lacks, refusal.splitlines()[-1], run.returncode


def place(line):
    return re.match(r".*?sluice\.toml(?::\d+)?: ", line)[0]
