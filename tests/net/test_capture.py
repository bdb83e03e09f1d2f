"""`sluice capture`: what a port carries, with direction and what became of it, as tcpdump and a reader of our own see it."""

import collections
import json
import signal
import struct
import subprocess

import pytest

from gateway import SLUICE
from hosts import wait_until
from topology import CLIENT4, SERVER4

IN, OUT = 1, 2
Packet = collections.namedtuple("Packet", "port direction comment data lost")


def blocks(data):
    """(type, body) of each block; asserts that the file is whole."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size >= 12 and struct.unpack_from("<I", data, at + size - 4)[0] == size, "a block is cut"
        yield kind, data[at + 8:at + size - 4]
        at += size


def options(body):
    found = {}
    while len(body) >= 4:
        code, size = struct.unpack_from("<HH", body)
        if code == 0:
            break
        found[code] = body[4:4 + size]
        body = body[4 + (size + 3) // 4 * 4:]
    return found


def packets(data):
    names, found = [], []
    for kind, body in blocks(data):
        if kind == 1:
            names.append(options(body[8:])[2].decode())
        elif kind == 6:
            interface, _, _, size, _ = struct.unpack_from("<5I", body)
            fields = options(body[20 + (size + 3) // 4 * 4:])
            found.append(Packet(names[interface], struct.unpack("<I", fields[2])[0] & 3, fields.get(1, b"").decode(), body[20:20 + size],
                                struct.unpack("<Q", fields[4])[0] if 4 in fields else 0))
    return found


class Capture:
    """`sluice capture ...` on the router, into a file, while the block runs."""

    def __init__(self, network, folder, *arguments):
        self.network, self.path = network, folder / "capture.pcapng"
        self.command = [SLUICE, "capture", "-w", self.path, *arguments]

    def __enter__(self):
        self.process = self.network.router.spawn(self.command, stderr=subprocess.PIPE, text=True)
        assert "capturing" in self.process.stderr.readline()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.said = self.process.communicate(timeout=20)[1]
        assert self.process.returncode == 0, self.said
        self.packets = packets(self.path.read_bytes())


def ping(network, count=3, more=""):
    return network.client.run(f"ping -n -i 0.05 -c {count} -W 1 {more} {SERVER4}", check=False)


def is_icmp(packet):
    return packet.data[12:14] == b"\x08\x00" and packet.data[23] == 1


def test_a_port_shows_both_directions_and_what_became_of_frames(network, tmp_path):
    assert network.reaches(SERVER4)
    with Capture(network, tmp_path, "lan", "icmp") as capture:
        ping(network)
    assert "6 frames captured, 0 lost" in capture.said
    assert [(one.port, one.direction, one.comment) for one in capture.packets] == 3 * [("lan", IN, "forwarded by wan"), ("lan", OUT, "")]
    assert all(map(is_icmp, capture.packets))
    shown = subprocess.run(["tcpdump", "-nr", capture.path], capture_output=True, text=True, check=True).stdout
    assert shown.count(f"{CLIENT4} > {SERVER4}: ICMP echo request") == 3, shown
    # A frame that leaves has its time to live one lower than when it came.
    echo, reply = capture.packets[:2]
    assert echo.data[22] == 64 and reply.data[22] == 63


def test_what_the_host_gets_and_sends_is_seen(network, tmp_path):
    with Capture(network, tmp_path, "any", "icmp or arp", "-c", "4") as capture:
        network.client.run("ping -n -i 0.05 -c 2 -W 1 10.1.0.1")
        capture.process.wait(timeout=20)
    icmp = [one for one in capture.packets if is_icmp(one)]
    assert ("lan", IN, "to the host") in [one[:3] for one in icmp] and ("lan", OUT, "") in [one[:3] for one in icmp], capture.packets
    assert len(capture.packets) == 4, "-c 4"


def test_drops_have_their_reason(network, tmp_path):
    network.client.ip("addr add 169.254.7.7/16 dev eth0")
    try:
        with Capture(network, tmp_path, "drops", "--reason", "link_local", "icmp") as capture:
            before = network.gateway.drops().get("link_local", 0)
            network.client.run(f"ping -n -i 0.05 -c 3 -W 1 -I 169.254.7.7 {SERVER4}", check=False)
            assert wait_until(lambda: network.gateway.drops().get("link_local", 0) == before + 3, 5), network.gateway.drops()
    finally:
        network.client.ip("addr del 169.254.7.7/16 dev eth0")
    assert len(capture.packets) == 3, capture.packets
    assert all(one.port == "lan" and one.direction == IN and one.comment.startswith("dropped: link_local (") for one in capture.packets)


def test_a_pipe_into_tcpdump_ends_with_it(network):
    command = f"{SLUICE} capture lan --direction in icmp --snapshot 60 2>/dev/null | tcpdump -lnr - -c 2 2>/dev/null"
    with network.router.spawn(["sh", "-c", command], stdout=subprocess.PIPE, text=True) as pipe:
        assert wait_until(lambda: ping(network, 2) and pipe.poll() is not None, 20, 0.01)
        shown = pipe.communicate(timeout=20)[0]
    assert shown.count("ICMP echo request") == 2, shown


@pytest.mark.parametrize("arguments, why", [
    (["wlan"], "there is no port \"wlan\""), (["lan", "tpc"], "filter 'tpc'"), (["lane:99"], "there is no"),
    (["lan", "inbound"], "in place of inbound give --direction in"), (["any", "icmp", "and", "(outbound)"], "give --direction out"),
    (["drops", "--reason", "no_ruote"], "did you mean"), (["lan", "--reason", "no_route"], "target \"drops\" alone")])
def test_a_capture_that_cannot_be_is_refused_and_empties_no_file(network, tmp_path, arguments, why):
    path = tmp_path / "there.pcapng"
    path.write_text("kept", encoding="utf-8")
    done = network.router.run([SLUICE, "capture", "-w", path, *arguments], check=False)
    assert why.replace('"', "'") in done.replace('"', "'"), done
    assert path.read_text(encoding="utf-8") == "kept"


def test_a_filter_of_up_to_4096_bytes_is_taken_and_a_longer_one_is_reported(network, tmp_path):
    many = " or ".join(f"host 10.2.0.{i}" for i in range(2, 222))
    assert 3900 < len(many) < 4096
    with Capture(network, tmp_path, "lan", many) as capture:
        ping(network)
    assert any(is_icmp(packet) for packet in capture.packets)
    path = tmp_path / "refused.pcapng"
    answer = network.router.run([SLUICE, "capture", "-w", path, "lan", many + " or host 10.2.0.254" * 20], check=False)
    assert f"filter: has {len(many) + 20 * 19} bytes, and 4096 are the most" in answer and not path.exists(), answer


def test_a_reader_that_stalls_is_notified_that_it_was_left(network):
    """Nobody reads the pipe for longer than two seconds, while more comes than it and the socket hold."""
    with network.router.spawn([SLUICE, "capture", "any"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as capture:
        assert b"capturing" in capture.stderr.readline()
        network.client.run(f"ping -n -q -i 0.002 -c 400 -s 1400 -W 1 {SERVER4}", check=False)
        assert wait_until(lambda: "capture: a reader took nothing" in network.gateway.log(), 10)
        said = capture.communicate(timeout=20)[1].decode()
    assert capture.returncode == 1 and "frames captured, and all that came after is lost" in said, said
    assert "the reader took nothing for 2s, and the gateway left the capture" in said, said


def test_a_full_disk_leaves_whole_frames(network, tmp_path):
    """The folder is a full one by a mount that only the command's namespace of mounts has."""
    small, kept = tmp_path / "small", tmp_path / "kept.pcapng"
    small.mkdir()
    command = (f"mount -t tmpfs -o size=64k none {small} && {SLUICE} capture any -w {small}/x icmp; echo status $?; "
               f"cp {small}/x {kept}")
    with network.router.spawn(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert wait_until(lambda: network.client.run(f"ping -n -f -c 100 {SERVER4}", check=False) and process.poll() is not None, 20, 0.01)
        said = process.communicate(timeout=20)[0]
    written = len(packets(kept.read_bytes()))
    assert "status 1" in said and f"No space left on device; {written} frames before are written" in said, said
    assert written > 200


def test_captures_are_not_for_everybody(network):
    socket = json.loads(network.gateway.get("/api/v1/socket"))["socket"]
    command = "curl -s -X POST -d '{\"target\":\"lan\"}' http://127.0.0.1:9230/api/v1/capture"
    assert socket in network.router.run(["sh", "-c", command], check=False)


def test_what_the_buffer_does_not_take_is_counted(network, tmp_path):
    with Capture(network, tmp_path, "any", "icmp", "--buffer", "16") as capture:
        capture.process.send_signal(signal.SIGSTOP)
        network.client.run(f"ping -n -f -c 1000 -s 1400 {SERVER4}", check=False)
        capture.process.send_signal(signal.SIGCONT)
        network.client.run(f"ping -n -i 0.2 -c 4 {SERVER4}")  # longer than one statistics block waits
    stated = [struct.unpack("<Q", options(body[12:])[5])[0] for kind, body in blocks(capture.path.read_bytes()) if kind == 5]
    assert len(stated) == 1 and f"{stated[0]} lost" in capture.said, capture.said
    assert len(capture.packets) + stated[0] >= 4000
