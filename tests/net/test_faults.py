"""What goes wrong on a wire, under load: traffic comes back by itself, and every frame is under a name."""

import re
import signal
import time

import pytest
from gateway import SLUICE
from hosts import stop, wait_until
from topology import CLIENT4, SERVER4, SERVER6, Topology, bridge_tap

DRIVERS = ["net_af_packet", "net_af_xdp"]


def on(driver, folder, **options):
    ports = [("lan", f"{driver}0,iface=lan0", "sl-lan"), ("wan", f"{driver}1,iface=wan0", "sl-wan")]
    return Topology(folder, ports=ports, **options)


def port(network, name):
    return next(port for port in network.gateway.stats()["ports"] if port["name"] == name)


def has_carrier(network, twin):
    return "NO-CARRIER" not in network.router.ip(f"link show {twin}")


class Load:
    """iperf3 and ping from the client to the server, until it ends."""

    def __init__(self, network):
        self.network = network
        self.log = open(f"{network.folder}/ping.log", "w+", encoding="utf-8")

    def __enter__(self):
        self.server = self.network.server.spawn("iperf3 -s -1")
        assert wait_until(lambda: ":5201" in self.network.server.run("ss -Hltn"), 5)
        self.iperf3 = self.network.client.spawn(["iperf3", "-c", SERVER4, "-u", "-b", "40M", "-l", "1000", "-t", "60"])
        self.ping = self.network.client.spawn(f"ping -n -i 0.01 -c 100000 -W 1 {SERVER4}", stdout=self.log)
        time.sleep(1)
        return self

    def __exit__(self, *_):
        stop(self.ping, signal.SIGINT)
        for process in (self.iperf3, self.server):
            stop(process)
        self.log.seek(0)
        self.answers = self.log.read()
        self.log.close()


def take_down_here(network):
    network.router.ip("link set wan0 down")
    return lambda: network.router.ip("link set wan0 up")


def take_down_there(network):
    """As a pulled cable: the interface stays up and loses its carrier. The server loses its routes with its link."""
    network.server.sysctl(net__ipv6__conf__eth0__keep_addr_on_down=1)
    network.server.ip("link set eth0 down")

    def restore():
        network.server.ip("link set eth0 up")
        network.server.ip("route replace default via 10.2.0.1")
        network.server.ip("-6 route replace default via 2001:db8:2::1")

    return restore


def take_down_tap(network):
    network.router.ip("link set tap0 down")
    return lambda: network.router.ip("link set tap0 up")


@pytest.mark.parametrize(("wan", "take_down"), [
    ("net_af_packet1,iface=wan0", take_down_here), ("net_af_packet1,iface=wan0", take_down_there),
    ("net_af_xdp1,iface=wan0", take_down_here), ("net_af_xdp1,iface=wan0", take_down_there),
    ("net_tap0,iface=tap0", take_down_tap)])
def test_a_link_that_fails_and_comes_back_under_load(tmp_path, wan, take_down):
    ports = [("lan", "net_af_packet0,iface=lan0", "sl-lan"), ("wan", wan, "sl-wan")]
    with Topology(tmp_path, ports=ports) as network:
        network.start(before_addresses=lambda n: bridge_tap(n, cable="wan0") if "tap" in wan else None)
        with Load(network) as load:
            restore = take_down(network)
            assert wait_until(lambda: not has_carrier(network, "sl-wan"), 3), "the twin still has a carrier"
            assert not port(network, "wan")["link_up"] and port(network, "lan")["link_up"]
            assert has_carrier(network, "sl-lan")
            time.sleep(1.5)
            restore()
            assert wait_until(lambda: has_carrier(network, "sl-wan"), 3), "the twin has no carrier again"
            assert wait_until(network.forwards, 10), network.gateway.stats()
            before = port(network, "wan")["tx_frames"]
            time.sleep(1)
            assert port(network, "wan")["tx_frames"] - before > 2000, "the load does not pass again"
        sent, received = map(int, re.search(r"(\d+) packets transmitted, (\d+) received", load.answers).groups())
        assert 0 < received < sent and "DUP!" not in load.answers
        for target in (SERVER4, SERVER6):
            assert "100 received, 0% packet loss" in network.client.run(f"ping -n -i 0.01 -c 100 -W 1 {target}")
        assert network.gateway.stats()["conserved"]


def test_frames_for_a_dead_link_do_not_go_to_the_driver_until_the_kernel_reports_it(tmp_path):
    """Linux reports lost carriers once a second: after a bridge's, the twin's is mostly reported late. The port's own is looked at."""
    with on("net_af_packet", tmp_path) as network:
        gateway = network.start()
        network.router.batch(["link add br0 type bridge", "link add in0 type veth peer name in1", "link set in0 master br0",
                              "link set in0 up", "link set in1 up", "link set br0 up"])
        assert wait_until(lambda: "state UP" in network.router.ip("link show br0"), 3)
        time.sleep(1.2)
        with Load(network):
            network.router.ip("link set in1 down")
            time.sleep(1.05)
            take_down_there(network)
            time.sleep(1.5)
            # 5,000 frames a second came, of which the ring took 512.
            assert gateway.drops().get("tx_full", 0) < 2000, gateway.drops()
        assert gateway.stats()["conserved"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_finds_the_receive_ring_full_is_counted_as_missed(tmp_path, driver):
    """The gateway stands still while 8,000 frames arrive: each of them was received or missed."""
    with on(driver, tmp_path) as network:
        gateway = network.start()
        before = port(network, "lan")
        gateway.process.send_signal(signal.SIGSTOP)
        network.client.blast(SERVER4, 8000)
        gateway.process.send_signal(signal.SIGCONT)

        def grown(key):
            return port(network, "lan")[key] - before[key]

        assert wait_until(lambda: grown("rx_frames") + grown("missed") >= 8000, 5), port(network, "lan")
        assert grown("missed") > 3000 and grown("rx_frames") + grown("missed") < 8050
        assert network.reaches(SERVER4)


def test_what_finds_the_transmit_ring_full_is_dropped_as_tx_full(tmp_path):
    """A link of 1 Mbit/s behind a queue that keeps everything: the packet socket's buffer fills up, and empties again."""
    ports = [("lan", "net_af_packet0,iface=lan0", "sl-lan"), ("wan", "net_af_packet1,iface=wan0,qdisc_bypass=0", "sl-wan")]
    with Topology(tmp_path, ports=ports) as network:
        network.start()
        network.router.run("tc qdisc add dev wan0 root tbf rate 1mbit burst 2kb limit 100mb")
        network.client.blast(SERVER4, 20_000, 1400)
        assert wait_until(lambda: network.gateway.drops().get("tx_full", 0) > 1000, 5), network.gateway.stats()
        network.router.run("tc qdisc del dev wan0 root")
        assert wait_until(network.forwards, 10), network.gateway.stats()
        assert "100 received, 0% packet loss" in network.client.run(f"ping -n -i 0.01 -c 100 -W 1 {SERVER4}")
        stats = network.gateway.stats()
        assert stats["conserved"] and sum(lane["in_flight"] for lane in stats["lanes"]) == 0


def test_what_a_twin_that_is_down_does_not_take_is_counted(tmp_path):
    """In the port's numbers, in the metrics, in ctl stats and in the closing report. That it is down is said, too."""
    with on("net_af_packet", tmp_path) as network:
        gateway = network.start()
        assert wait_until(lambda: gateway.why_degraded() == "", 3), gateway.why_degraded()
        network.router.ip("link set sl-lan down")
        assert port(network, "lan")["twin_down"] and not port(network, "wan")["twin_down"]
        assert "sl-lan (down)" in gateway.control("ports") and "sl-wan (down)" not in gateway.control("ports")
        assert gateway.why_degraded() == "port lan: its twin sl-lan is down (ip link set sl-lan up)"
        why = "port lan: its twin sl-lan is down (ip link set sl-lan up)"
        assert f"\ndegraded     {why}\n" in gateway.control("stats")
        assert f"\ndegraded: {why}\n" in network.router.run([SLUICE, "top", "--once"])
        down = "warning port lan: its twin sl-lan is down, and the host gets no frames of it: ip link set sl-lan up"
        assert wait_until(lambda: down in gateway.log(), 3)
        metrics = gateway.get("/metrics")
        assert 'sluice_port_twin_up{port="lan"} 0\n' in metrics and 'sluice_port_twin_up{port="wan"} 1\n' in metrics
        before = port(network, "lan")["to_host_lost"]
        network.client.run("ping -n -i 0.01 -c 100 -W 1 10.1.0.1", check=False)
        assert wait_until(lambda: port(network, "lan")["to_host_lost"] >= before + 100, 5), gateway.stats()
        assert port(network, "wan")["to_host_lost"] == 0
        lost = int(re.search(r'^sluice_port_to_host_lost_frames_total\{port="lan"\} (\d+)$', gateway.get("/metrics"), re.M)[1])
        assert lost >= before + 100
        line = r"^  to_host_lost +(\d+)  punted frames of port lan that its twin did not take$"
        assert int(re.search(line, gateway.control("stats"), re.M)[1]) >= lost
        network.router.ip("link set sl-lan up")
        assert wait_until(lambda: "info  port lan: its twin sl-lan is up again" in gateway.log(), 3), gateway.log()
        time.sleep(1.2)
        log = gateway.interrupt()
        assert log.count("its twin sl-lan is down, ") == 1 and log.count("is up again") == 1 and "twin sl-wan is" not in log, log
        assert int(re.search(line, log, re.M)[1]) >= lost


@pytest.mark.alone
def test_a_deleted_twin_is_said_once_and_the_rest_goes_on(tmp_path):
    with on("net_af_packet", tmp_path) as network:
        gateway = network.start()
        time.sleep(1)
        spent = gateway.cpu_seconds()
        time.sleep(2)
        idle = gateway.cpu_seconds() - spent
        network.router.ip("link del sl-lan")
        spent = gateway.cpu_seconds()
        time.sleep(2)
        assert gateway.cpu_seconds() - spent < idle + 0.5, "the host's thread spins"
        network.client.run("ping -n -i 0.01 -c 50 -W 1 10.1.0.1", check=False)
        assert wait_until(lambda: port(network, "lan")["to_host_lost"] >= 50, 5), gateway.stats()
        assert "20 received" in network.server.run("ping -n -i 0.05 -c 20 -W 1 10.2.0.1")
        assert "sl-lan (deleted)" in gateway.control("ports") and "sl-wan (deleted)" not in gateway.control("ports")
        assert gateway.why_degraded() == "port lan: its twin sl-lan was deleted (restart sluice)"
        log = gateway.interrupt()
        assert "its twin sl-lan is down, " not in log, log
        assert log.count("the interface was deleted") == 1 and "port lan: TAP twin 'sl-lan'" in log, log


def test_an_interface_that_is_deleted_takes_nothing_else_with_it(tmp_path):
    """The other end of wan0 goes, and wan0 with it: the rest goes on, and the gateway ends cleanly."""
    with on("net_af_packet", tmp_path) as network:
        network.start()
        network.server.ip("link del eth0")
        assert wait_until(lambda: not has_carrier(network, "sl-wan"), 3)
        # Another one of its name is not the port's, whose socket is bound to the one that is gone.
        network.lab.join(network.server, "eth0", network.router, "wan0")
        time.sleep(0.5)
        assert not port(network, "wan")["link_up"] and not has_carrier(network, "sl-wan")
        assert re.search("^wan +deleted +sl-wan ", network.gateway.control("ports"), re.M)
        assert network.gateway.why_degraded() == "port wan: its interface was deleted (restart sluice)"
        assert "20 received" in network.client.run("ping -n -i 0.05 -c 20 -W 1 10.1.0.1")
        network.client.blast(SERVER4, 500)
        assert "20 received" in network.client.run("ping -n -i 0.05 -c 20 -W 1 10.1.0.1")
        assert network.gateway.stats()["conserved"]
        assert CLIENT4 in network.gateway.control("neighbours")
        log = network.gateway.interrupt()
        assert log.count("port wan: interface wan0 was deleted; restart sluice to use the new one") == 1, log
