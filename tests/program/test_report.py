"""What the demo's report says of a bound: on the CPU it is no promise, and must not look like one beside measured latencies. And of
frames that ports lost: they are no drops, and the counters add up in spite of them."""

import pytest
from report import LOST, report, verdict

NOTHING_LOST = dict.fromkeys(LOST, 0)

STATS = {
    "lanes": [{"rx_frames": 10, "rx_bytes": 1000, "tx_frames": 9, "tx_bytes": 900, "injected": 0, "emitted": 0, "cloned": 0,
               "consumed": 0, "punted": 1, "dropped": 0, "in_flight": 0, "misses": 0}],
    "latency": {"frames": 9, "p50_ns": 907_000, "p90_ns": 1_000_000, "p99_ns": 1_100_000, "p999_ns": 1_200_000, "max_ns": 1_300_000},
    "routes": {"ipv4": 1, "ipv6": 1, "neighbours": 1}, "devices": [], "drops": [], "conserved": True, "deadline_ns": 50_000_000,
    "overlap": 2, "overruns": 3, "late_cycles": 4, "bound_ns": 0, "cycle_ns": 0,
    "ports": [{"name": "lan", **NOTHING_LOST}, {"name": "wan", **NOTHING_LOST}],
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
    assert "bound" not in report(STATS)[0]


def lost_lines(lan, wan):
    text, adds_up = report({**STATS, "ports": [{"name": "lan", **NOTHING_LOST, **lan}, {"name": "wan", **NOTHING_LOST, **wan}]})
    assert adds_up and "drops         none" in text
    return [one.strip() for one in text.splitlines() if "lost at the ports" in one]


@pytest.mark.parametrize("misses, missed, expected", [
    (0, 0, "everything worked"),
    (1200, 0, "everything that was checked worked; 1,200 frames late, 0 lost before Sluice"),
    (0, 3, "everything that was checked worked; 0 frames late, 3 lost before Sluice"),
])
def test_the_last_word_leaves_nothing_out(misses, missed, expected):
    lanes = [{**STATS["lanes"][0], "misses": misses}]
    assert verdict({**STATS, "lanes": lanes, "ports": [{"name": "lan", **NOTHING_LOST, "missed": missed}]}) == expected


@pytest.mark.parametrize("lan, wan, expected", [
    ({}, {}, []),
    ({"missed": 7865}, {"missed": 16394},
     ["lost at the ports   24,259 (lan missed 7,865, wan missed 16,394): their receive rings were full"]),
    ({}, {"missed": 1}, ["lost at the ports   1 (wan missed 1): their receive rings were full"]),
    ({"tx_errors": 6}, {"to_host_lost": 3, "from_host_lost": 2000}, [
        "lost at the ports   6 (lan failed to send 6): their drivers had taken them, and they count as transmitted",
        "lost at the ports   3 (wan lost to the kernel 3): their twins are down or gone, and they count as sent to the kernel",
        "lost at the ports   2,000 (wan lost from the kernel 2,000): their lanes did not take them in time"]),
])
def test_what_ports_lost_is_said_by_kind_and_port(lan, wan, expected):
    assert lost_lines(lan, wan) == expected
