"""A gateway that routes from a capture file to a port, and files that are no tables of routes."""

import os

from frames import write_pcap
from gateway import Gateway, config
from hosts import Here

ROUTES = ("kernel = false", "any_mac = true", "max_ipv4 = 1000", "max_ipv6 = 1000", 'table = "{table}"',
          "[[route.connected]]", 'prefix = "10.254.0.0/16"', 'port = "out"',
          "[[route.connected]]", 'prefix = "fd00:fe::/64"', 'port = "out"',
          "[[route.neighbour]]", 'port = "out"', 'address = "10.254.0.1"', 'mac = "02:00:00:00:aa:02"',
          "[[route.neighbour]]", 'port = "out"', 'address = "fd00:fe::1"', 'mac = "02:00:00:00:aa:02"')


def route_capture(host, folder, frames, out):
    """Starts one that has the capture in.pcap of these frames, and the port `out`; what would go back is in back.pcap."""
    write_pcap(folder / "in.pcap", frames)
    table = folder / "routes.txt"
    table.write_text("198.51.100.0/24 10.254.0.1\n2001:db8:51::/48 fd00:fe::1\n", encoding="ascii")
    ports = [("in", f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/back.pcap", ""), ("out", out, "")]
    text = config(ports, route=[line.format(table=table) for line in ROUTES], size="320M", listen=Here.api)
    return Gateway(host, folder, text).start()


def refused_table(folder, path):
    """Makes a pipe or a file of 800 MB if there is to be one; its path, and what is said to it."""
    if path == "pipe":
        path = folder / "pipe"
        os.mkfifo(path)
        return path, "is a pipe"
    if path == "memory":
        path = folder / "large.txt"
        path.touch()
        os.truncate(path, 800 << 20)
        return path, "there is not enough memory for it"
    return path, {"/tmp": "is a folder", "/dev/zero": "is a device", "/proc/self/mem": "cannot be read"}[path]
