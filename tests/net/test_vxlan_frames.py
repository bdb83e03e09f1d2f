"""Tunnels of the element `vxlan` frame by frame: the other ends are UDP sockets that read and write what is in them (tunnels.py)."""

import json
import re
import struct

import pytest
from capture import Capture
from frames import packet4
from gateway import SLUICE
from hosts import wait_until
from tunnels import DENIED, FIXED, SILENT, Tunnels, dropped, mac, vxlan

NOT_ECT, ECT1, ECT0, CE = range(4)


def ecn_after(inner, outer):
    """RFC 6040 metric 4; None: dropped."""
    if outer == CE:
        return None if inner == NOT_ECT else CE
    return ECT1 if inner == ECT0 and outer == ECT1 else inner


def test_a_datagram_in_the_tunnel_is_routed_with_and_without_an_outer_checksum(tunnels):
    for checksum in (True, False):
        tunnels.send(vxlan(tunnels.inner()), checksum=checksum)
        got = tunnels.comes()
        assert got is not None, f"with a checksum: {checksum}: {tunnels.gateway.drops()}"
        assert got[2:] == (63, ("10.103.0.21", 4000))


def test_ecn_comes_out_as_rfc_6040_says(tunnels):
    for inner in range(4):
        for outer in range(4):
            after = ecn_after(inner, outer)
            if after is None:
                assert dropped(tunnels, "vxlan_ecn", lambda inner=inner, outer=outer: tunnels.send(vxlan(tunnels.inner(tos=inner)), tos=outer)) == 1
                continue
            tunnels.send(vxlan(tunnels.inner(tos=0xB8 | inner)), tos=0x48 | outer)
            got = tunnels.comes()
            assert got is not None and got[1] == 0xB8 | after, f"inner {inner}, outer {outer}: {got}"


@pytest.mark.parametrize("reason, content, end", [
    ("vxlan_unknown_vni", lambda inner: vxlan(inner, vni=301), 2),
    ("vxlan_malformed", lambda inner: vxlan(inner, flags=0), 2),
    ("vxlan_malformed", lambda inner: vxlan(inner[:13]), 2),
    ("vxlan_malformed", lambda inner: b"\x08", 2),
    ("vxlan_malformed", lambda inner: b"", 2),
    ("vxlan_unknown_remote", vxlan, 4),
    ("acl_denied", lambda inner: vxlan(inner[:36] + struct.pack("!H", DENIED) + inner[38:]), 2),
])
def test_what_does_not_come_out_is_counted_by_name(tunnels, reason, content, end):
    assert dropped(tunnels, reason, lambda: tunnels.send(content(tunnels.inner()), end=end)) == 1
    assert tunnels.comes(0.05) is None
    assert tunnels.received(tunnels.denied, 0.05) is None


def test_a_wrong_checksum_is_counted_by_name(tunnels):
    inner = vxlan(tunnels.inner())
    udp = struct.pack("!HHHH", 50000, 4789, 8 + len(inner), 0x1234) + inner
    frame = packet4(17, udp, "10.3.0.2", "10.3.0.1", to=tunnels.router.mac("sl-far"))
    assert dropped(tunnels, "vxlan_checksum", lambda: tunnels.far.send_frames([frame])) == 1


def test_a_zero_checksum_over_ipv6_was_not_agreed_on(tunnels):
    inner = tunnels.inner(to=tunnels.router.mac("sl-vx6"), sender="10.200.0.2")
    assert dropped(tunnels, "vxlan_checksum", lambda: tunnels.send6(vxlan(inner, vni=200), checksum=False)) == 1
    assert tunnels.comes(0.05) is None
    tunnels.send6(vxlan(inner, vni=200))
    assert tunnels.comes() is not None


@pytest.mark.parametrize("family", [4, 6])
def test_outer_fragments_are_put_together(tunnels, family):
    """More than fits into one outer packet, which the sender's kernel then cuts up."""
    before = tunnels.metric("vxlan_fragments")
    if family == 4:
        tunnels.send(vxlan(tunnels.inner(size=1440)))
    else:
        tunnels.send6(vxlan(tunnels.inner(size=1440, to=tunnels.router.mac("sl-vx6"), sender="10.200.0.2"), vni=200))
    assert tunnels.comes() is not None
    assert tunnels.metric("vxlan_fragments") - before == 2


def test_an_unknown_station_is_flooded_and_a_learned_one_is_not(tunnels):
    tunnels.client_sends("10.103.0.22", tos=0x48 | ECT0)
    both = [tunnels.out(end) for end in (2, 3)]
    for got in both:
        payload, tos, ttl, sender = got
        assert payload[:8] == struct.pack("!B3xI", 8, 300 << 8)
        assert payload[8:14] == mac(SILENT) and payload[14:20] == tunnels.own
        assert tos == ECT0 and ttl == 64, "ECN is copied, DSCP is the configuration's"
        assert sender[0] == "10.3.0.1" and sender[1] >= 49152
        assert payload[8 + 14 + 8] == 63 and payload[8 + 14 + 1] == 0x48 | ECT0
    assert both[0][3] == both[1][3], "one flow, one source port"
    # The station moves to the other end.
    for end in (2, 3):
        assert tunnels.arrives(tunnels.inner(), end=end, wait=2)
        tunnels.client_sends("10.103.0.21")
        assert tunnels.out(end) is not None
        assert tunnels.out(5 - end, 0.05) is None
    assert tunnels.metric("vxlan_moved") >= 1


def test_tunnels_with_addresses_of_their_own_have_ways_of_their_own(tunnels):
    """To one remote, where the kernel's rules choose the route by the source."""
    router = tunnels.router
    router.ip(f"neigh add 10.104.0.21 lladdr {SILENT} dev sl-vy nud permanent")
    tunnels.client_sends("10.104.0.21")
    assert tunnels.out(2)[3][0] == "10.2.0.1"
    router.ip("route add 10.3.0.0/24 via 10.2.0.2 dev sl-wan table 7")
    router.ip("rule add from 10.2.0.1 lookup 7")
    try:
        with Capture(tunnels.server, "eth0") as capture:
            def goes_by_the_wan():
                tunnels.client_sends("10.104.0.21")
                return any(ends == ("10.2.0.1", ("10.3.0.2", 4789)) for ends in ((sender[0], to) for sender, to, _ in capture.udp()))

            assert wait_until(goes_by_the_wan, 5), tunnels.state()
        while tunnels.out(2, 0.1):
            pass
        assert tunnels.arrives(tunnels.inner(), end=2, wait=2)
        tunnels.client_sends("10.103.0.21")
        assert tunnels.out(2)[3][0] == "10.3.0.1", "the other one's way is as it was"
    finally:
        router.ip("rule del from 10.2.0.1 lookup 7")
        router.ip("route flush table 7")


def test_a_frame_that_is_longer_than_the_tunnel_takes_is_answered(tunnels):
    assert re.search(r"mtu ?= ?1450", tunnels.client.run("ping -n -M do -c 1 -W 1 -s 1472 10.103.0.22", check=False))
    tunnels.client_sends("10.103.0.22", size=1450 - 28)
    assert len(tunnels.out(2)[0]) == 8 + 14 + 1450
    tunnels.out(3)


def test_each_tunnel_shows_itself(tunnels):
    def shown():
        view = next(one["view"] for one in json.loads(tunnels.gateway.get("/api/v1/functions")) if one["name"] == "vxlan")
        return {one["port"]: one for one in view["tunnels"]}

    before = shown()
    assert set(before) == {"vx4", "vx6", "vx", "vy"}
    assert (before["vx"]["vni"], before["vx"]["local"]) == (300, "10.3.0.1")
    assert before["vx"]["remotes"] == [{"address": f"10.3.0.{end}", "resolved": True, "port": "far"} for end in (2, 3)]
    inner = tunnels.inner()
    assert tunnels.arrives(inner, wait=2)
    tunnels.client_sends("10.103.0.21")
    assert tunnels.out(2) is not None
    assert wait_until(lambda: shown()["vx"]["out_frames"] > before["vx"]["out_frames"], 3)
    after = shown()
    assert after["vx"]["in_frames"] > before["vx"]["in_frames"]
    assert after["vx"]["in_bytes"] - before["vx"]["in_bytes"] >= len(inner)
    assert after["vx"]["stations"] >= 1 and after["vx6"]["stations"] == 0
    for metric in ("in_frames", "out_frames"):
        assert wait_until(lambda metric=metric: sum(one[metric] for one in shown().values()) == tunnels.metric(f"vxlan_{metric}"), 3), metric


def test_another_network_begins_without_stations(tunnels):
    assert tunnels.arrives(tunnels.inner(), wait=2)
    text = tunnels.gateway.text()
    try:
        assert "but not those of a tunnel with another vni" in tunnels.gateway.reload(text.replace("vni = 300", "vni = 301"))
        tunnels.client_sends("10.103.0.21")
        assert all(tunnels.out(end) is not None for end in (2, 3)), "nobody knows where it is"
    finally:
        assert "in force" in tunnels.gateway.reload(text)


def test_a_local_address_that_is_nobodys_is_noted(tunnels, tmp_path):
    def check(local):
        path = tmp_path / "local.toml"
        text = tunnels.gateway.text().replace('local = "10.3.0.1"', f'local = "{local}"')
        for twin, addresses in (("lan", '"10.1.0.1/24"'), ("wan", '"10.2.0.1/24", "2001:db8:2::1/64"'), ("far", '"10.3.0.1/24"')):
            text = text.replace(f'twin = "sl-{twin}"', f'twin = "sl-{twin}"\naddress = [{addresses}]')
        path.write_text(text, encoding="utf-8")
        return tunnels.router.run([SLUICE, "check", path], check=False)

    assert "no [[port]] has that address" in check("10.3.0.77")
    assert "is the address of the tunnel's own port" in check("10.103.0.1")
    assert "no [[port]] has" not in check("10.3.0.1")


def test_a_reload_moves_a_station_and_takes_a_remote_away(tunnels):
    fixed = f'[[vxlan.tunnel.fdb]]\nmac = "{FIXED}"\nremote = "10.3.0.3"\n'
    text = tunnels.gateway.text()
    assert "in force" in tunnels.gateway.reload(text + fixed)
    tunnels.client_sends("10.103.0.23")
    assert tunnels.out(3) is not None
    assert tunnels.out(2, 0.05) is None
    assert tunnels.arrives(tunnels.inner(source=FIXED), end=2, wait=2)
    tunnels.client_sends("10.103.0.23")
    assert tunnels.out(3) is not None and tunnels.out(2, 0.05) is None, "what is configured is not learned to be elsewhere"
    assert "in force" in tunnels.gateway.reload(text.replace(', "10.3.0.3"]', "]"))
    assert dropped(tunnels, "vxlan_unknown_remote", lambda: tunnels.send(vxlan(tunnels.inner()), end=3)) == 1
    tunnels.client_sends("10.103.0.21")
    assert tunnels.out(2) is not None, "a station behind a remote that is gone is unknown"
    assert "in force" in tunnels.gateway.reload(text)
    assert tunnels.arrives(tunnels.inner(), end=3, wait=2)


def test_an_inspector_sees_what_is_in_the_tunnel_and_names_its_port(tmp_path):
    rules, eve = tmp_path / "own.rules", tmp_path / "eve.json"
    rules.write_text('drop udp any any -> any 7777 (msg:"evil"; content:"evil"; sid:1;)\n', encoding="utf-8")
    with Tunnels(tmp_path, ["inspect", "route"], inspect=(f'rules = ["{rules}"]', f'eve = "{eve}"', "flows = 4096")) as tunnels:
        tunnels.start()
        good = tunnels.inner()
        tunnels.send(vxlan(good))
        assert tunnels.comes() is not None
        tunnels.send(vxlan(good[:42] + b"evil" + good[46:]))

        def alerts():
            return [one for one in map(json.loads, eve.read_text().splitlines()) if one["event_type"] == "alert"] if eve.exists() else []

        assert wait_until(lambda: len(alerts()) == 1), f"{tunnels.gateway.drops()}\n{tunnels.gateway.log()}"
        assert (alerts()[0]["in_iface"], alerts()[0]["src_ip"]) == ("vx", "10.103.0.21")
        assert tunnels.received(tunnels.receiver, 0.05) is None
        wide = tmp_path / "wide.toml"
        wide.write_text(tunnels.text().replace("iface=wan0\"", "iface=wan0\"\nlanes = 2"), encoding="utf-8")
        answer = tunnels.router.run([SLUICE, "check", wide], check=False)
        assert '"inspect" follows conversations' in answer and "give all ports as many queues and lanes" in answer
