"""A plain report of a snapshot of the API: what came in, what left, how late, and where the rest went."""


def duration(nanoseconds):
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    return f"{nanoseconds} ns"


def octets(count):
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count} B"


def bound(stats):
    """What the engine's bound is and under what conditions (src/engine/bound.h): it is no limit of what was measured above it."""
    if stats["cycle_ns"] == 0:
        return (f"{duration(stats['bound_ns'])}, an estimate: a lane's longest sleep and one batch, on an idle core of its own. The"
                " latency above\n                has besides the wait for frames that came before and for a core that others use"
                " too, and the\n                kernel's work in each transmit. What frames are held to is the deadline")
    return (f"{duration(stats['bound_ns'])} for every frame, while no batch is longer on the device than {stats['overlap']} cycles of"
            f" {duration(stats['cycle_ns'])} (overruns:\n                {stats['overruns']:,}) and the machine runs the gateway's"
            f" threads (late cycles: {stats['late_cycles']:,})")


# Frames that ports lost, which are no drops: the line "counters" adds up with or without them. By key: what a port did, and why.
LOST = {
    "missed": ("missed", "their receive rings were full"),
    "tx_errors": ("failed to send", "their drivers had taken them, and they count as transmitted"),
    "to_host_lost": ("lost to the kernel", "their twins are down or gone, and they count as sent to the kernel"),
    "from_host_lost": ("lost from the kernel", "their lanes did not take them in time"),
}


def lost(ports):
    """A line for each kind of which there are any."""
    for key, (did, why) in LOST.items():
        losers = [port for port in ports if port[key]]
        if losers:
            each = ", ".join(f"{port['name']} {did} {port[key]:,}" for port in losers)
            yield f"lost at the ports   {sum(port[key] for port in losers):,} ({each}): {why}"


def inspected(metrics):
    """One line, of a chain that inspects."""
    values = {metric["name"]: metric["value"] for metric in metrics}
    if "inspect_frames" in values:
        yield (f"inspected     {values['inspect_frames']:,} frames, {values['inspect_flows_made']:,} conversations:"
               f" {values['inspect_alerts']:,} alerts")


def verdict(stats):
    """The last word on a run whose checks all passed: what they did not look at, if anything, is said."""
    late = sum(lane["misses"] for lane in stats["lanes"])
    missed = sum(port["missed"] for port in stats["ports"])
    if not late and not missed:
        return "everything worked"
    return f"everything that was checked worked; {late:,} frames late, {missed:,} lost before Sluice"


def report(stats, rate=None):
    """(text, whether the counters add up). `rate`: (frames/s, bits/s) at the busiest time, as the caller measured it, or None."""
    total = {key: sum(lane[key] for lane in stats["lanes"]) for key in
             ("rx_frames", "rx_bytes", "tx_frames", "tx_bytes", "injected", "emitted", "cloned", "consumed", "punted", "dropped", "in_flight",
              "misses")}
    latency = stats["latency"]
    came = total["rx_frames"] + total["injected"] + total["emitted"] + total["cloned"]
    went = total["tx_frames"] + total["consumed"] + total["punted"] + total["dropped"] + total["in_flight"]
    by_reason = sum(drop["frames"] for drop in stats["drops"])
    adds_up = came == went and by_reason == total["dropped"] and stats["conserved"]
    percentiles = ", ".join(f"{name} {duration(latency[key])}" for name, key in (
        ("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns"), ("longest", "max_ns")))
    lines = [
        f"received      {total['rx_frames']:,} frames, {octets(total['rx_bytes'])}",
        f"transmitted   {total['tx_frames']:,} frames, {octets(total['tx_bytes'])}",
        *([f"rate          {rate[1] / 1e9:.2f} Gbit/s, {rate[0]:,.0f} frames/s while the transfer ran"] if rate else []),
        f"routes        {stats['routes']['ipv4']:,} IPv4, {stats['routes']['ipv6']:,} IPv6,"
        f" {stats['routes']['neighbours']:,} neighbours",
        f"latency       {percentiles}",
        f"deadline      {duration(stats['deadline_ns'])}: {total['misses']:,} of {latency['frames']:,} frames missed it",
        *([f"bound         {bound(stats)}"] if stats["bound_ns"] else []),
        *(f"device        {device['name']} ({device['text']}, {device['state']}): {device['frames']:,} frames in"
          f" {device['batches']:,} batches" for device in stats["devices"]),
        f"host          {total['punted']:,} frames to the kernel, {total['injected']:,} from it",
        *inspected(stats.get("metrics", [])),
        *(f"drops         {drop['frames']:,} {drop['reason']}: {drop['text']}" for drop in stats["drops"] if drop["frames"]),
        *(["drops         none"] if by_reason == 0 else []),
        *lost(stats["ports"]),
        f"counters      {total['rx_frames']:,} received + {total['injected']:,} from the kernel"
        f" + {total['emitted'] + total['cloned']:,} made"
        f" {'=' if came == went else '!='} {total['tx_frames']:,} transmitted + {total['punted']:,} to the kernel"
        f" + {total['consumed']:,} taken over"
        f" + {total['dropped']:,} dropped + {total['in_flight']:,} in flight:"
        f" {'they add up' if adds_up else 'THEY DO NOT ADD UP'}",
    ]
    return "\n  " + "\n  ".join(lines) + "\n", adds_up
