"""A running gateway as its administrator sees it: what it costs when idle, and what top, ctl and /metrics say."""

import re
import time

import pytest

from gateway import SLUICE
from topology import CLIENT4, ROUTER_LAN4, SERVER4


@pytest.mark.alone
def test_idle_costs_under_five_percent_of_a_core(network):
    time.sleep(1)
    share = network.gateway.cpu_share(4)
    assert share < 0.05, f"{share:.1%} of a core"


def test_top_shows_the_ports_and_the_rates(network):
    shown = network.router.run([SLUICE, "top", "--once"])
    for word in ("lan", "wan", "latency", "cpu"):
        assert word in shown, shown


def test_ctl_shows_routes_and_neighbours(network):
    assert network.reaches(SERVER4)
    routes = network.gateway.control("routes")
    assert re.search(r"^10\.1\.0\.0/24 +unicast +on lan", routes, re.M), routes
    assert re.search(rf"^{re.escape(ROUTER_LAN4)}/32 +local", routes, re.M), routes
    assert re.search(rf"^{re.escape(CLIENT4)} +\S+ +lan", network.gateway.control("neighbours"), re.M)


def test_metrics_count_what_ping_sends(network):
    def transmitted():
        return sum(float(value) for value in re.findall(r"^sluice_lane_transmit_frames_total\{.*\} (\S+)", metrics(), re.M))

    def metrics():
        return network.gateway.get("/metrics")

    before = transmitted()
    network.client.run(f"ping -n -i 0.01 -c 50 -W 1 {SERVER4}")
    assert 100 <= transmitted() - before < 130


def test_ctl_says_when_nobody_is_there(network):
    answer = network.client.run([SLUICE, "ctl", "stats"], check=False)
    assert "is sluice running" in answer
