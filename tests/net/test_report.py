"""What the demo's report says of a bound: on the CPU it is no promise, and must not look like one beside measured latencies."""

from report import report

STATS = {
    "lanes": [{"rx_frames": 10, "rx_bytes": 1000, "tx_frames": 9, "tx_bytes": 900, "injected": 0, "punted": 1, "dropped": 0,
               "in_flight": 0, "misses": 0}],
    "latency": {"frames": 9, "p50_ns": 907_000, "p90_ns": 1_000_000, "p99_ns": 1_100_000, "p999_ns": 1_200_000, "max_ns": 1_300_000},
    "routes": {"ipv4": 1, "ipv6": 1, "neighbours": 1}, "devices": [], "drops": [], "conserved": True, "deadline_ns": 50_000_000,
    "overlap": 2, "overruns": 3, "late_cycles": 4,
}


def line(text, name):
    """The paragraph of that name, on one line."""
    lines = iter(text.splitlines())
    found = next(one for one in lines if one.split()[:1] == [name])
    for one in lines:
        if one[:16].strip():
            break
        found += " " + one.strip()
    return found


def test_the_bound_is_said_with_its_conditions():
    on_cpu, adds_up = report({**STATS, "bound_ns": 50_000, "cycle_ns": 0})
    assert adds_up and "bound" not in line(on_cpu, "deadline")
    assert "50 us, an estimate" in line(on_cpu, "bound") and "idle core" in line(on_cpu, "bound")
    on_gpu, _ = report({**STATS, "bound_ns": 900_000, "cycle_ns": 222_000})
    assert "900 us for every frame" in line(on_gpu, "bound") and "2 cycles of 222 us (overruns: 3)" in line(on_gpu, "bound")
    assert "late cycles: 4" in line(on_gpu, "bound")
    assert "bound" not in report({**STATS, "bound_ns": 0, "cycle_ns": 0})[0]
