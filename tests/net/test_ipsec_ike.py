"""A gateway whose SAs are a stock charon's, against a real Linux kernel with ESP and a charon of its own.

        client                            router                                far: user-mode Linux
        10.1.0.2/24     lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0        vec0 10.2.0.2/24, lo 10.20.0.1/24
                             |     charon over sluice-xfrm.so                  charon over the kernel's own XFRM
"""

import re
import threading

import pytest
from charon import PRELOAD, HostCharon, UmlCharon, connection, why_not_charon
from gateway import Gateway, config
from hosts import Lab, wait_until
from topology import PORTS
from uml_peer import UmlPeer, why_not_uml

_reason = why_not_uml() or why_not_charon() or (None if PRELOAD.exists() else f"needs {PRELOAD}: build it")
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

NEAR, FAR = "10.2.0.1", "10.2.0.2"
NEAR_NET, FAR_NET, FAR_HOST = "10.1.0.0/24", "10.20.0.0/24", "10.20.0.1"


class Site:
    def __init__(self, lab, folder):
        self.client, self.router, cable = lab.host("client"), lab.host("router"), lab.host("far")
        lab.join(self.client, "eth0", self.router, "lan0")
        lab.join(cable, "eth0", self.router, "wan0", offloads=False)
        self.client.ip("addr add 10.1.0.2/24 dev eth0")
        self.client.ip("route add default via 10.1.0.1")
        self.router.sysctl(net__ipv4__ip_forward=1)
        socket = folder / "xfrm.sock"
        self.peer = UmlPeer(cable, folder / "far").start()
        self.peer.run(f"ip addr add {FAR}/24 dev vec0; ip link set vec0 up; ip addr add {FAR_HOST}/24 dev lo; ip route add 10.1.0.0/24 via {NEAR}")
        text = config(PORTS, chain=["ipsec", "route"], more=f'\n[ipsec]\nike_socket = "{socket}"\n')
        self.gateway = Gateway(self.router, folder, text).start()
        self.router.ip("addr add 10.1.0.1/24 dev sl-lan")
        self.router.ip(f"addr add {NEAR}/24 dev sl-wan")
        self.router.ip(f"route add {FAR_NET} via {FAR} dev sl-wan")
        assert wait_until(lambda: self.client.reaches(FAR), 20), self.gateway.log()
        self.near = HostCharon(self.router, folder / "near", socket).start(self.text(near=True))
        self.far = UmlCharon(self.peer).start(self.text(near=False))

    @staticmethod
    def text(near, esp="aes128gcm16", child=(), more=()):
        side = slice(None) if near else slice(None, None, -1)
        return connection("site", *(NEAR, FAR)[side], *(NEAR_NET, FAR_NET)[side], esp, child, more)

    def up(self, **settings):
        self.near.swanctl("--terminate", "--ike", "site", "--timeout", "5", check=False)
        assert wait_until(lambda: self.gateway.metrics()["ipsec_sas"] == 0, 10), self.near.sas()
        for daemon in (self.near, self.far):
            daemon.configure(self.text(daemon is self.near, **settings))
            daemon.load()
        said = self.near.initiate("site", check=False)
        assert "established" in said, said + self.near.log()[-3000:] + self.gateway.log()
        assert wait_until(lambda: self.gateway.metrics()["ipsec_sas"] == 2), self.gateway.log()

    def ping(self, count=5, interval=0.05, size=56):
        """How many of `count` were answered."""
        said = self.client.run(["ping", "-n", "-c", str(count), "-i", str(interval), "-W", "3", "-s", str(size), FAR_HOST], check=False, timeout=120)
        return int(re.search(r"(\d+) received", said)[1])

    def close(self):
        self.peer.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Lab() as lab:
        one = Site(lab, tmp_path_factory.mktemp("ipsec-ike"))
        yield one
        one.gateway.interrupt()
        one.close()


@pytest.mark.parametrize("esp", ["aes128gcm16", "aes256gcm8", "aes128-sha1", "aes256-sha512", "aes192ctr-sha384", "aes128-sha256-esn", "null-sha256",
                                 "chacha20poly1305"])
def test_traffic_through_a_negotiated_tunnel(site, esp):
    site.up(esp=esp)
    before = site.gateway.metrics()
    for size in (8, 57, 1200):
        assert site.ping(5, size=size) == 5, (site.gateway.drops(), site.peer.run("cat /proc/net/xfrm_stat", check=False), site.near.sas())
    after = site.gateway.metrics()
    for name in ("ipsec_sealed_packets", "ipsec_opened_packets"):
        assert after[name] - before[name] == 15, name


def test_no_packet_is_lost_by_a_rekey_under_load(site):
    site.up(esp="aes128gcm16")
    assert site.ping(3) == 3
    answered = []
    thread = threading.Thread(target=lambda: answered.append(site.ping(600, 0.01)))
    thread.start()
    for _ in range(3):
        site.near.swanctl("--rekey", "--child", "site")
        assert wait_until(lambda: site.gateway.metrics()["ipsec_sas"] == 2, 10)
    thread.join()
    assert answered == [600], (site.gateway.drops(), site.near.log()[-2000:])


def test_what_has_no_sa_yet_asks_for_one(site):
    site.near.swanctl("--terminate", "--ike", "site", "--timeout", "5", check=False)
    for daemon in (site.near, site.far):
        daemon.configure(site.text(daemon is site.near, child=("start_action = trap",) if daemon is site.near else ()))
        daemon.load()
    assert wait_until(lambda: site.gateway.metrics()["ipsec_policies"] >= 2)
    assert wait_until(lambda: site.ping(1) == 1, 20), site.gateway.log() + site.near.log()[-3000:]
    assert site.gateway.drops().get("ipsec_no_sa", 0) >= 1
