"""Helpers: cores that compute a part of what lanes do, so that packets of one flow and SA are sealed by several cores."""

import hashlib
import hmac
import os
import re
import struct

import pytest
from captures import ROUTES
from frames import ipv4, read_pcap, write_pcap
from gateway import SLUICE, Gateway, config

FRAMES, SIZE = 32_000, 1300
AUTH_KEY = bytes(range(64))
ETHERNET, IP, ESP, ICV = 14, 20, 8, 32
IPSEC = f"""
[ipsec]

[[ipsec.sa]]
direction = "out"
source = "10.254.0.9"
destination = "10.254.0.1"
spi = 0x1001
proposal = "null-sha512"
auth_key = "{AUTH_KEY.hex()}"

[[ipsec.policy]]
direction = "out"
source = "0.0.0.0/0"
destination = "198.51.100.0/24"
tunnel_source = "10.254.0.9"
tunnel_destination = "10.254.0.1"
"""


def text_of(here, folder, engine, lanes=1, chain=("ipsec", "route"), more=IPSEC):
    """With a capture to read for each lane."""
    table = folder / "routes.txt"
    table.write_text("198.51.100.0/24 10.254.0.1\n", encoding="ascii")
    ports = [(f"in{lane}", f"net_pcap{lane},rx_pcap={folder}/in{lane}.pcap,tx_pcap={folder}/back{lane}.pcap", "") for lane in range(lanes)]
    ports.append(("out", f"net_pcap{lanes},tx_pcap={folder}/out.pcap", ""))
    return config(ports, route=[line.format(table=table) for line in ROUTES], size="320M", listen=here.api, chain=list(chain), more=more,
                  engine=('device = "cpu"', 'busy_cores = "allow"', *engine))


def seal(here, folder, lanes):
    """Seals FRAMES packets of eight flows; how many of them the helper has."""
    helper, lane = sorted(os.sched_getaffinity(0))[:2]
    gateway = Gateway(here, folder, text_of(here, folder, (f"cores = [{lane}]", f"compute_cores = [{helper}]"), lanes)).start()
    assert gateway.process.wait(60) == 0, gateway.log()
    log = gateway.log()
    assert "the captures are forwarded" in log and "counters add up" in log, log
    assert f"helpers that compute on {helper}" in log, log
    jobs, parts = map(int, re.findall(rf"^helper +core {helper}: (\d+) jobs of (\d+) parts of batches", log, re.M)[-1])
    assert jobs >= 16 * parts
    return jobs


def check_sealed(left, in_order):
    """Each packet's ICV is right, numbers of the SA are taken once, and each flow is in order."""
    numbers, inner = [], {}
    for frame in left:
        packet = frame[ETHERNET + IP:]
        assert hmac.new(AUTH_KEY, packet[:-ICV], hashlib.sha512).digest()[:ICV] == packet[-ICV:]
        spi, number = struct.unpack("!II", packet[:ESP])
        assert spi == 0x1001
        numbers.append(number)
        inner.setdefault(packet[ESP + 19], []).append(packet[ESP + IP:ESP + IP + 12])
    assert sorted(numbers) == list(range(1, FRAMES + 1))
    assert not in_order or numbers == sorted(numbers)
    for flow, packets in inner.items():
        assert packets == [ipv4(number, f"198.51.100.{flow}", size=SIZE)[ETHERNET + IP:ETHERNET + IP + 12]
                           for number in range(FRAMES) if number % 8 == flow], flow


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a helper has a core of its own")
@pytest.mark.parametrize("lanes", [1, 2])
def test_packets_of_an_sa_are_sealed_by_several_cores_and_leave_in_order(here, tmp_path, lanes):
    for one in range(lanes):
        write_pcap(tmp_path / f"in{one}.pcap", [ipv4(number, f"198.51.100.{number % 8}", size=SIZE) for number in range(FRAMES)
                                                if number % lanes == one])
    helped = 0
    for _ in range(10):  # a machine that does other things may not run the helper while the lane computes
        helped += seal(here, tmp_path, lanes)
        check_sealed(read_pcap(tmp_path / "out.pcap"), in_order=lanes == 1)
        if helped:
            break
    assert helped


@pytest.mark.parametrize("engine, chain, said", [
    (("cores = [0]", "compute_cores = [0]"), ("ipsec", "route"), "core 0 is a lane's, too"),
    (("compute_cores = [1000]",), ("ipsec", "route"), "core 1000 does not exist"),
    (("compute_cores = [0]",), ("route",), 'no function of the chain has work that other cores can do a part of: leave compute_cores out; '
                                           'these have: '),
])
def test_check_refuses_cores_that_cannot_help(here, tmp_path, engine, chain, said):
    write_pcap(tmp_path / "in0.pcap", [])
    path = tmp_path / "sluice.toml"
    path.write_text(text_of(here, tmp_path, engine, chain=chain, more=IPSEC if "ipsec" in chain else ""), encoding="utf-8")
    answer = here.run([str(SLUICE), "check", str(path)], check=False)
    assert "compute_cores" in answer and said in answer, answer
