"""Hosts on veth as it comes: their kernels leave checksums and cutting up to a card that is not there (docs/ports.md)."""

import json
import re
import signal
import socket
import time

import pytest
from gateway import ROOT, SLUICE
from hosts import Lab, iperf3, stop, wait_until
from topology import CLIENT4, SERVER4, SERVER6, Topology

UDP_SEGMENT = 103  # of SOL_UDP: the size of each datagram of what is sent


def first_router():
    """What the README says to write into router.toml, and what to type."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## A first router\n(.*?)^## ", text, re.M | re.S)[1]
    toml = re.search(r"^```toml\n(.*?)^```$", section, re.M | re.S)[1]
    commands = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    return toml, commands


def checksum_errors(host):
    """What its kernel has refused."""
    counters = host.run("nstat -asz TcpInCsumErrors UdpInCsumErrors Udp6InCsumErrors")
    return sum(int(line.split()[1]) for line in counters.splitlines() if line and not line.startswith("#"))


def test_the_first_router_of_the_readme_carries_tcp_and_udp(tmp_path):
    """Typed as printed, over veth as `ip link add` makes it."""
    toml, commands = first_router()
    (tmp_path / "router.toml").write_text(toml, encoding="utf-8")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "sluice").symlink_to(SLUICE)
    (tmp_path / "page").write_text("a page\n" * 100_000, encoding="utf-8")
    with Lab() as lab:
        client, router, server = (lab.host(name) for name in ("client", "router", "server"))
        for host, interface, net in ((client, "eth1", 1), (server, "eth2", 2)):
            lab.join(host, "eth0", router, interface)
            router.ip(f"link set {interface} down")
            host.ip(f"addr add 10.{net}.0.2/24 dev eth0")
            host.ip(f"route add default via 10.{net}.0.1")
        shell = router.spawn(["bash", "-ec", f"cd {tmp_path}; {commands}\nwait"], stdout=open(tmp_path / "log", "wb"))
        web = server.spawn(["python3", "-m", "http.server", "--directory", tmp_path, "80"])
        log = (tmp_path / "log").read_text
        assert wait_until(lambda: "1 received" in client.run("ping -n -c 1 -W 1 10.2.0.2", check=False), 60), log()
        assert wait_until(lambda: ":80" in server.run("ss -Hltn"), 5)
        assert client.run("curl -sS --max-time 20 http://10.2.0.2/page") == (tmp_path / "page").read_text(), log()
        assert iperf3(client, server, "10.2.0.2")["sum_received"]["bits_per_second"] > 50e6
        assert iperf3(client, server, "10.2.0.2", "-u", "-b", "20M")["sum"]["lost_percent"] < 20
        assert checksum_errors(client) + checksum_errors(server) == 0
        health = router.run("curl -sS http://127.0.0.1:9230/healthz")
        assert json.loads(health)["status"] == "ok", health
        router.run("build/sluice ctl stop".replace("build/sluice", str(SLUICE)))
        stop(web)
        assert shell.wait(20) == 0, log()


@pytest.fixture(scope="module", params=["net_af_packet", "net_af_xdp"])
def offloads(request, tmp_path_factory):
    ports = [("lan", f"{request.param}0,iface=lan0", "sl-lan"), ("wan", f"{request.param}1,iface=wan0", "sl-wan")]
    with Topology(tmp_path_factory.mktemp("offloads"), ports=ports) as network:
        network.start()
        network.driver = request.param
        yield network


@pytest.mark.parametrize("target", [SERVER4, SERVER6])
@pytest.mark.parametrize("options", [(), ("-R",), ("-u", "-b", "20M"), ("-u", "-b", "20M", "-R")], ids=["tcp", "tcp-back", "udp", "udp-back"])
def test_tcp_and_udp_of_local_senders_arrive(offloads, target, options):
    before = offloads.gateway.stats()["ports"]
    end = iperf3(offloads.client, offloads.server, target, *options)
    if "-u" in options:
        assert end["sum"]["bytes"] > 1e6 and end["sum"]["lost_percent"] < 20, end
    else:
        assert end["sum_received"]["bits_per_second"] > 50e6, end
    assert checksum_errors(offloads.client) + checksum_errors(offloads.server) == 0
    after = offloads.gateway.stats()["ports"]
    sender = 1 if "-R" in options else 0
    finished = after[sender]["checksums_finished"] - before[sender]["checksums_finished"]
    assert finished > 100, after
    if offloads.driver == "net_af_packet" and "-u" not in options:
        assert after[sender]["cut_up"] > before[sender]["cut_up"], "no packet of more than the MTU came"
    assert offloads.gateway.stats()["conserved"] and json.loads(offloads.gateway.get("/healthz"))["status"] == "ok"


@pytest.mark.parametrize(("family", "target"), [(socket.AF_INET, SERVER4), (socket.AF_INET6, SERVER6)])
def test_datagrams_that_a_sender_lets_its_card_cut_up_arrive_each(offloads, family, target):
    """UDP_SEGMENT, as QUIC stacks use it: one send, many datagrams."""
    pieces = [bytes([i]) * 1000 for i in range(40)] + [b"end"]
    with offloads.server.inside(lambda: socket.socket(family, socket.SOCK_DGRAM)) as receiver, \
            offloads.client.inside(lambda: socket.socket(family, socket.SOCK_DGRAM)) as sender:
        receiver.bind(("", 7000))
        receiver.settimeout(2)
        sender.setsockopt(socket.SOL_UDP, UDP_SEGMENT, 1000)
        sender.sendto(b"".join(pieces), (target, 7000))
        assert [receiver.recv(2000) for _ in pieces] == pieces


def test_a_wrong_checksum_that_is_no_unfinished_one_stays_wrong(offloads):
    """A damaged packet is its receiver's to judge."""
    before = checksum_errors(offloads.server)
    offloads.forge(offloads.client, "sl-lan", b"x" * 40, (CLIENT4, 5000), (SERVER4, 9))
    assert checksum_errors(offloads.server) == before


def test_a_process_that_was_stopped_for_two_seconds_shows_misses(tmp_path):
    """What waited in the ring of a packet socket is late, and the gateway says so."""
    with Topology(tmp_path, engine=['device = "cpu"']) as network:
        gateway = network.start()
        before = gateway.stats()
        stream = network.client.spawn(f"ping -n -q -i 0.01 -c 300 {SERVER4}")
        time.sleep(0.2)
        gateway.process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        gateway.process.send_signal(signal.SIGCONT)
        stream.wait(30)
        after = gateway.stats()
        misses = sum(lane["misses"] for lane in after["lanes"]) - sum(lane["misses"] for lane in before["lanes"])
        assert misses > 100, after["lanes"]
        assert after["latency"]["max_ns"] > 1.5e9, after["latency"]
