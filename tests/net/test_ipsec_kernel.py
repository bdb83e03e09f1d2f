"""SAs with keys by hand between Sluice and a real Linux kernel (ip xfrm, user-mode Linux): what scapy cannot show, that both read
one configuration alike.

        client                     router                                far: user-mode Linux
        10.1.0.2/24    lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0   vec0 10.2.0.2/24, lo 10.20.0.1/24
"""

import pytest
from gateway import Gateway, config
from hosts import Lab, wait_until
from topology import PORTS
from uml_peer import UmlPeer, why_not_uml

pytestmark = pytest.mark.skipif(why_not_uml() is not None, reason=str(why_not_uml()))

NEAR, FAR = "10.2.0.1", "10.2.0.2"
NEAR_NET, FAR_NET, FAR_HOST = "10.1.0.0/24", "10.20.0.0/24", "10.20.0.1"
GCM, SHA256 = "101112131415161718191a1b1c1d1e1f20212223", "80" * 32
ESP = ("esp", "aes128gcm16", f'key = "{GCM}"', f"aead 'rfc4106(gcm(aes))' 0x{GCM} 128", 0x1000, 7)
AH = ("ah", "sha256", f'auth_key = "{SHA256}"', f"auth-trunc 'hmac(sha256)' 0x{SHA256} 128", 0x8000, 8)
# Which SAs, each with its mode, the innermost first.
KINDS = {
    "ESP": [(ESP, "tunnel")],
    "ESP with AH around it": [(ESP, "tunnel"), (AH, "transport")],
    "ESP in transport mode": [(ESP, "transport")],
    "AH in transport mode": [(AH, "transport")],
    "both in transport mode": [(ESP, "transport"), (AH, "transport")],
}


def sluice_text(sas, selectors):
    text = "\n[ipsec]\n"
    for direction, source, destination in (("out", NEAR, FAR), ("in", FAR, NEAR)):
        for (protocol, proposal, keys, _, spi, reqid), mode in sas:
            text += (f'\n[[ipsec.sa]]\ndirection = "{direction}"\nsource = "{source}"\ndestination = "{destination}"\nmode = "{mode}"\n'
                     f'spi = {spi + (direction == "in")}\nprotocol = "{protocol}"\nproposal = "{proposal}"\n{keys}\nreqid = {reqid}\n')
        (protocol, *_, reqid), mode = sas[0]
        inner = selectors if direction == "out" else selectors[::-1]
        text += (f'\n[[ipsec.policy]]\ndirection = "{direction}"\nsource = "{inner[0]}"\ndestination = "{inner[1]}"\nprotocol = "{protocol}"\n'
                 f'mode = "{mode}"\nreqid = {reqid}\n')
        text += f'tunnel_source = "{source}"\ntunnel_destination = "{destination}"\n' if mode == "tunnel" else ""
        text += "ah_around = true\nah_reqid = 8\n" if len(sas) == 2 else ""
    return text


def kernel_commands(sas, selectors):
    """As an operator of the other end types them."""
    for to_near in (True, False):
        source, destination = (FAR, NEAR) if to_near else (NEAR, FAR)
        inner = selectors[::-1] if to_near else selectors
        templates = ""
        for (protocol, _, _, keys, spi, reqid), mode in sas:
            yield (f"ip xfrm state add src {source} dst {destination} proto {protocol} spi {spi + to_near} reqid {reqid} mode {mode}"
                   f" replay-window 64{' flag align4' if protocol == 'ah' else ''} {keys}")  # RFC 4302 section 2.6; Linux' default is 8
            templates += f" tmpl src {source} dst {destination} proto {protocol} reqid {reqid} mode {mode}"
        for way in ("out",) if to_near else ("in", "fwd"):
            yield f"ip xfrm policy add src {inner[0]} dst {inner[1]} dir {way}{templates}"


class Site:
    def __init__(self, lab, folder, sas):
        self.client, self.router, cable = lab.host("client"), lab.host("router"), lab.host("far")
        lab.join(self.client, "eth0", self.router, "lan0")
        lab.join(cable, "eth0", self.router, "wan0", offloads=False)
        self.client.ip("addr add 10.1.0.2/24 dev eth0")
        self.client.ip("route add default via 10.1.0.1")
        self.router.sysctl(net__ipv4__ip_forward=1)
        self.is_tunnel = sas[0][1] == "tunnel"
        selectors = (NEAR_NET, FAR_NET) if self.is_tunnel else (f"{NEAR}/32", f"{FAR}/32")
        self.peer = UmlPeer(cable, folder / "far").start()
        self.peer.run(f"ip addr add {FAR}/24 dev vec0; ip addr add {FAR_HOST}/24 dev lo; ip route add 10.1.0.0/24 via {NEAR} src {FAR_HOST}")
        for command in kernel_commands(sas, selectors):
            self.peer.run(command)
        self.gateway = Gateway(self.router, folder, config(PORTS, chain=["ipsec", "route"], more=sluice_text(sas, selectors))).start()
        self.router.ip("addr add 10.1.0.1/24 dev sl-lan")
        self.router.ip(f"addr add {NEAR}/24 dev sl-wan")
        self.router.ip(f"route add {FAR_NET} via {FAR} dev sl-wan")
        assert wait_until(lambda: self.ping(3) == 3, 20), (self.gateway.drops(), self.peer_counts(), self.gateway.log())

    def ping(self, count=5, size=56, *more):
        """How many of `count` were answered."""
        host, to = (self.client, FAR_HOST) if self.is_tunnel else (self.router, FAR)
        return host.pings(to, count, size, *more)

    def peer_counts(self):
        """What its kernel has refused."""
        lines = (line.split() for line in self.peer.run("cat /proc/net/xfrm_stat", check=False).splitlines())
        return {name: int(value) for name, value in lines if value != "0"}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if not any(error):
            self.gateway.interrupt()
        self.peer.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_and_sluice_understand_each_other(tmp_path, kind):
    with Lab() as lab, Site(lab, tmp_path, KINDS[kind]) as site:
        for size in (8, 57, 1300):
            assert site.ping(5, size) == 5, (size, site.gateway.drops(), site.peer_counts())
        if site.is_tunnel:  # what is too large is fragmented before it is sealed
            before = site.gateway.metrics()["ipsec_fragmented"]
            assert wait_until(lambda: site.ping(3, 1472, "-M", "dont") == 3), (site.gateway.drops(), site.peer_counts())
            assert site.gateway.metrics()["ipsec_fragmented"] >= before + 3
        assert not {name: count for name, count in site.peer_counts().items() if name != "XfrmInNoStates"}


def test_a_kernels_fragments_of_esp_are_put_together(tmp_path):
    with Lab() as lab, Site(lab, tmp_path, KINDS["ESP with AH around it"]) as site:
        before = site.gateway.metrics()["ipsec_reassembled"]
        said = site.peer.run(f"ping -n -c 5 -i 0.05 -W 3 -M dont -s 1472 -I {FAR_HOST} 10.1.0.2", check=False)
        assert "5 received" in said, (said, site.gateway.drops(), site.peer_counts())
        assert site.gateway.metrics()["ipsec_reassembled"] >= before + 5
