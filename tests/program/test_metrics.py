"""What a gateway reports of itself before a frame has come."""

import re

from gateway import Gateway, up_at_once


def test_every_reason_is_there_from_the_start(here, tmp_path):
    gateway = Gateway(here, tmp_path, up_at_once(here.api)).start()
    metrics = gateway.get("/metrics")
    for reason in ("no_route", "ttl_expired", "link_down", "acl_denied", "inspect_dropped", "other_host"):
        assert re.search(rf'^sluice_drops_total{{reason="{reason}"}} 0$', metrics, re.M), reason
    assert 'sluice_icmp_errors_total{reason="too_big"} 0\n' in metrics
    assert "TYPE sluice_latency_quantile_seconds summary" in metrics
    assert "no_route" not in gateway.control("stats")
