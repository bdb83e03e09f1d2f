"""Every kind of port that docs/configuration.md names, with frames that really go through it and are looked at on the other side.

The kinds that join hosts (af_packet, af_xdp, tap, memif) are pinged and sent TCP and fragments through. Those that join none are in
tests/program/test_file_ports.py.
"""

import re
import signal
import subprocess
import time

import pytest
from captures import route_capture
from frames import ipv4
from gateway import SLUICE, Gateway, config
from hosts import Lab, stop, wait_until
from topology import SERVER4, SERVER6, Topology, bridge_tap


def check_traffic(client, server):
    """Both families, every size of frame, fragments and a TCP transfer: nothing lost, nothing doubled."""
    for target in (SERVER4, SERVER6):
        answer = client.run(f"ping -n -i 0.01 -c 100 -W 1 {target}")
        assert "100 received, 0% packet loss" in answer and "DUP!" not in answer, answer
        assert "20 received, 0% packet loss" in client.run(f"ping -n -i 0.02 -c 20 -W 1 -s 8000 {target}")
        for size in (0, 1, 18, 1001, 1452):
            assert "1 received" in client.run(f"ping -n -c 1 -W 1 -M do -s {size} {target}"), size
    listener = server.spawn("iperf3 -s -1")
    assert wait_until(lambda: ":5201" in server.run("ss -Hltn"), 5)
    client.run(f"iperf3 -c {SERVER4} -n 20M", timeout=30)
    stop(listener)


def check_carried(gateway, ports, least=200):
    """The ports themselves carried that, and it adds up."""
    assert wait_until(lambda: gateway.stats()["conserved"], 5), gateway.stats()
    received, punted, injected = gateway.totals("rx_frames", "punted", "injected")
    assert punted + injected < received / 4, "the kernel forwarded, not the fast path"
    by_name = {port["name"]: port for port in gateway.stats()["ports"]}
    for name in ports:
        assert by_name[name]["rx_frames"] >= least and by_name[name]["tx_frames"] >= least, by_name[name]
        assert by_name[name]["link_up"], by_name[name]


@pytest.mark.parametrize("driver", ["net_af_packet", "net_af_xdp"])
def test_kernel_interfaces(tmp_path, driver):
    ports = [("lan", f"{driver}0,iface=lan0", "sl-lan"), ("wan", f"{driver}1,iface=wan0", "sl-wan")]
    with Topology(tmp_path, ports=ports) as network:
        network.start()
        check_traffic(network.client, network.server)
        check_carried(network.gateway, ("lan", "wan"))
        assert f"({driver})" in network.gateway.log()


def test_af_xdp_starts_again_after_kill_9(tmp_path):
    """Its program stays on the interface then; the next start takes it over."""
    with Topology(tmp_path, ports=[("lan", "net_af_xdp0,iface=lan0", "sl-lan"), ("wan", "wan0", "sl-wan")]) as network:
        gateway = network.start()
        gateway.kill()
        gateway.start()
        network.address()
        assert network.reaches(SERVER4)


REFUSED = '[engine]\ndevice = "cpu"\nchain = ["touch"]\n[memory]\nhugepages = "off"\n{memory}\n[[port]]\nname = "lan"\n{port}\n'


@pytest.mark.parametrize(("port", "memory", "prepare", "words"), [
    pytest.param('device = "net_af_xdp0,iface=lan0"\nmtu = 1800', "", "", ("mtu = 1800", "frame_bytes = 2078"), id="xdp-mtu"),
    pytest.param('device = "net_af_xdp0,iface=lan0"', "frame_bytes = 4096", "", ("one page", "3712"), id="xdp-page"),
    pytest.param('device = "net_af_xdp0,iface=lan0"\nqueues = 2', "", "", ("queues = 2", "lan0 has 1"), id="xdp-queues"),
    pytest.param('device = "net_af_xdp0,iface=lan0"', "", "ethtool -L lan0 rx 2",
                 ("2 receive queues", "reads 1", "rx 1"), id="xdp-unread-queue"),
    pytest.param('device = "net_af_packet0,iface=lan0"\nmtu = 2100', "", "",
                 ("mtu = 2100", "frame_bytes = 2122"), id="packet-mtu"),
    pytest.param('device = "net_af_packet0,iface=lan0,framesz=1024"', "", "",
                 ("framesz = 1024", "2048"), id="packet-framesz"),
    pytest.param('device = "net_af_packet0,iface=lan0,qpairs=4"', "", "",
                 ("qpairs = 4", "queues = 1", "set queues = 4"), id="packet-qpairs"),
    pytest.param('device = "net_tap0,iface=tap0"\nmtu = 1600', "", "", ("MTU of 1500", "1600"), id="tap-mtu"),
])
def test_what_would_lose_frames_is_refused_with_what_to_do(tmp_path, port, memory, prepare, words):
    """Each of these would open, or fail without a word why, and then not carry every frame."""
    with Lab() as lab:
        router, client = lab.host("router"), lab.host("client")
        lab.join(client, "eth0", router, "lan0")
        if prepare:
            router.run(prepare)
        path = tmp_path / "refused.toml"
        path.write_text(REFUSED.format(memory=memory, port=port), encoding="utf-8")
        answer = router.run([SLUICE, "run", path], check=False)
        last = answer.splitlines()[-1]
        assert "[[port]] 'lan'" in last, answer
        for word in words:
            assert word in last, answer


def test_an_interface_that_is_not_there_is_refused_and_one_that_is_down_waits(tmp_path):
    with Topology(tmp_path) as network:
        network.router.ip("link set lan0 name gone")
        path = tmp_path / "refused.toml"
        path.write_text(REFUSED.format(memory="", port='device = "net_af_packet0,iface=lan0"'), encoding="utf-8")
        assert "there is no interface 'lan0'" in network.router.run([SLUICE, "run", path], check=False)
        network.router.ip("link set gone down")
        network.router.ip("link set gone name lan0")

        def raise_it(started):
            links = {port["name"]: port["link_up"] for port in started.gateway.stats()["ports"]}
            assert links == {"lan": False, "wan": True}
            started.router.ip("link set lan0 up")

        network.start(before_addresses=raise_it)
        assert network.reaches(SERVER4)


def test_an_interface_is_one_gateways(tmp_path):
    """By whatever name and driver: frames would be forwarded twice. Nothing of the first one stays when it is killed."""
    ports = [("lan", "lan0", "sl-lan"), ("wan", "wan0", "sl-wan")]
    with Topology(tmp_path, ports=ports) as network:
        gateway = network.start()
        network.router.ip("link property add dev wan0 altname uplink")
        path = tmp_path / "second.toml"
        for device in ("net_af_packet0,iface=uplink", "net_af_xdp0,iface=wan0"):
            path.write_text(REFUSED.format(memory="", port=f'device = "{device}"\n[api]\nlisten = ""'), encoding="utf-8")
            answer = network.router.run([SLUICE, "run", path], check=False)
            name = device.rsplit("=", 1)[1]
            assert (f"interface '{name}' is in use by another gateway (process {gateway.process.pid})" in answer
                    and "second.toml:" in answer), answer
        assert network.reaches(SERVER4), "the first one does not notice"
        gateway.kill()
        gateway.start()
        network.address()
        assert network.reaches(SERVER4)


@pytest.mark.parametrize(("driver", "mtu", "frame_bytes"), [("net_af_packet", 9000, 9216), ("net_af_xdp", 3434, 3712)])
def test_frames_of_the_largest_mtu(tmp_path, driver, mtu, frame_bytes):
    """They arrive whole, in one buffer, and leave whole. The router's interfaces get that MTU from Sluice, and their own back."""
    ports = [("lan", f'{driver}0,iface=lan0"\nmtu = {mtu}\npeer = "wan', "sl-lan"),
             ("wan", f'{driver}1,iface=wan0"\nmtu = {mtu}\npeer = "lan', "sl-wan")]
    with Topology(tmp_path, ports=ports, mtu=mtu, memory=(f"frame_bytes = {frame_bytes}", "frames = 4096")) as network:
        for interface in ("lan0", "wan0"):
            network.router.ip(f"link set {interface} mtu 1500")
        gateway = network.start()
        for target, headers in ((SERVER4, 28), (SERVER6, 48)):
            answer = network.client.run(f"ping -n -i 0.01 -c 100 -W 1 -M do -s {mtu - headers} {target}", check=False)
            assert "100 received, 0% packet loss" in answer, answer
        check_carried(gateway, ("lan", "wan"))
        gateway.interrupt()
        for interface in ("lan0", "wan0"):
            assert "mtu 1500" in network.router.ip(f"link show {interface}")


def test_tap(tmp_path):
    with Topology(tmp_path, ports=[("lan", "net_tap0,iface=tap0", "sl-lan"), ("wan", "wan0", "sl-wan")]) as network:
        network.start(before_addresses=bridge_tap)
        check_traffic(network.client, network.server)
        check_carried(network.gateway, ("lan", "wan"))
        # The bridge would keep frames to the router for itself if both ends of the tap had one address.
        assert network.router_mac("sl-lan") != network.router_mac("tap0")
        network.router.ip("link set tap0 down")
        assert wait_until(lambda: "NO-CARRIER" in network.router.ip("link show sl-lan"), 5)
        network.router.ip("link set tap0 up")
        assert wait_until(lambda: network.reaches(SERVER4), 5)


def test_a_second_start_leaves_the_taps_of_the_running_gateway_alone(tmp_path):
    """DPDK would open them as more queues of the same interfaces, and leave them down and with other addresses."""
    ports = [("lan", "net_tap0,iface=tap0", "sl-lan"), ("wan", "net_tap1,iface=tap1", "sl-wan")]

    def bridge_both(started):
        bridge_tap(started)
        started.router.ip("link add br1 type bridge")
        started.router.sysctl(net__ipv6__conf__br1__disable_ipv6=1)
        started.router.ip("link set br1 arp off")
        started.router.ip("link set br1 addrgenmode none up")
        for interface in ("wan0", "tap1"):
            started.router.ip(f"link set {interface} addrgenmode none master br1 up")

    with Topology(tmp_path, ports=ports) as network:
        gateway = network.start(before_addresses=bridge_both)
        before = [network.router.ip(f"-o link show {tap}") for tap in ("tap0", "tap1")]
        again = tmp_path / "again.toml"  # without the API, whose address is taken, too, and looked at first
        again.write_text(re.sub("(?m)^listen = .*", 'listen = ""', open(gateway.config_path, encoding="utf-8").read()))
        second = network.router.spawn([SLUICE, "run", again], stderr=subprocess.PIPE, text=True)
        answer = second.communicate(timeout=20)[1]
        assert second.returncode == 1, answer
        last = answer.splitlines()[-1]
        assert "[[port]] 'lan'" in last and "'tap0' is in use by another program" in last, answer
        network.router.run([SLUICE, "check", gateway.config_path])
        assert [network.router.ip(f"-o link show {tap}") for tap in ("tap0", "tap1")] == before
        check_traffic(network.client, network.server)
        check_carried(gateway, ("lan", "wan"))


@pytest.mark.alone
def test_a_silent_tap_is_waited_for_and_not_looked_at(tmp_path):
    """As packet sockets are: nothing wakes the lanes, and the first frame does at once. A tap that is deleted costs little too."""
    with Topology(tmp_path, ports=[("lan", "net_tap0,iface=tap0", "sl-lan"), ("wan", "wan0", "sl-wan")]) as network:
        gateway = network.start(before_addresses=bridge_tap)
        time.sleep(3)
        before = gateway.lane_sleeps()
        share = gateway.cpu_share(4)
        assert share < 0.05, f"{share:.1%} of a core"
        # A wait ends after 100 ms at the latest; one look every 2 ms would be 2,000 for each thread.
        assert gateway.lane_sleeps() - before < 400
        waits = []
        for _ in range(9):
            time.sleep(0.5)
            answer = network.client.run(f"ping -n -c 1 -W 1 {SERVER4}")
            waits.append(float(re.search(r"time=([\d.]+) ms", answer)[1]))
        assert sorted(waits)[4] < 10, waits
        network.router.ip("link del tap0")
        time.sleep(1)
        assert gateway.cpu_share(2) < 0.25, "a lane's thread spins"
        assert "1 received" in network.server.run("ping -n -c 1 -W 1 10.2.0.1")


def test_memif_joins_two_gateways(tmp_path):
    """client - Sluice = shared memory = Sluice - server: each end an own process with own twins, two routers on the way."""
    socket = tmp_path / "memif.sock"
    with Lab() as lab:
        client, left, right, server = (lab.host(name) for name in ("client", "left", "right", "server"))
        lab.join(client, "eth0", left, "lan0")
        lab.join(server, "eth0", right, "wan0")
        gateways = []
        for host, edge, twin, role, net in ((left, "lan0", "sl-lan", "server", 1), (right, "wan0", "sl-wan", "client", 2)):
            folder = tmp_path / host.label
            folder.mkdir()
            memif = f"net_memif0,role={role},id=7,socket={socket},socket-abstract=no"
            ports = [("edge", edge, twin), ("core", memif, "sl-core")]
            gateways.append(Gateway(host, folder, config(ports, size="512M")).start())
            host.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
            for interface, four, six in ((twin, f"10.{net}.0.1", f"2001:db8:{net}::1"),
                                         ("sl-core", f"10.9.0.{net}", f"2001:db8:9::{net}")):
                host.ip(f"addr add {four}/24 dev {interface}")
                host.ip(f"addr add {six}/64 dev {interface} nodad")
        for host, net, other, edge_host in ((left, 1, 2, client), (right, 2, 1, server)):
            # A twin without a carrier would not take the routes: the memif must have found its other end.
            assert wait_until(lambda: "NO-CARRIER" not in host.ip("link show sl-core"), 10), [g.log() for g in gateways]
            host.ip(f"route add 10.{other}.0.0/24 via 10.9.0.{other}")
            host.ip(f"-6 route add 2001:db8:{other}::/64 via 2001:db8:9::{other}")
            edge_host.ip(f"addr add 10.{net}.0.2/24 dev eth0")
            edge_host.ip(f"addr add 2001:db8:{net}::2/64 dev eth0 nodad")
            edge_host.ip(f"route add default via 10.{net}.0.1")
            edge_host.ip(f"-6 route add default via 2001:db8:{net}::1")
        for target in (SERVER4, SERVER6):
            assert wait_until(lambda: "1 received" in client.run(f"ping -n -c 1 -W 1 {target}", check=False), 10)
        check_traffic(client, server)
        assert "ttl=62" in client.run(f"ping -n -c 1 -W 1 {SERVER4}")
        for gateway in gateways:
            check_carried(gateway, ("edge", "core"))

        # The other end stops reading: what no longer fits is dropped under its name, and everything still adds up.
        gateways[1].process.send_signal(signal.SIGSTOP)
        client.blast(SERVER4, 8000)
        assert wait_until(lambda: gateways[0].drops().get("tx_full", 0) > 100, 5), gateways[0].stats()
        gateways[1].process.send_signal(signal.SIGCONT)
        assert wait_until(lambda: "1 received" in client.run(f"ping -n -c 1 -W 1 {SERVER4}", check=False), 10)

        # The other end goes, and with it the link and the twin's carrier; the next one connects again.
        gateways[1].interrupt()
        assert wait_until(lambda: "NO-CARRIER" in left.ip("link show sl-core"), 5)
        gateways[1].start()
        assert wait_until(lambda: "NO-CARRIER" not in left.ip("link show sl-core"), 10)
        for gateway in gateways:
            gateway.interrupt()


def test_pcap_reads_a_file_and_sends_to_an_interface(tmp_path):
    """It ends by itself all the same when the file is read."""
    with Lab() as lab:
        router, sink = lab.host("router"), lab.host("sink")
        lab.join(router, "out0", sink, "eth0")
        before = sink.counter("eth0", "rx_bytes")
        gateway = route_capture(router, tmp_path, [ipv4(number, "198.51.100.7", ttl=64, size=1000) for number in range(500)],
                                "net_pcap1,tx_iface=out0")
        assert gateway.process.wait(20) == 0, gateway.log()
        assert "the captures are forwarded" in gateway.log() and "counters add up" in gateway.log()
        assert "degraded" not in gateway.log(), gateway.log()
        assert sink.counter("eth0", "rx_bytes") - before >= 500 * 1000


def test_pcap_that_sends_to_an_interface_has_its_link(tmp_path):
    with Lab() as lab:
        router, other = lab.host("router"), lab.host("other")
        lab.join(router, "in0", other, "eth0")
        text = config([("a", "net_pcap0,tx_iface=in0", ""), ("b", "net_null0,no-rx=1", "")], last="bridge", size="128M", memory=("frames = 4096",))
        gateway = Gateway(router, tmp_path, text).start()
        assert gateway.why_degraded() == ""
        other.ip("link set eth0 down")
        assert wait_until(lambda: "port a: its link is down (ip link set in0 up" in gateway.why_degraded(), 5), gateway.why_degraded()
        other.ip("link set eth0 up")
        assert wait_until(lambda: gateway.why_degraded() == "", 5), gateway.why_degraded()
        router.ip("link del in0")
        assert wait_until(lambda: "port a: its interface was deleted" in gateway.why_degraded(), 5), gateway.why_degraded()
        assert wait_until(lambda: "port a: interface in0 was deleted" in gateway.log(), 5), gateway.log()
