"""client -- router -- server, with Sluice in the router's namespace as its only forwarder between the two links.

        client                         router                          server
        10.1.0.2/24      lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0      10.2.0.2/24
        2001:db8:1::2/64      |        2001:db8:1::1      2001:db8:2::1       2001:db8:2::2/64

The router's addresses are on the TAP twins, put there by the administrator: by `Topology.start`, once Sluice has made them. A port
whose own lines have an `address` gets none but that.
"""

from frames import udp4
from gateway import Gateway, config
from hosts import Lab, wait_until

CLIENT4, SERVER4 = "10.1.0.2", "10.2.0.2"
CLIENT6, SERVER6 = "2001:db8:1::2", "2001:db8:2::2"
ROUTER_LAN4, ROUTER_WAN4 = "10.1.0.1", "10.2.0.1"
ROUTER_LAN6, ROUTER_WAN6 = "2001:db8:1::1", "2001:db8:2::1"
PORTS = [("lan", "lan0", "sl-lan"), ("wan", "wan0", "sl-wan")]


class Topology:
    def __init__(self, folder, ports=None, mtu=1500, lossy=None, **configuration):
        """`lossy`: what part of all frames both cables lose, repeat and reorder (lossy.py)."""
        self.lab = Lab()
        self.folder = folder
        self.mtu, self.lossy = mtu, lossy
        self.ports = list(ports or PORTS)
        self.configuration = configuration
        self.gateway = None

    def __enter__(self):
        try:
            self.client = self.lab.host("client")
            self.router = self.lab.host("router")
            self.server = self.lab.host("server")
            for host, interface in ((self.client, "lan0"), (self.server, "wan0")):
                if self.lossy:
                    self.lab.join_lossy(host, "eth0", self.router, interface, self.mtu, self.lossy)
                else:
                    self.lab.join(host, "eth0", self.router, interface, self.mtu)
            for host, four, six, gateway4, gateway6 in (
                (self.client, CLIENT4, CLIENT6, ROUTER_LAN4, ROUTER_LAN6),
                (self.server, SERVER4, SERVER6, ROUTER_WAN4, ROUTER_WAN6),
            ):
                host.ip(f"addr add {four}/24 dev eth0")
                host.ip(f"addr add {six}/64 dev eth0 nodad")
                host.ip(f"route add default via {gateway4}")
                host.ip(f"-6 route add default via {gateway6}")
            self.router.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def __exit__(self, *error):
        try:
            if self.gateway and not any(error):
                self.gateway.interrupt()
        finally:
            self.lab.__exit__()

    def second_wan(self):
        """A third link, wan2 (10.3.0.0/24, 2001:db8:3::/64), to the same server. Before `start`."""
        self.lab.join(self.server, "eth1", self.router, "wan2")
        self.server.ip("addr add 10.3.0.2/24 dev eth1")
        self.server.ip("addr add 2001:db8:3::2/64 dev eth1 nodad")
        self.ports.append(("wan2", "wan2", "sl-wan2"))

    def start(self, before_addresses=None):
        """Starts Sluice and gives the twins their addresses, after `before_addresses(self)` where a port needs more."""
        self.gateway = Gateway(self.router, self.folder, self.text()).start()
        if before_addresses:
            before_addresses(self)
        self.address()
        return self.gateway

    def text(self):
        """Its configuration."""
        return config(self.ports, **self.configuration)

    def address(self):
        for index, (_, _, twin, *own) in enumerate(self.ports, start=1):
            if not twin or any(line.startswith("address = ") for line in own):
                continue
            self.router.ip(f"addr replace 10.{index}.0.1/24 dev {twin}")
            self.router.ip(f"addr replace 2001:db8:{index}::1/64 dev {twin} nodad")
        assert wait_until(self.forwards), (f"nothing is forwarded 10 s after the start:\n{self.gateway.log()}\n{self.gateway.drops()}\n"
                                           f"{self.router.ip('neigh')}\n{self.client.ip('neigh')}")

    def metrics(self):
        return self.gateway.metrics()

    def metric(self, name):
        return self.metrics()[name]

    def router_mac(self, twin="sl-lan"):
        return self.router.run(["cat", f"/sys/class/net/{twin}/address"]).strip()

    def forge(self, host, twin, payload, source, destination):
        """UDP with another's address, from `host` to the port with this twin; ends are (IPv4 address, port)."""
        host.send_frames([udp4(payload, destination[1], source[0], destination[0], source[1], to=self.router.mac(twin))])

    def forwards(self):
        return self.reaches(SERVER4) and self.reaches(SERVER6)

    def reaches(self, address):
        return self.client.reaches(address)


def bridge_tap(network, tap="tap0", cable="lan0"):
    """A tap's other end is in the router's own kernel; a bridge takes it to a cable, as for a virtual machine.

    The bridge itself must be silent: the kernel would answer ARP on it for the twins' addresses and forward by itself.
    """
    network.router.ip("link add br0 type bridge")
    network.router.sysctl(net__ipv6__conf__br0__disable_ipv6=1)
    network.router.ip("link set br0 arp off")
    network.router.ip("link set br0 addrgenmode none up")
    for interface in (cable, tap):
        network.router.ip(f"link set {interface} addrgenmode none master br0 up")
