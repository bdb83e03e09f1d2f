"""Ctrl-C in `make demo`, at any step of it: one line, exit status 130, and no namespace stays."""

import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from gateway import ROOT


@pytest.mark.parametrize("step", ["", "a full-size table", "network namespaces", "sluice is up", "real traffic",
                                  "intrusion prevention", "SRTP"])
def test_ctrl_c_is_one_line(tmp_path, step):
    demo = subprocess.Popen([sys.executable, "-u", ROOT / "scripts" / "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, start_new_session=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    errors = []
    reader = threading.Thread(target=lambda: errors.append(demo.stderr.read()))
    reader.start()
    try:
        if step:
            assert any(step in line for line in iter(demo.stdout.readline, "")), errors
        else:
            # In the program that makes its table.
            children = f"/proc/{demo.pid}/task/{demo.pid}/children"
            while demo.poll() is None and not open(children, encoding="ascii").read():
                pass
        # As a terminal does: to all of its processes.
        os.killpg(demo.pid, signal.SIGINT)
        output = demo.stdout.read()
        assert demo.wait(30) == 130, output
        reader.join()
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
    assert errors[0].splitlines()[-1] == "demo: interrupted; nothing is left behind"
    assert "Traceback" not in output + errors[0] and "KeyboardInterrupt" not in output + errors[0], errors[0]
    left = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert not re.search(rf"-{demo.pid}-", left), left
    assert not list(tmp_path.iterdir())
