"""Ports that are files or nothing at all: frames of captures in and out, a ring, and null devices."""

import re

from captures import route_capture
from frames import NEXT_MAC, ipv4, ipv6, read_pcap
from gateway import Gateway, config
from hosts import wait_until


def test_pcap_reads_one_file_and_writes_another(here, tmp_path):
    """Every frame that must be forwarded is in the written file, in order, with the right bytes, and no other."""
    coming, leaving = [], []
    macs = {"to": NEXT_MAC}
    for number in range(3000):
        size = 4 + number % 1400
        if number % 100 == 50:
            coming.append(ipv4(number, "198.51.100.7", ttl=1))
        elif number % 100 == 51:
            coming.append(ipv4(number, "203.0.113.7"))
        elif number % 2:
            coming.append(ipv6(number, "2001:db8:51::9", hop_limit=64, size=size))
            leaving.append(ipv6(number, "2001:db8:51::9", hop_limit=63, size=size, **macs))
        else:
            coming.append(ipv4(number, "198.51.100.7", ttl=2 + number % 250, size=size))
            leaving.append(ipv4(number, "198.51.100.7", ttl=1 + number % 250, size=size, **macs))
    gateway = route_capture(here, tmp_path, coming, f"net_pcap1,tx_pcap={tmp_path}/out.pcap")
    mac = gateway.stats()["ports"][1]["mac"]
    assert gateway.process.wait(20) == 0, gateway.log()
    assert "the captures are forwarded" in gateway.log() and "counters add up" in gateway.log()
    source = bytes.fromhex(mac.replace(":", ""))
    assert read_pcap(tmp_path / "out.pcap") == [frame[:6] + source + frame[12:] for frame in leaving]
    assert read_pcap(tmp_path / "back.pcap") == []
    for reason in ("no_route", "ttl_expired"):
        assert re.search(rf"^  {reason} +30 ", gateway.log(), re.M), gateway.log()


def test_ring_hands_back_what_it_is_given(here, tmp_path):
    """Every frame goes around until its TTL ends, and each round is counted."""
    coming = [ipv4(number, "198.51.100.7", ttl=2 + number % 60) for number in range(300)]
    gateway = route_capture(here, tmp_path, coming, "net_ring0")
    rounds = sum(1 + number % 60 for number in range(300))
    assert wait_until(lambda: gateway.drops().get("ttl_expired") == 300, 10), gateway.stats()
    stats = gateway.stats()
    assert {port["name"]: (port["rx_frames"], port["tx_frames"]) for port in stats["ports"]} == \
        {"in": (300, 0), "out": (rounds, rounds)}
    gateway.interrupt()


def test_null_takes_everything(here, tmp_path):
    gateway = route_capture(here, tmp_path, [ipv4(number, "198.51.100.7") for number in range(500)], "net_null0,no-rx=1")
    assert wait_until(lambda: gateway.totals("rx_frames", "tx_frames") == [500, 500], 10), gateway.stats()
    assert gateway.drops() == {}
    gateway.interrupt()


def test_null_makes_frames_without_end(here, tmp_path):
    ports = [("one", "net_null0,size=300", ""), ("two", "net_null1,no-rx=1", "")]
    gateway = Gateway(here, tmp_path, config(ports, last="touch", size="256M", listen=here.api)).start()
    assert wait_until(lambda: gateway.totals("tx_frames")[0] > 100_000, 20), gateway.stats()
    log = gateway.interrupt()
    received, octets = re.search(r"^received +(\d+) frames, (\d+) bytes", log, re.M).groups()
    assert int(octets) == 300 * int(received)
    assert re.search(rf"^transmitted +{received} frames", log, re.M), log
