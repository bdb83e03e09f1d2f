"""Lanes that share a queue by flow, and forwarders on a core of their own, under real traffic."""

import pytest
from hosts import iperf3
from topology import SERVER4, SERVER6, Topology

BUSY = 'busy_cores = "allow"'  # whatever else this machine does meanwhile
CASES = {
    "lanes share a queue": {"port": ("lanes = 3",), "memory": ("frames = 8192",)},
    "forwarders apart": {"engine": (BUSY, "forwarder_cores = [0]")},
    "both": {"size": "640M", "port": ("lanes = 2",), "engine": (BUSY, "forwarder_cores = [0]", "cores = [1]")},
}


@pytest.mark.parametrize("name", CASES)
def test_traffic_and_counters(tmp_path, name):
    with Topology(tmp_path, **CASES[name]) as network:
        gateway = network.start()
        assert iperf3(network.client, network.server, SERVER4, "-P", "6", seconds=2)["sum_received"]["bytes"] > 10_000_000
        assert network.reaches(SERVER6)
        stats = gateway.stats()
        assert stats["conserved"]
        lanes = [lane for lane in stats["lanes"] if lane["port"] == "lan"]
        if "lanes" in name or name == "both":
            assert len(lanes) == (3 if "lanes" in name else 2)
            # Six flows and their hash: no lane is left out but by bad luck, which addresses and ports do not change.
            assert sum(lane["rx_frames"] > 0 for lane in lanes) >= 2, lanes
        log = gateway.log()
        assert ("spread over" in log) == ("lanes" in name or name == "both"), log
        assert ("their forwarders on 0" in log) == ("lanes" not in name), log
