"""Starting, reloading, dying and refusing."""

import os
import re
import signal
import subprocess
import time

import pytest
from gateway import SLUICE, SMALL_TABLES, Gateway, config
from hosts import cpu_seconds, stop, wait_until
from topology import PORTS, SERVER4


def background_ping(topology, target, count):
    log = open(f"{topology.folder}/ping.log", "w+", encoding="utf-8")
    return topology.client.spawn(f"ping -n -i 0.005 -c {count} -W 1 {target}", stdout=log), log


def loss(log):
    log.seek(0)
    return float(re.search(r"([\d.]+)% packet loss", log.read()).group(1))


def test_reload_under_load_loses_nothing(fresh):
    fresh.start()
    ping, log = background_ping(fresh, SERVER4, 600)
    reloads = 0
    while ping.poll() is None:
        fresh.gateway.control("reload")
        reloads += 1
        time.sleep(0.3)
    assert loss(log) == 0
    assert reloads >= 5


def test_a_kernel_that_does_not_forward_is_said_once_at_start(fresh):
    fresh.router.sysctl(net__ipv4__ip_forward=0)
    gateway = Gateway(fresh.router, fresh.folder, config(fresh.ports)).start()
    log = gateway.interrupt()
    assert log.count("warning kernel: IPv4 forwarding is off on sl-lan, sl-wan: ") == log.count("warning kernel") == 1, log
    assert "sysctl -w net.ipv4.ip_forward=1\n" in log, log
    fresh.router.sysctl(net__ipv4__ip_forward=1)
    before = len(log)
    gateway.start()
    assert "forwarding is off" not in gateway.interrupt()[before:]


def test_forwarding_that_is_switched_off_meanwhile_is_said(fresh):
    """Once in the log, and for as long as it lasts in /healthz, ctl stats and top; and once that it is on again."""
    gateway = fresh.start()
    off = "IPv4 forwarding is off on sl-lan, sl-wan"
    why = f"kernel: {off} (sysctl -w net.ipv4.ip_forward=1)"
    for times in (1, 2):
        fresh.router.sysctl(net__ipv4__ip_forward=0)
        assert wait_until(lambda: gateway.why_degraded() == why, 3), gateway.why_degraded()
        assert f"\ndegraded     {why}\n" in gateway.control("stats")
        assert f"\ndegraded: {why}\n" in fresh.router.run([SLUICE, "top", "--once"])
        time.sleep(1.2)
        assert gateway.log().count(f"warning kernel: {off}: it will not forward") == times, gateway.log()
        fresh.router.sysctl(net__ipv4__ip_forward=1)
        assert wait_until(lambda: gateway.why_degraded() == "", 3), gateway.why_degraded()
        assert gateway.log().count("kernel: IPv4 and IPv6 forwarding is on again") == times, gateway.log()
    assert "degraded" not in gateway.control("stats")


def test_reload_of_a_bad_file_changes_nothing(fresh):
    gateway = fresh.start()
    good = gateway.config_path.read_text(encoding="utf-8")
    gateway.config_path.write_text(good.replace("kernel = true", 'kernel = "perhaps"'), encoding="utf-8")
    answer = gateway.control("reload", check=False)
    assert "kernel" in answer and "perhaps" in answer
    assert gateway.healthy() and fresh.reaches(SERVER4)


def test_a_reload_that_needs_a_restart_names_each_setting_and_its_line(fresh):
    gateway = fresh.start()
    good = gateway.config_path.read_text(encoding="utf-8")
    gateway.config_path.write_text(good.replace('"50ms"', '"60ms"').replace("200_000", "200_001"), encoding="utf-8")
    answer = gateway.control("reload", check=False)
    assert f"{gateway.config_path}:3: [engine] deadline cannot change while the gateway runs: restart it" in answer
    gateway.config_path.write_text(good.replace("200_000", "200_001"), encoding="utf-8")
    line = good[:good.index("max_ipv4")].count("\n") + 1
    answer = gateway.control("reload", check=False)
    assert f"{gateway.config_path}:{line}: [route] max_ipv4 cannot change while the router runs: restart it" in answer


def test_killed_and_started_again(fresh):
    """kill -9 leaves nothing behind that stops the next start; forwarding resumes."""
    gateway = fresh.start()
    gateway.kill()
    assert not fresh.reaches(SERVER4)
    gateway.start()
    fresh.address()
    assert fresh.reaches(SERVER4)


def test_an_interrupt_under_load_ends_cleanly_and_counts_everything(fresh):
    gateway = fresh.start()
    server = fresh.server.spawn("iperf3 -s -1")
    assert wait_until(lambda: ":5201" in fresh.server.run("ss -Hltn"), 5)
    client = fresh.client.spawn(["iperf3", "-c", SERVER4, "-u", "-b", "100M", "-l", "1000", "-t", "10"])
    time.sleep(2)
    began = time.monotonic()
    gateway.interrupt()
    assert time.monotonic() - began < 5
    stop(client)
    stop(server)


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGQUIT])
def test_a_terminated_gateway_gives_its_interfaces_back(fresh, with_signal):
    """SIGTERM and SIGQUIT are as good as Ctrl-C, and the kernel forwards again by itself when asked to. SIGUSR1 and SIGUSR2,
    which mean nothing, do not end it, or its interfaces would stay as they are."""
    gateway = fresh.start()
    for meaningless in (signal.SIGUSR1, signal.SIGUSR2):
        gateway.process.send_signal(meaningless)
    time.sleep(0.5)
    assert gateway.process.poll() is None and gateway.healthy()
    before = fresh.router.run("sysctl -n net.ipv6.conf.lan0.disable_ipv6").strip()
    assert stop(gateway.process, with_signal, 20) == 0
    assert "counters add up" in gateway.log()
    assert "sl-lan" not in fresh.router.ip("link show")
    assert before == "1"
    assert fresh.router.run("sysctl -n net.ipv6.conf.lan0.disable_ipv6").strip() == "0"
    fresh.router.ip("addr add 10.1.0.1/24 dev lan0")
    fresh.router.ip("addr add 10.2.0.1/24 dev wan0")
    assert wait_until(lambda: fresh.reaches(SERVER4), 5)


def refused(fresh, text, before=(), status=2):
    """Runs sluice, after the words `before`, on a configuration that it must refuse with this exit status; the one line that is all of its stderr
    comes back."""
    path = fresh.folder / "bad.toml"
    path.write_text(text + '\n[log]\nlevel = "error"\n', encoding="utf-8")
    process = fresh.router.spawn([*before, SLUICE, "run", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == status, output + errors
    assert "sl-lan" not in fresh.router.ip("link show"), "half started"
    assert len(errors.splitlines()) == 1, errors
    assert "bad.toml" in errors and "error" not in output.lower(), (output, errors)
    return errors


def line_of(text, setting):
    """The place that a refusal names: FILE:LINE of the first line of the configuration that holds `setting`."""
    return f"bad.toml:{[setting in line for line in text.splitlines()].index(True) + 1}: "


@pytest.mark.parametrize("driver", ["net_af_packet", "net_af_xdp"])
def test_an_interface_that_does_not_exist_is_named(fresh, driver):
    text = config([("lan", f"{driver}0,iface=nosuch0", "sl-lan"), PORTS[1]])
    line = refused(fresh, text)
    assert line_of(text, "nosuch0") in line
    assert "[[port]] 'lan'" in line and "no interface 'nosuch0' in this network namespace" in line and "ip link" in line
    assert "permitted" not in line


ALL = ("-net_raw,-net_admin,-bpf,-sys_admin", "CAP_NET_RAW")
NET_ADMIN = ("-net_admin", "CAP_NET_ADMIN")  # CAP_NET_RAW is there, which opens the sockets


@pytest.mark.parametrize(("device", "without"), [
    ("net_af_packet0,iface=lan0", ALL), ("net_af_xdp0,iface=lan0", ALL),
    ("net_af_packet0,iface=lan0", NET_ADMIN), ("net_af_xdp0,iface=lan0", NET_ADMIN), ("net_tap0,iface=tap0", NET_ADMIN),
])
def test_a_missing_privilege_is_named(fresh, device, without):
    capabilities, named = without
    line = refused(fresh, config([("lan", device, "sl-lan"), PORTS[1]]),
                   before=["setpriv", "--bounding-set", capabilities, "--inh-caps", capabilities])
    assert "[[port]] 'lan'" in line and "no permission" in line and "run as root or with" in line and named in line


def test_an_mtu_that_the_device_refuses_is_named(fresh):
    """A macvlan takes none above that of the interface below it."""
    fresh.router.ip("link add link lan0 name over0 type macvlan")
    ports = [("lan", "over0", ""), ("wan", "wan0", "")]
    line = refused(fresh, config(ports, route=("kernel = false", *SMALL_TABLES), port=("mtu = 1600",)))
    assert "[[port]] 'lan'" in line and "does not take mtu = 1600" in line


def test_an_argument_of_a_device_that_does_not_fit_is_in_the_line(fresh):
    line = refused(fresh, config([("lan", "net_af_packet0,iface=lan0,blocksz=1000", "sl-lan"), PORTS[1]]))
    assert "[[port]] 'lan'" in line and "blocksz = 1000" in line and "allowed are" in line


@pytest.mark.parametrize("driver", ["net_af_packet", "net_af_xdp"])
def test_interfaces_get_their_mtu_and_mode_back(fresh, driver):
    """After a clean end, and after a start that was refused when the first port was already open."""
    ports = [("lan", f"{driver}0,iface=lan0", "sl-lan"), ("wan", "wan0", "sl-wan")]
    for interface in ("lan0", "wan0"):
        fresh.router.ip(f"link set {interface} mtu 9000")

    def check():
        for interface in ("lan0", "wan0"):
            shown = fresh.router.ip(f"link show {interface}")
            assert "mtu 9000" in shown and "PROMISC" not in shown, shown

    # The second port is refused, and then the second port's twin.
    fresh.router.ip("link add sl-wan type veth peer name unused")
    path = fresh.folder / "bad.toml"
    for second, words in (("nosuch0", "no interface 'nosuch0'"), ("wan0", "'sl-wan' exists and is no TAP")):
        path.write_text(config([ports[0], ("wan", second, "sl-wan")]), encoding="utf-8")
        answer = fresh.router.run([SLUICE, "run", path], check=False)
        assert words in answer, answer
        check()
    fresh.router.ip("link del sl-wan")
    fresh.ports = ports
    gateway = fresh.start()
    shown = fresh.router.ip("link show lan0")
    assert "mtu 1500" in shown and "PROMISC" in shown, shown
    gateway.interrupt()
    check()


@pytest.mark.alone
def test_a_core_that_others_use_is_refused_unless_allowed(fresh):
    core = max(os.sched_getaffinity(0))
    others = fresh.router.spawn(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"])
    wait_until(lambda: cpu_seconds(others.pid) > 0.2, 10)
    text = config(PORTS, engine=[f"cores = [{core}]"])
    line = refused(fresh, text, status=1)
    assert line_of(text, "cores") + f"[engine] cores: core {core} is " in line and 'busy_cores = "allow"' in line
    assert f"[engine] cores: core {core} is " in fresh.router.run([SLUICE, "check", fresh.folder / "bad.toml"])
    fresh.configuration = {"engine": [f"cores = [{core}]", 'busy_cores = "allow"']}
    fresh.start()


def test_a_twin_that_cannot_be_made_is_named_with_its_line(fresh):
    fresh.router.ip("link add sl-wan type veth peer name unused")
    text = config(PORTS)
    assert line_of(text, 'twin = "sl-wan"') in refused(fresh, text)


def test_sighup_reloads(fresh):
    gateway = fresh.start()
    good = gateway.config_path.read_text(encoding="utf-8")
    gateway.config_path.write_text(good + "\n[nonsense]\n[rubbish]\n", encoding="utf-8")
    gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: len(re.findall(r"error reload: .*: unknown section", gateway.log())) == 2, 5), gateway.log()
    gateway.config_path.write_text(good, encoding="utf-8")
    with gateway.config_path.open("a", encoding="utf-8") as file:
        file.write('\n[[route.connected]]\nprefix = "198.51.100.0/24"\nport = "wan"\n')
    gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: "198.51.100.0/24" in gateway.control("routes"), 5), gateway.log()
    assert fresh.reaches(SERVER4)
