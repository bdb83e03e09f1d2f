"""What an IKE daemon speaks to, over a Database that keeps what it is told (tests/ipsec/xfrm_server.cc)."""

import json
import os
import pathlib
import select
import subprocess

from charon import BUILD
from hosts import stop, wait_until

PROGRAM = BUILD / "tests" / "ipsec" / "xfrm_server"


def why_not_server():
    """One sentence why it is not here, or None when it is."""
    return None if os.path.exists(PROGRAM) else f"needs {PROGRAM}: build with -DSLUICE_TESTS=ON"


class XfrmServer:
    def __init__(self, folder, *local):
        """`local`: the addresses that are the gateway's own."""
        self.socket = pathlib.Path(folder) / "xfrm.sock"
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([PROGRAM, self.socket, *local], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._answer() == {}

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def state(self):
        return self.ask("state")

    def sas(self):
        """Those that are valid, by SPI."""
        return {sa["spi"]: sa for sa in self.state()["sas"] if not sa["larval"]}

    def policies(self):
        """Those that protect, by (direction, source, destination)."""
        return {(one["direction"], one["source"], one["destination"]): one for one in self.state()["policies"]
                if one["action"] == "protect"}

    def has(self, count, timeout=15):
        """Whether there are so many SAs within a time."""
        return wait_until(lambda: len(self.sas()) == count, timeout)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()  # the end of its commands is its end
            self.process.wait(10)
        stop(self.process)
        self.process.stdout.close()

    def _answer(self):
        ready = select.select([self.process.stdout], [], [], 10)[0]
        line = self.process.stdout.readline() if ready else ""
        assert line, "the server of XFRM does not answer"
        return json.loads(line)
