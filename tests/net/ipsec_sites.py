"""Two sites with a tunnel whose keys IKE makes: a Sluice at one, at the other a Linux kernel, or a second Sluice where there is no
user-mode Linux. The SAs are a stock charon's at each.

        client                            router                                far: user-mode Linux
        10.1.0.2/24     lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0        vec0 10.2.0.2/24, lo 10.20.0.1/24
                             |     charon over sluice-xfrm.so                  charon over the kernel's own XFRM

                                                                                far-router                       far
                                                                     wan0 | sl-wan 10.2.0.2   sl-lan 10.20.0.254 | lan0   10.20.0.1/24
                                                                                charon over sluice-xfrm.so
"""

import collections
import hashlib
import re
import socket
import struct
import subprocess
import threading
import time

from capture import Capture
from charon import PRELOAD, HostCharon, UmlCharon, connection, why_not_charon
from gateway import Gateway, config
from hosts import wait_until
from topology import PORTS
from uml_peer import UmlPeer

NEAR, FAR = "10.2.0.1", "10.2.0.2"
NEAR_NET, FAR_NET, FAR_HOST = "10.1.0.0/24", "10.20.0.0/24", "10.20.0.1"
FILE_PORT = 7001
SECRET = b"nobody between the sites reads this"

# Sends a file to the first who asks, 2 MB each second: the links are to be busy, and not to overflow.
SEND = """
import socket, sys, time
data = open(sys.argv[3], "rb").read()
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener, listener.accept()[0] as wire:
    began = time.monotonic()
    for at in range(0, len(data), 1 << 15):
        time.sleep(max(0.0, began + at / (1 << 21) - time.monotonic()))
        wire.sendall(data[at:at + (1 << 15)])
"""


def why_no_sites():
    """One sentence why there are no sites here, not even of two Sluices, or None."""
    return why_not_charon() or (None if PRELOAD.exists() else f"needs {PRELOAD}: build it")


def gateway_with_ike(host, folder):
    """Its ports, and where its daemon comes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "xfrm.sock"
    gateway = Gateway(host, folder, config(PORTS, chain=["ipsec", "route"], more=f'\n[ipsec]\nike_socket = "{path}"\n'))
    return gateway.start(), path


class LinuxSite:
    """A kernel that is gateway and host at once."""

    def __init__(self, lab, router, folder):
        cable = lab.host("far")
        lab.join(cable, "eth0", router, "wan0", offloads=False)
        self.peer = UmlPeer(cable, folder / "far").start()
        self.link = cable, "eth0"
        self.peer.run(f"ip addr add {FAR}/24 dev vec0; ip link set vec0 up; ip addr add {FAR_HOST}/24 dev lo; ip route add {NEAR_NET} via {NEAR}")
        self.name = f"Linux {self.peer.run('uname -r').strip()}"

    def start_charon(self, text):
        return UmlCharon(self.peer).start(text)

    def send_file(self, path):
        """The file, which is in its folder, to whom asks first."""
        (self.peer.folder / "send.py").write_text(SEND, encoding="ascii")
        self.peer.run(f"/usr/bin/python3 /mnt/send.py {FAR_HOST} {FILE_PORT} /mnt/{path.name} > /mnt/send.log 2>&1 &")
        assert wait_until(lambda: f":{FILE_PORT} " in self.peer.run("ss -Hltn"), 20), (self.peer.folder / "send.log").read_text()

    @property
    def folder(self):
        return self.peer.folder

    def close(self):
        self.peer.close()


class SluiceSite:
    """A second gateway, and a host behind it."""

    def __init__(self, lab, router, folder):
        self.folder = folder / "far"
        self.router, self.host = lab.host("far-router"), lab.host("far")
        self.link = self.router, "wan0"
        lab.join(*self.link, router, "wan0")
        lab.join(self.host, "eth0", self.router, "lan0")
        self.host.ip(f"addr add {FAR_HOST}/24 dev eth0")
        self.host.ip("route add default via 10.20.0.254")
        self.router.sysctl(net__ipv4__ip_forward=1)
        self.gateway, self.socket = gateway_with_ike(self.router, self.folder)
        self.router.ip("addr add 10.20.0.254/24 dev sl-lan")
        self.router.ip(f"addr add {FAR}/24 dev sl-wan")
        self.router.ip(f"route add {NEAR_NET} via {NEAR} dev sl-wan")
        self.name = "a second Sluice"

    def start_charon(self, text):
        return HostCharon(self.router, self.folder / "charon", self.socket).start(text)

    def send_file(self, path):
        with open(self.folder / "send.log", "wb") as log:
            self.host.spawn(["/usr/bin/python3", "-c", SEND, FAR_HOST, str(FILE_PORT), str(path)], stdout=log, stderr=subprocess.STDOUT)
        assert wait_until(lambda: f":{FILE_PORT} " in self.host.run("ss -Hltn"), 20), (self.folder / "send.log").read_text()

    def close(self):
        self.gateway.interrupt()


class Sites:
    def __init__(self, lab, folder, second_sluice=False):
        self.client, self.router = lab.host("client"), lab.host("router")
        lab.join(self.client, "eth0", self.router, "lan0")
        self.client.ip("addr add 10.1.0.2/24 dev eth0")
        self.client.ip("route add default via 10.1.0.1")
        self.router.sysctl(net__ipv4__ip_forward=1)
        self.there = (SluiceSite if second_sluice else LinuxSite)(lab, self.router, folder)
        self.gateway, path = gateway_with_ike(self.router, folder / "near")
        self.router.ip("addr add 10.1.0.1/24 dev sl-lan")
        self.router.ip(f"addr add {NEAR}/24 dev sl-wan")
        self.router.ip(f"route add {FAR_NET} via {FAR} dev sl-wan")
        assert wait_until(lambda: self.client.reaches(FAR), 20), self.gateway.log()
        self.near = HostCharon(self.router, folder / "near" / "charon", path).start(self.text(near=True))
        self.far = self.there.start_charon(self.text(near=False))

    @staticmethod
    def text(near, esp="aes128gcm16", child=(), more=()):
        """One side's connection."""
        side = slice(None) if near else slice(None, None, -1)
        return connection("site", *(NEAR, FAR)[side], *(NEAR_NET, FAR_NET)[side], esp, child, more)

    def configure(self, near_child=(), **settings):
        """Both daemons anew; no SA is left of what was."""
        self.near.swanctl("--terminate", "--ike", "site", "--timeout", "5", check=False)
        assert wait_until(lambda: self.gateway.metrics()["ipsec_sas"] == 0, 10), self.near.sas()
        for daemon, child in ((self.near, near_child), (self.far, ())):
            daemon.configure(self.text(daemon is self.near, **{"child": child, **settings}))
            daemon.load()

    def up(self):
        said = self.near.initiate("site", check=False)
        assert "established" in said, said + self.near.log()[-3000:] + self.gateway.log()
        assert wait_until(lambda: self.gateway.metrics()["ipsec_sas"] == 2), self.gateway.log()

    def rekey(self):
        """To its end: the old SAs are gone."""
        before = self.near.installed()
        self.near.swanctl("--rekey", "--child", "site")
        assert wait_until(lambda: len(self.near.installed()) == 1 and self.near.installed() != before and
                          self.gateway.metrics()["ipsec_sas"] == 2, 10), self.near.sas()

    def ping(self, count=5, size=56):
        """How many of `count`, which leave at once, were answered within seconds."""
        return self.client.pings(FAR_HOST, count, size)

    def close(self):
        self.gateway.interrupt()
        self.there.close()


class Transfer:
    """A file of some `size` bytes comes from the far site. Meanwhile pings pass and the SAs are rekeyed, and both links of the near
    gateway are captured: `outside` has the frames between the sites, both ways, `inside` those to the client."""

    def __init__(self, sites, size=8 << 20, rekeys=2, pings=400, interval=0.01):
        line = b"%07d " + SECRET + b"\n"
        data = b"".join(line % number for number in range(size // len(line % 0)))
        path = sites.there.folder / "file"
        path.write_bytes(data)
        sites.there.send_file(path)
        self.sent, self.got, self.seconds = data, b"", 0.0
        with Capture(sites.router, "wan0", received_only=True) as to_near, Capture(*sites.there.link, received_only=True) as to_far, \
                Capture(sites.client, "eth0", received_only=True) as inside:
            ping = sites.client.spawn(["ping", "-n", "-q", "-c", str(pings), "-i", str(interval), "-W", "3", FAR_HOST],
                                      stdout=subprocess.PIPE, text=True)
            receiver = threading.Thread(target=lambda: sites.client.inside(self._receive))
            receiver.start()
            assert wait_until(lambda: len(self.got) > len(data) // 16, 20), f"{len(self.got)} B have come"
            for _ in range(rekeys):
                sites.rekey()
            self.got_by_then = len(self.got)  # when all rekeys were over
            receiver.join()
            said = ping.communicate(timeout=60)[0]
        self.outside, self.inside = to_near.frames + to_far.frames, inside.frames
        found = re.search(r"(\d+) packets transmitted, (\d+) received(?:, \+(\d+) duplicates)?", said)
        self.pings, self.answers, self.duplicates = (int(number or 0) for number in found.groups())

    def _receive(self):
        began = time.monotonic()
        with socket.create_connection((FAR_HOST, FILE_PORT), 20) as wire:
            while some := wire.recv(1 << 16):
                self.got += some
        self.seconds = time.monotonic() - began

    def digests(self):
        """SHA-256 of what was sent, and of what came."""
        return tuple(hashlib.sha256(data).hexdigest() for data in (self.sent, self.got))

    def spis(self):
        """Of the ESP between the sites: how many packets have each SPI."""
        return collections.Counter(frame[34:38] for frame in self.outside if kind(frame) == "esp")

    def kinds(self):
        """What was between the sites: how many frames of each kind."""
        return collections.Counter(map(kind, self.outside))

    @staticmethod
    def with_secret(frames):
        """In how many of them the file can be read."""
        return sum(SECRET in frame for frame in frames)


def kind(frame):
    """What a frame between the sites is. "link": ARP, and IPv6, of which hosts send there what concerns the link alone."""
    if frame[12:14] in (b"\x08\x06", b"\x86\xdd"):
        return "link"
    assert frame[12:15] == b"\x08\x00\x45", frame.hex()
    if frame[23] == 17 and {500, 4500} & set(struct.unpack_from("!HH", frame, 34)):
        return "ike"
    return "esp" if frame[23] == 50 else f"protocol {frame[23]}"
