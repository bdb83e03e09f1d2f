"""What the program's commands write: all of it, or they say that it is not."""

import os
import subprocess

import pytest
from gateway import ROOT, SLUICE


@pytest.mark.parametrize("command", ["rules --json examples/local.rules", "check examples/echo.toml", "--version"])
def test_output_that_is_not_written_whole_is_no_success(command):
    def run(out):
        return subprocess.run([SLUICE, *command.split()], cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    with open("/dev/full", "wb") as full:
        done = run(full)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("sluice: not all output could be written"), done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = run(writer)
    os.close(writer)
    assert (done.returncode, "not all output" in done.stderr) == (0, False), "as with head"
