"""Routes that the kernel changes without a message: the fast path follows all the same, and a difference is mended and said."""

import pytest

from gateway import SMALL_TABLES
from hosts import wait_until
from topology import SERVER4, SERVER6, Topology

TARGET4, TARGET6 = "10.9.0.1", "2001:db8:9::1"


@pytest.fixture(scope="module")
def two_ways(tmp_path_factory):
    """A server behind two links of the router; the mirror is compared with the kernel every second."""
    with Topology(tmp_path_factory.mktemp("sluice"), route=("kernel = true", "verify = 1", *SMALL_TABLES)) as topology:
        topology.second_wan()
        for address in (f"{TARGET4}/32", f"{TARGET6}/128"):
            topology.server.ip(f"addr add {address} dev lo")
        topology.start()
        yield topology


def hops(network, prefix):
    """The next hops of a route in the fast path, as `ctl routes` lists them."""
    lines = network.gateway.control("routes", "--limit", "1000").splitlines()
    return next((line.split(maxsplit=2)[2] for line in lines if line.split()[0] == prefix), None)


def shows(network, prefix, *names):
    """Whether the route's next hops are those with these names, and no others."""
    now = hops(network, prefix)
    return now is not None and all((name in now) == (name in names) for name in (SERVER4, "10.3.0.2", SERVER6, "2001:db8:3::2"))


def test_a_hop_returns_with_its_address(two_ways):
    router = two_ways.router
    router.ip(f"route add 10.9.0.0/24 nexthop via {SERVER4} nexthop via 10.3.0.2")
    try:
        assert wait_until(lambda: shows(two_ways, "10.9.0.0/24", SERVER4, "10.3.0.2"), 5)
        router.ip("addr del 10.3.0.1/24 dev sl-wan2")
        assert wait_until(lambda: shows(two_ways, "10.9.0.0/24", SERVER4), 5)
        router.ip("addr add 10.3.0.1/24 dev sl-wan2")
        assert wait_until(lambda: shows(two_ways, "10.9.0.0/24", SERVER4, "10.3.0.2"), 5), hops(two_ways, "10.9.0.0/24")
        assert two_ways.reaches(TARGET4)
    finally:
        router.ip("route del 10.9.0.0/24")


@pytest.mark.parametrize(("family", "prefix", "ways"), [
    pytest.param("-4", "10.9.0.0/24", (SERVER4, "10.3.0.2"), id="ipv4"),
    pytest.param("-6", "2001:db8:9::/48", (SERVER6, "2001:db8:3::2"), id="ipv6"),
])
def test_a_hop_whose_link_is_down_returns_with_it(two_ways, family, prefix, ways):
    router = two_ways.router
    version = "ipv4" if family == "-4" else "ipv6"
    router.run(["sysctl", "-qw", f"net.{version}.conf.sl-wan2.ignore_routes_with_linkdown=1"])
    router.ip(f"{family} route add {prefix} nexthop via {ways[0]} nexthop via {ways[1]}")
    try:
        assert wait_until(lambda: shows(two_ways, prefix, *ways), 5)
        two_ways.server.ip("link set eth1 down")  # the cable
        assert wait_until(lambda: shows(two_ways, prefix, ways[0]), 5)
        two_ways.server.ip("link set eth1 up")
        assert wait_until(lambda: shows(two_ways, prefix, *ways), 5)
    finally:
        router.ip(f"{family} route del {prefix}")
        two_ways.server.run("ip addr add 2001:db8:3::2/64 dev eth1 nodad", check=False)  # IPv6 addresses go with a link


def test_a_next_hop_object_of_a_link_that_goes_and_comes(two_ways):
    router = two_ways.router
    for number, way, twin in ((1, SERVER4, "sl-wan"), (2, "10.3.0.2", "sl-wan2")):
        router.ip(f"nexthop add id {number} via {way} dev {twin}")
    router.ip("nexthop add id 10 group 1/2")
    router.ip("route add 10.9.0.0/24 nhid 10")
    try:
        assert wait_until(lambda: shows(two_ways, "10.9.0.0/24", SERVER4, "10.3.0.2"), 5)
        router.ip("link set sl-wan2 down")
        assert wait_until(lambda: shows(two_ways, "10.9.0.0/24", SERVER4), 5)
        router.ip("link set sl-wan2 up")
        router.ip("nexthop replace id 2 via 10.3.0.2 dev sl-wan2")
        router.ip("nexthop replace id 10 group 1/2")
        assert wait_until(lambda: shows(two_ways, "10.9.0.0/24", SERVER4, "10.3.0.2"), 5)
    finally:
        router.ip("route del 10.9.0.0/24")
        two_ways.address()


def test_routes_that_go_without_a_message_go_here_too(two_ways):
    router, before = two_ways.router, two_ways.gateway.stats()["mirror"]["mended"]
    router.run(["sysctl", "-qw", "net.ipv6.route.skip_notify_on_dev_down=1"])
    router.ip("-6 route add 2001:db8:9::/48 via 2001:db8:3::2")
    assert wait_until(lambda: shows(two_ways, "2001:db8:9::/48", "2001:db8:3::2"), 5)
    router.run(["sysctl", "-qw", "net.ipv6.conf.sl-wan2.disable_ipv6=1"])
    assert wait_until(lambda: hops(two_ways, "2001:db8:9::/48") is None and hops(two_ways, "2001:db8:3::/64") is None, 5)
    mirror = two_ways.gateway.stats()["mirror"]
    assert mirror["mended"] > before
    assert "had changed without a message and are mended" in two_ways.gateway.log()
    assert f"sluice_mirror_mended_total {mirror['mended']}" in two_ways.gateway.get("/metrics")
    router.run(["sysctl", "-qw", "net.ipv6.conf.sl-wan2.disable_ipv6=0"])
    two_ways.address()
    assert wait_until(lambda: hops(two_ways, "2001:db8:3::/64") is not None, 5)


def test_an_ipv6_route_ends_when_it_expires(two_ways):
    router = two_ways.router
    router.ip(f"-6 route add 2001:db8:9::/48 via {SERVER6} expires 1")
    router.ip("-6 route add 2001:db8:9::/48 via 2001:db8:3::2 metric 2000")
    assert wait_until(lambda: shows(two_ways, "2001:db8:9::/48", "2001:db8:3::2"), 5)
    router.ip("-6 route flush 2001:db8:9::/48")


def test_the_preferred_router_is_taken(two_ways):
    router = two_ways.router
    router.ip("-6 route add 2001:db8:9::/48 dev sl-wan pref low")
    router.ip("-6 route append 2001:db8:9::/48 dev sl-wan2 pref high")
    assert wait_until(lambda: (hops(two_ways, "2001:db8:9::/48") or "").startswith("on wan2"), 5), hops(two_ways, "2001:db8:9::/48")
    router.ip("-6 route flush 2001:db8:9::/48")
