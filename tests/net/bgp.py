"""BGP speakers in namespaces: FRR (bgpd and zebra) on the router, BIRD on a peer that announces a table."""

import pathlib
import shutil
import tempfile

from hosts import wait_until

FRR = pathlib.Path("/usr/lib/frr")
BIRD = shutil.which("bird") or "/usr/sbin/bird"


class Bird:
    """BIRD, AS 65002, announcing `routes4` and `routes6` (prefixes) with itself as next hop: one session for IPv4, one for
    IPv6; `addresses` and `neighbours` are a pair each."""

    def __init__(self, host, folder, addresses, neighbours, routes4, routes6=()):
        self.host = host
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        address, address6 = addresses
        neighbour, neighbour6 = neighbours
        self.socket = self.folder / "bird.ctl"
        text = f"""router id {address};
log "{self.folder}/bird.log" all;
protocol device {{ }}
protocol static table4 {{
  ipv4;
  include "{self.folder}/routes4.conf";
}}
protocol static table6 {{
  ipv6;
  include "{self.folder}/routes6.conf";
}}
protocol bgp sluice4 {{
  local {address} as 65002;
  neighbor {neighbour} as 65001;
  ipv4 {{ import none; export all; next hop self; }};
}}
protocol bgp sluice6 {{
  local {address6} as 65002;
  neighbor {neighbour6} as 65001;
  ipv6 {{ import none; export all; next hop self; }};
}}
"""
        (self.folder / "bird.conf").write_text(text, encoding="utf-8")
        self.announce(routes4, routes6)
        host.run([BIRD, "-p", "-c", self.folder / "bird.conf"])
        self.process = host.spawn([BIRD, "-f", "-c", self.folder / "bird.conf", "-s", self.socket,
                                   "-P", self.folder / "bird.pid"])

    def announce(self, routes4, routes6=()):
        for name, routes in (("routes4", routes4), ("routes6", routes6)):
            with open(self.folder / f"{name}.conf", "w", encoding="utf-8") as out:
                out.writelines(f"route {prefix} blackhole;\n" for prefix in routes)

    def birdc(self, command):
        return self.host.run(["birdc", "-s", self.socket, *command.split()])


class Frr:
    """zebra and bgpd, AS 65001, that learn from `neighbours` (IPv4, IPv6) and put what they learn into the host's kernel."""

    def __init__(self, host, address, neighbours):
        self.host = host
        # A folder that the daemons' own user can reach, whatever folder the caller works in.
        self.scratch = tempfile.TemporaryDirectory(prefix="sluice-frr-")
        self.folder = pathlib.Path(self.scratch.name)
        configuration = {
            "zebra": "",
            "bgpd": f"""router bgp 65001
 bgp router-id {address}
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor {neighbours[0]} remote-as 65002
 neighbor {neighbours[0]} timers connect 1
 neighbor {neighbours[1]} remote-as 65002
 neighbor {neighbours[1]} timers connect 1
 address-family ipv4 unicast
  no neighbor {neighbours[1]} activate
 exit-address-family
 address-family ipv6 unicast
  neighbor {neighbours[1]} activate
 exit-address-family
""",
        }
        for daemon, text in configuration.items():
            (self.folder / f"{daemon}.conf").write_text(f"log file {self.folder}/{daemon}.log\n{text}", encoding="utf-8")
        for path in (self.folder, *self.folder.iterdir()):
            shutil.chown(path, "frr", "frr")
        self._start("zebra")
        if not wait_until((self.folder / "zserv.api").exists, 10):
            raise AssertionError("zebra did not start")
        self._start("bgpd", "-p", "179")

    def _start(self, daemon, *arguments):
        self.host.spawn([FRR / daemon, "-u", "frr", "-g", "frr", "-f", self.folder / f"{daemon}.conf",
                                "--vty_socket", self.folder, "-i", self.folder / f"{daemon}.pid",
                                "-z", self.folder / "zserv.api", "-A", "127.0.0.1", "-P", "0", *arguments])

    def vtysh(self, command):
        return self.host.run(["vtysh", "--vty_socket", str(self.folder), "-c", command], check=False)


def private_prefixes(count):
    """`count` distinct IPv4 prefixes, /20 to /32, from 60.0.0.0 on: address space that no test host has."""
    lengths = (24, 24, 22, 24, 23, 20, 24, 32)
    for i in range(count):
        base = (60 << 24) + (i << 12)
        length = lengths[i % len(lengths)]
        yield f"{base >> 24}.{base >> 16 & 255}.{base >> 8 & 255}.0/{length}"
