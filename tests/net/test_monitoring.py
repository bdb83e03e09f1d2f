"""What a running gateway reports to whoever watches it: /healthz, /readyz, /metrics, alert rules and the dashboard."""

import itertools
import json
import re
import shutil
import socket
import struct
import subprocess
import urllib.error
import urllib.request

import pytest

from frames import CLIENT, SERVER, checksum, packet4
from gateway import ROOT, SLUICE, Gateway, config
from hosts import Lab, wait_until

PROMETHEUS = ROOT / "packaging" / "prometheus"
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (prometheus)")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """A router that inspects, on two kernel interfaces; its twins have no addresses yet, and EVE goes to a place that can be full."""
    folder = tmp_path_factory.mktemp("monitoring")
    rules = folder / "test.rules"
    rules.write_text('alert udp any any -> any any (msg:"x"; sid:1;)\n', encoding="utf-8")
    with Lab() as lab:
        host, other = lab.host("router"), lab.host("other")
        for interface in ("lan0", "wan0"):
            lab.join(other, interface, host, interface)
        host.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        text = config([("lan", "lan0", "sl-lan"), ("wan", "wan0", "sl-wan")],
                      inspect=(f'rules = ["{rules}"]', "flows = 1024", "streams = 64", "http = 16", 'stream_memory = "4M"', 'http_memory = "4M"',
                               'fragment_memory = "1M"', f'eve = "{folder}/eve.json"', "stats_interval = 1"))
        gateway = Gateway(host, folder, text).start()
        gateway.other, gateway.eve = other, folder / "eve.json"
        yield gateway


def address(gateway):
    for number, twin in ((1, "sl-lan"), (2, "sl-wan")):
        gateway.host.ip(f"addr replace 10.{number}.0.1/24 dev {twin}")


def ready(gateway):
    """/readyz's HTTP status and its answer."""
    def ask():
        try:
            with urllib.request.urlopen(f"http://{gateway.api}/readyz", timeout=5) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())

    return gateway.host.inside(ask)


def ailing(gateway, check):
    """Whether this is all that is wrong, in all three places."""
    metric = [line for line in gateway.get("/metrics").splitlines() if line.startswith("sluice_ailments{") and not line.endswith(" 0")]
    status, answer = ready(gateway)
    names = {one["name"] for one in answer.get("ailments", [])}
    if check is None:
        return status == 200 and answer == {"status": "ready"} and not metric and gateway.why_degraded() == ""
    return (status == 503 and names == {check} and answer["status"] == "not ready" and answer["why"] == gateway.why_degraded() and
            len(metric) == 1 and metric[0].startswith(f'sluice_ailments{{check="{check}"}} '))


def test_twins_without_addresses_are_not_ready(gateway):
    assert wait_until(lambda: ailing(gateway, "twin_unaddressed"), 3), gateway.why_degraded()
    assert "port lan: its twin sl-lan has no address (address = [...] of the port, ip addr add" in gateway.why_degraded()
    address(gateway)
    assert wait_until(lambda: ailing(gateway, None), 3), gateway.why_degraded()
    gateway.host.ip("addr del 10.1.0.1/24 dev sl-lan")
    assert wait_until(lambda: ailing(gateway, "twin_unaddressed"), 3), gateway.why_degraded()
    gateway.host.ip("addr add 2001:db8::1/64 dev sl-lan")
    assert wait_until(lambda: ailing(gateway, None), 3), "one of IPv6 will do"
    gateway.host.ip("addr del 2001:db8::1/64 dev sl-lan")
    gateway.host.ip("link add br0 type bridge")
    gateway.host.ip("link set sl-lan master br0")
    assert wait_until(lambda: ailing(gateway, None), 3), "what stands on it has the address"
    gateway.host.ip("link del br0")
    address(gateway)


def test_a_link_that_is_down_is_not_ready(gateway):
    address(gateway)
    assert wait_until(lambda: ailing(gateway, None), 3), gateway.why_degraded()
    gateway.other.ip("link set wan0 down")
    assert wait_until(lambda: ailing(gateway, "link_down"), 3), gateway.why_degraded()
    assert gateway.why_degraded() == "port wan: its link is down (ip link set wan0 up, or look at its other end)"
    gateway.other.ip("link set wan0 up")
    assert wait_until(lambda: ailing(gateway, None), 3), gateway.why_degraded()
    gateway.host.ip("link set lan0 down")
    assert wait_until(lambda: ailing(gateway, "link_down"), 3), gateway.why_degraded()
    gateway.host.ip("link set lan0 up")
    assert wait_until(lambda: ailing(gateway, None), 3), gateway.why_degraded()


def segment(number, right):
    """A TCP frame whose checksum was finished, or was not."""
    content = bytearray(struct.pack("!HHIIBBHHH", 4000, 80, number, 0, 0x50, 2, 1000, 0, 0) + b"data")
    pseudo = socket.inet_aton(CLIENT) + socket.inet_aton(SERVER) + struct.pack("!HH", 6, len(content))
    content[16:18] = struct.pack("!H", checksum(pseudo + bytes(content)) if right else ~checksum(pseudo) & 0xFFFF)
    return packet4(6, bytes(content))


def test_checksums_that_nobody_finishes_are_reported(tmp_path):
    """A driver that does not say which they are; the kernel's end of the TAP is given frames as a card without offloads would send."""
    with Lab() as lab:
        host = lab.host("router")
        text = config([("lan", "net_tap0,iface=dt0", ""), ("wan", "net_null0,no-rx=1", "")], size="256M", route=("kernel = false", "max_ipv4 = 10_000", "max_ipv6 = 10_000"))
        gateway = Gateway(host, tmp_path, text).start()
        assert "does not say which checksums its other end leaves unfinished" in gateway.log()
        wire = host.inside(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        wire.bind(("dt0", 0))

        def send_until(enough, right):
            """Of each burst one is looked at, and how long a burst is, is the machine's. How many frames it took."""
            numbers = itertools.count()

            def send():
                wire.send(segment(next(numbers), right))
                return enough(gateway.stats()["ports"][0])
            assert wait_until(send, 20, 0.01), gateway.stats()["ports"][0]
            return next(numbers)

        before = gateway.stats()["ports"][0]
        sent = send_until(lambda port: port["checksums_wrong"] - before["checksums_wrong"] >= 3, right=False)
        assert wait_until(lambda: ailing(gateway, "checksums_unfinished"), 5), gateway.why_degraded()
        assert "ethtool -K DEV tx off" in gateway.why_degraded() and gateway.log().count("have wrong checksums") == 1
        after = gateway.stats()["ports"][0]
        assert 3 <= after["checksums_wrong"] - before["checksums_wrong"] <= after["checksums_checked"] - before["checksums_checked"] <= sent, after
        assert f'sluice_port_checksums_wrong_total{{port="lan"}} {after["checksums_wrong"]}' in gateway.get("/metrics")
        send_until(lambda port: port["checksums_checked"] > 4 * port["checksums_wrong"], right=True)
        assert wait_until(lambda: ailing(gateway, None), 15), gateway.why_degraded()
        assert "most TCP and UDP checksums are right again" in gateway.log()
        wire.close()
        gateway.interrupt()


def test_a_full_disk_is_not_ready(gateway):
    """EVE's file moves to a device that is always full, and back."""
    address(gateway)
    gateway.eve.rename(f"{gateway.eve}.1")
    gateway.eve.symlink_to("/dev/full")
    gateway.control("reopen")
    assert wait_until(lambda: ailing(gateway, "output_lost"), 5), gateway.why_degraded()
    assert f"{gateway.eve} cannot be written: No space left on device (free some space on its disk" in gateway.why_degraded()
    gateway.eve.unlink()
    gateway.control("reopen")
    assert wait_until(lambda: ailing(gateway, None), 5), gateway.why_degraded()
    assert wait_until(lambda: gateway.eve.exists() and gateway.eve.stat().st_size > 0, 3)


def test_a_bridge_says_that_its_egress_is_too_small(tmp_path):
    with Lab() as lab:
        host, other = lab.host("router"), lab.host("other")
        lab.join(other, "lan0", host, "lan0", mtu=2000, offloads=False)
        lab.join(other, "wan0", host, "wan0", offloads=False)
        text = config([("lan", "lan0", ""), ("wan", "wan0", "")], last="bridge", size="128M", memory=("frames = 4096", "frame_bytes = 2304"))
        text = text.replace('twin = ""\n', 'twin = ""\nmtu = 2000\n', 1)
        gateway = Gateway(host, tmp_path, text).start()
        note = "port 'lan' mtu = 2000 and its peer 'wan' has 1500"
        assert note in gateway.log() and note in host.run([SLUICE, "check", gateway.config_path])
        out = other.inside(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        with out:
            out.bind(("lan0", 0))

            def too_long():
                out.send(b"\xff" * 6 + b"\x02" + b"\0" * 5 + b"\x88\xb5" + b"x" * 1800)
                return ailing(gateway, "cannot_send")
            assert wait_until(too_long, 15), gateway.why_degraded()
        assert "port wan: fails to send frames" in gateway.log()
        sent = {port["name"]: port["tx_errors"] for port in gateway.stats()["ports"]}
        assert sent["wan"] >= 3 and sent["lan"] == 0
        gateway.interrupt()


@needs_promtool
def test_promtool_has_nothing_to_say(gateway):
    done = subprocess.run(["promtool", "check", "metrics"], input=gateway.get("/metrics"), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def names_in(expression):
    return set(re.findall(r"\bsluice_\w+", expression))


def test_every_metric_of_rules_and_dashboard_exists(gateway):
    there = {re.split(r"[{ ]", line)[0] for line in gateway.get("/metrics").splitlines() if not line.startswith("#")}
    rules = "\n".join(re.findall(r"expr: (?:>\n)?((?:.|\n)*?)(?=\n        \w+:)", (PROMETHEUS / "sluice.rules.yml").read_text(encoding="utf-8")))
    assert len(names_in(rules)) >= 10
    dashboard = json.loads((ROOT / "packaging" / "grafana" / "sluice.json").read_text(encoding="utf-8"))
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = set().union(names_in(rules), *map(names_in, targets))
    assert asked <= there, asked - there
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids) == 16 and dashboard["uid"] == "sluice" and dashboard["title"] == "Sluice"


def test_without_a_gpu_there_is_none_to_reset(gateway):
    assert gateway.control("device", "reset", check=False) == "sluice: this gateway computes on cores alone\n"
