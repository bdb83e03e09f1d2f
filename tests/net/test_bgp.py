"""FRR on the router learns a table from BIRD, over a session that Sluice carries, and Sluice forwards by it."""

import shutil

import pytest

from bgp import BIRD, FRR, Bird, Frr, private_prefixes
from hosts import wait_until
from topology import ROUTER_WAN4, ROUTER_WAN6, SERVER4, SERVER6

ROUTES = 20_000
INSIDE4, INSIDE6 = "60.0.80.1", "2001:db8:a5::1"

pytestmark = pytest.mark.skipif(not (FRR / "bgpd").exists() or not shutil.which(BIRD),
                                reason="needs the packages frr and bird2")


def kernel_routes(network):
    return int(network.router.run(["sh", "-c", "ip route show proto bgp | grep -vc '^[[:space:]]'"], check=False))


def routes_of_sluice(network):
    return network.gateway.stats()["routes"]["ipv4"]


def test_a_table_learnt_by_bgp_is_forwarded_by(fresh):
    fresh.start()
    for address in (f"{INSIDE4}/32", f"{INSIDE6}/128"):
        fresh.server.ip(f"addr add {address} dev lo")
    assert not fresh.reaches(INSIDE4)
    at_start = routes_of_sluice(fresh)

    table = list(private_prefixes(ROUTES))
    bird = Bird(fresh.server, fresh.folder / "bird", (SERVER4, SERVER6), (ROUTER_WAN4, ROUTER_WAN6), table, ["2001:db8:a5::/48"])
    frr = Frr(fresh.router, ROUTER_WAN4, (SERVER4, SERVER6))
    assert wait_until(lambda: kernel_routes(fresh) >= ROUTES, 60, 0.5), frr.vtysh("show bgp summary")
    assert wait_until(lambda: routes_of_sluice(fresh) >= at_start + ROUTES, 10)
    assert wait_until(lambda: fresh.reaches(INSIDE4), 5)
    assert wait_until(lambda: fresh.reaches(INSIDE6), 5)

    # The peer withdraws half of its table, the part with the address in it.
    bird.announce(table[ROUTES // 2:], [])
    bird.birdc("configure")
    assert wait_until(lambda: routes_of_sluice(fresh) <= at_start + ROUTES // 2 + 10, 30, 0.5)
    assert not fresh.reaches(INSIDE4)
    assert not fresh.reaches(INSIDE6)
    assert fresh.reaches(SERVER4)
