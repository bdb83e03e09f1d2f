"""`sluice top` on a terminal of 80 columns and 24 rows, as a person uses it: a pseudo-terminal, keys, colours."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

from gateway import SLUICE, Gateway, config
from hosts import Lab, wait_until


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """One with long names and frames that are dropped: a source that never ends, and a bridge to a port without a link."""
    folder = tmp_path_factory.mktemp("top")
    with Lab() as lab:
        host, other = lab.host("router"), lab.host("other")
        lab.join(other, "lan0", host, "lan0")
        ports = [("uplink-north-01", "lan0", ""), ("uplink-south-02", "net_null0,no-rx=1", "")]
        text = config(ports, last="bridge", size="256M", memory=("frames = 4096",))
        gateway = Gateway(host, folder, text).start()
        gateway.other = other
        yield gateway


class Screen:
    """top in a pseudo-terminal; what its screen shows."""

    def __init__(self, host, columns=80, rows=24, **environment):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        variables = {**os.environ, "TERM": "xterm", **environment}
        variables.pop("NO_COLOR" if "NO_COLOR" not in environment else "", None)
        command = ["ip", "netns", "exec", host.name, SLUICE, "top", "--interval", "200ms"]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys.encode())

    def frames(self):
        """All that was drawn so far, each as its lines, with colours."""
        try:
            while True:
                self.text += os.read(self.master, 65536).decode()
        except (BlockingIOError, OSError):
            pass
        drawn = self.text.split("\x1b[H")[1:]
        return [frame.split("\x1b[J")[0].replace("\x1b[K", "").replace("\r", "").split("\n") for frame in drawn if "\x1b[J" in frame]

    def shows(self, pattern, timeout=5):
        """The first frame from now on with such a line."""
        known = len(self.frames())
        assert wait_until(lambda: any(re.search(pattern, "\n".join(frame)) for frame in self.frames()[known:]), timeout), self.frames()[-1:]
        return next(frame for frame in self.frames()[known:] if re.search(pattern, "\n".join(frame)))


def bare(line):
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_nothing_is_cut_at_80_columns_and_24_rows(gateway):
    with Screen(gateway.host) as screen:
        for key, name in (("1", "overview"), ("2", "ports"), ("3", "lanes"), ("4", "drops"), ("5", "devices"), ("6", "health")):
            screen.press(key)
            frame = screen.shows(rf"\[{name}\]  1-6 view")
            assert len(frame) == 24 and all(len(bare(line)) <= 80 for line in frame), frame
        screen.press("1")
        frame = "\n".join(map(bare, screen.shows(r"\[overview\]")))
        for part in ("uplink-north-01", "uplink-south-02", "p99.9 ", "max ", "counters add up", "MISSED", "ERRORS"):
            assert part in frame, frame


def test_keys_sort_pause_and_choose(gateway):
    with Screen(gateway.host) as screen:
        screen.press("2")
        screen.shows(r"\[ports\]")
        screen.press("s")
        screen.shows(r"PORT\*")
        screen.press("r")
        assert bare(screen.shows(r"PORT\*.*\n.*uplink-south-02")[1]).startswith("uplink-south-02")
        screen.press("p")
        screen.shows("PAUSED")
        drawn = len(screen.frames())
        time.sleep(0.5)
        assert len({"\n".join(frame) for frame in screen.frames()[drawn:]}) <= 1, "rates stand still"
        screen.press("p")
        screen.press("?")
        screen.shows("Tab        the next of these")
        screen.press("\x1b[A")  # an arrow is no key of its own
        screen.press("q")
        assert screen.process.wait(5) == 0
        screen.frames()
        assert screen.text.endswith("\x1b[?25h\x1b[?1049l"), "the terminal is as it was"


def test_it_follows_the_size_of_its_terminal(gateway):
    with Screen(gateway.host, 132, 40) as screen:
        assert "BATCHES/s" in "\n".join(screen.shows("LANE"))
        screen.resize(60, 16)
        screen.process.send_signal(signal.SIGWINCH)
        frame = screen.shows("PORT")
        assert wait_until(lambda: len(screen.frames()[-1]) == 16, 3)
        assert all(len(bare(line)) <= 60 for line in screen.frames()[-1]), frame


def test_colours_are_where_they_may_be(gateway):
    with Screen(gateway.host) as screen:
        assert any("\x1b[1m" in line for line in screen.shows("PORT"))
    with Screen(gateway.host, NO_COLOR="1") as screen:
        assert not any("\x1b[" in line for line in screen.shows("PORT"))
    with Screen(gateway.host, TERM="dumb") as screen:
        assert wait_until(lambda: screen.frames() is not None and "counters add up" in screen.text, 5)
        assert "\x1b" not in screen.text, "one report after another"
    report = gateway.host.run([SLUICE, "top", "--once", "--interval", "100ms"])
    assert "\x1b" not in report and "counters add up" in report


def test_what_is_wrong_is_red(gateway):
    gateway.other.ip("link set lan0 down")
    with Screen(gateway.host) as screen:
        frame = screen.shows("its link is down")
        assert any(line.startswith("\x1b[31mport uplink-north-01: its link is down") for line in frame), frame
    gateway.other.ip("link set lan0 up")
