"""`make demo`: what it says when nobody interrupts it, between hosts and between captures; and Ctrl-C at any step of it: one line and
exit status 130. Neither leaves a namespace or a file."""

import contextlib
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from gateway import ROOT
from ipsec_sites import why_no_sites
from rtsp_peers import why_not as why_no_film
from uml_peer import why_not_uml

WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-net_admin,-sys_admin")


@contextlib.contextmanager
def demo(folder, data=None, under=()):
    """It runs with its files in `folder`, and in a session of its own; `data`: another SLUICE_DATA."""
    environment = {**os.environ, "TMPDIR": str(folder), **({"SLUICE_DATA": str(data)} if data else {})}
    process = subprocess.Popen([*under, sys.executable, "-u", ROOT / "scripts" / "demo"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def check_nothing_is_left(process, folder):
    left = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert not re.search(rf"-{process.pid}\b", left), left
    assert not list(folder.iterdir())


@pytest.fixture(scope="module")
def small_table(tmp_path_factory):
    """A SLUICE_DATA for demos whose table takes no time to make and to load."""
    folder = tmp_path_factory.mktemp("data")
    table = folder / "routes.txt"
    subprocess.run([ROOT / "scripts" / "make-data", "routes", "--output", table, "--count", "5000", "--count6", "500"], check=True)
    (folder / "routing").mkdir()
    for family, lines in (("ipv4", table.read_bytes()), ("ipv6", b"")):
        (folder / "routing" / f"{family}-routeviews-20151101-asn.txt.xz").write_bytes(lzma.compress(lines))
    return folder


class Finished:
    """A demo that ran to its end."""

    def __init__(self, folder, *arguments):
        with demo(folder, *arguments) as self.process:
            self.output, self.errors = self.process.communicate(timeout=300)
        self.checks = re.findall(r"(?m)^demo:   ok   (.+)$", self.output)

    def check_end(self, folder):
        assert (self.process.returncode, self.errors) == (0, ""), self.output + self.errors
        assert "FAIL" not in self.output and re.search(r"(?m)^  counters .+: they add up$", self.output), self.output
        assert re.match(r"demo: done in \d+ s; everything (worked|that was checked worked; )", self.output.splitlines()[-1])
        check_nothing_is_left(self.process, folder)

    def numbers(self, pattern):
        """What `pattern` finds in the output, once."""
        found = re.findall(pattern, self.output, re.M)
        assert len(found) == 1, f"{pattern}: {found}\n{self.output}"
        return [int(number.replace(",", "")) for number in (found if isinstance(found[0], str) else found[0])]

    def matching(self, pattern):
        """The checks that `pattern` describes."""
        return [text for text in self.checks if re.fullmatch(pattern, text)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def finished(folder):
    """As a newcomer runs it."""
    return Finished(folder)


@pytest.mark.alone
def test_it_ends_well(finished, folder):
    finished.check_end(folder)


@pytest.mark.alone
def test_hosts_reach_each_other_by_a_full_size_table(finished):
    table = finished.numbers(r"^demo: a table of ([\d,]+) IPv4 and ([\d,]+) IPv6 routes, by 254 next hops of each family$")
    assert table[0] > 500_000 and table[1] > 25_000
    # Those of its links, and of the kernel, on top.
    assert all(0 <= more < 100 for more in map(int.__sub__, finished.numbers(r"^  routes +([\d,]+) IPv4, ([\d,]+) IPv6, "), table))
    assert len(finished.matching(r"ping [\d.]+: 50 of 50, [\d.]+ ms on average")) == 4
    assert len(finished.matching(r"ping [\da-f:]+: 50 of 50, [\d.]+ ms on average")) == 1
    assert len(finished.matching(r"traceroute ([\d.]+): 10\.1\.0\.1 -> \1")) == 1
    assert len(finished.matching(r"traceroute ([\da-f:]+): 2001:db8:1::1 -> \1")) == 1
    assert len(finished.matching(r"TCP to the (server|client), 3 s: [\d,]+ Mbit/s")) == 2


@pytest.mark.alone
def test_attacks_are_dropped_while_the_client_browses(finished):
    first, last = map(finished.checks.index, ("the client browses before the attacks", "the client browses after them"))
    between = finished.checks[first + 1:last]
    assert between == ["a file of the system: /?file=../../etc/passwd never arrives",
                       "SQL in the address: /?id=1%20UNION%20SELECT%20password never arrives",
                       "what a root shell says, in two segments, does not come back whole", "telnet is refused at once"]
    alerts = re.findall(r"(?m)^ +\S+  \[Drop\] \[\*\*\] \[1:(\d+):1\] LOCAL .+ \{TCP\} [\d.]+:\d+ -> [\d.]+:\d+$", finished.output)
    assert sorted(alerts) == ["1000002", "1000003", "1000004", "1000008"], finished.output
    assert finished.numbers(r"^  inspected +[\d,]+ frames, [\d,]+ conversations: ([\d,]+) alerts$") == [len(alerts)]
    assert finished.numbers(r"^  drops +([\d,]+) inspect_dropped: ")[0] >= len(alerts)


@pytest.mark.alone
@pytest.mark.skipif(why_no_film() is not None, reason=str(why_no_film()))
def test_the_film_that_arrives_is_the_one_that_was_sent_and_was_secret(finished):
    units, octets = finished.numbers(r"^demo:   ok   ffmpeg wrote ([\d,]+) units of H\.264 and ([\d,]+) B of sound, octet by octet as the"
                                     r" server sent them$")
    assert units > 60 and octets > 8000
    sealed, clear = finished.numbers(r"^demo:   ok   ([\d,]+) RTP packets on the client's link, opened by libsrtp, are the ([\d,]+) of the"
                                     r" server's$")
    protected, = finished.numbers(r"^demo:   ok   the film over, its streams are gone; ([\d,]+) packets of RTP and [\d,]+ of RTCP were"
                                  r" protected$")
    assert sealed == clear == protected > 60
    assert finished.numbers(r"^demo:   ok   a capture of the client's link, [\d,]+ frames: of ([\d,]+) payloads none is there in"
                            r" clear$")[0] > 60


@pytest.mark.alone
@pytest.mark.skipif(why_no_sites() is not None, reason=str(why_no_sites()))
def test_a_file_came_through_a_tunnel_and_was_secret(finished):
    there = "a second Sluice" if why_not_uml() else r"Linux [\d.]+\S*"
    assert len(finished.matching(rf"a tunnel to {there}, by IKEv2, ESP with AES_GCM_16-128: 10 of 10 pings pass")) == 1
    octets, = finished.numbers(r"^demo:   ok   ([\d,]+) B of TCP in [\d.]+ s; SHA-256 as it was sent: [\da-f]{16}…$")
    by_then, answered, pings = finished.numbers(r"^demo:   ok   2 rekeys before ([\d,]+) B had come: (\d+) of (\d+) pings were answered$")
    assert 0 < by_then < octets and answered == pings == 400
    esp, sas = finished.numbers(r"^demo:   ok   a capture between the sites, [\d,]+ frames: ([\d,]+) are ESP, of (\d) SAs; the file can be read in"
                                r" none$")
    assert esp > octets / 1500 and sas == 6
    assert finished.numbers(r"^demo:   ok   a capture behind the gateway, [\d,]+ frames: the file can be read in ([\d,]+)$")[0] > 100


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_without_the_privilege_it_runs_between_captures(tmp_path, small_table):
    finished = Finished(tmp_path, small_table, WITHOUT_PRIVILEGE)
    finished.check_end(tmp_path)
    assert "demo: needs the privilege to make network namespaces and veth pairs; running the same chain" in finished.output
    assert finished.checks[:2] == ["50,000 of 50,000 frames of the capture were read; then it ended by itself",
                                   "it ends cleanly, and its closing summary says that the counters add up"]
    assert len(finished.matching(r"49,000 frames in the other capture, 49,000 with a neighbour's address and one hop less")) == 1


@pytest.mark.parametrize("step", ["", "a full-size table", "network namespaces", "sluice is up", "real traffic",
                                  "intrusion prevention", "SRTP", "IPsec: ", "a file comes from"])
def test_ctrl_c_is_one_line(tmp_path, small_table, step):
    with demo(tmp_path, None if step in ("", "a full-size table") else small_table) as process:
        errors = []
        reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
        reader.start()
        if step:
            lines = []
            for line in iter(process.stdout.readline, ""):
                lines.append(line)
                if step in line:
                    break
            else:
                reader.join()
                pytest.fail("".join(lines + errors))
        else:
            # In the first program that it starts.
            children = f"/proc/{process.pid}/task/{process.pid}/children"
            while process.poll() is None and not open(children, encoding="ascii").read():
                pass
        # As a terminal does: to all of its processes.
        os.killpg(process.pid, signal.SIGINT)
        output = process.stdout.read()
        assert process.wait(30) == 130, output
        reader.join()
    assert errors[0].splitlines()[-1] == "demo: interrupted; nothing is left behind"
    assert "Traceback" not in output + errors[0] and "KeyboardInterrupt" not in output + errors[0], errors[0]
    check_nothing_is_left(process, tmp_path)
