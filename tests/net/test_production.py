"""A gateway that runs for years: addresses and twins over restarts, and what its service manager is sent."""

import os
import re
import signal
import socket

import pytest

from gateway import ROOT, Gateway, config
from hosts import Lab, stop, wait_until

PORTS = [("lan", "net_null0,no-rx=1", "sl-lan"), ("wan", "net_null1,no-rx=1", "sl-wan")]


def text_of(lan=(), wan=(), extra=""):
    """A router; `lan`, `wan`: lines of their [[port]] sections."""
    text = config(PORTS, size="256M", memory=("frames = 4096",), route=("kernel = true", "max_ipv4 = 10_000", "max_ipv6 = 10_000"))
    for twin, lines in (("sl-lan", lan), ("sl-wan", wan)):
        text = text.replace(f'twin = "{twin}"\n', f'twin = "{twin}"\n' + "".join(f"{line}\n" for line in lines))
    return text + extra


def addresses(host, twin):
    return set(re.findall(r"inet6? (\S+) .*scope global", host.ip(f"addr show dev {twin}")))


@pytest.fixture
def router():
    with Lab() as lab:
        host = lab.host("router")
        host.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        yield host


def test_addresses_are_there_after_a_start_and_after_kill_9(router, tmp_path):
    lan = 'address = ["10.1.0.1/24", "2001:db8:1::1/64"]'
    gateway = Gateway(router, tmp_path, text_of([lan], ['address = ["10.2.0.1/24"]'])).start()
    for _ in range(2):
        assert addresses(router, "sl-lan") == {"10.1.0.1/24", "2001:db8:1::1/64"} and addresses(router, "sl-wan") == {"10.2.0.1/24"}
        assert wait_until(lambda: gateway.why_degraded() == "", 3), gateway.why_degraded()
        assert "10.2.0.0/24" in gateway.control("routes") and "4 addresses" not in gateway.log()
        gateway.kill()
        gateway.start()
    assert "kernel: 3 addresses added on twins" in gateway.log()
    gateway.interrupt()


def test_a_reload_applies_the_difference_and_leaves_what_others_put_there(router, tmp_path):
    gateway = Gateway(router, tmp_path, text_of(['address = ["10.1.0.1/24", "10.1.1.1/24"]'], ["unnumbered = true"])).start()
    router.ip("addr add 10.9.0.1/24 dev sl-lan")
    gateway.config_path.write_text(text_of(['address = ["10.1.0.1/24", "2001:db8:7::1/64", "10.9.0.1/24"]'], ["unnumbered = true"]), encoding="utf-8")
    assert "1 address added, 1 taken away on twins" in gateway.control("reload")
    assert addresses(router, "sl-lan") == {"10.1.0.1/24", "10.9.0.1/24", "2001:db8:7::1/64"}
    assert wait_until(lambda: "2001:db8:7::/64" in gateway.control("routes"), 3)
    gateway.config_path.write_text(text_of((), ["unnumbered = true"]), encoding="utf-8")
    assert "2 taken away on twins" in gateway.control("reload")
    assert addresses(router, "sl-lan") == {"10.9.0.1/24"}, "it was there before"
    gateway.interrupt()


@pytest.mark.parametrize(("before", "after"), [
    pytest.param(["10.1.0.1/24"], ["10.1.0.254/24"], id="renumbered"),
    pytest.param(["10.1.0.1/24", "10.1.0.3/24"], ["10.1.0.3/24"], id="first-of-two"),
])
def test_a_reload_within_a_subnet_keeps_the_rest_of_it_and_the_routes_by_it(router, tmp_path, before, after):
    def file(of_lan):
        return text_of([f"address = [{', '.join(f'{chr(34)}{one}{chr(34)}' for one in of_lan)}]"], ["unnumbered = true"])

    router.sysctl(net__ipv4__conf__default__promote_secondaries=0, net__ipv4__conf__all__promote_secondaries=0)
    gateway = Gateway(router, tmp_path, file(before)).start()
    router.ip("route add 192.0.2.0/24 via 10.1.0.2")
    gateway.config_path.write_text(file(after), encoding="utf-8")
    assert "1 taken away on twins" in gateway.control("reload")
    assert addresses(router, "sl-lan") == set(after)
    assert "via 10.1.0.2 dev sl-lan" in router.ip("route show 192.0.2.0/24")
    gateway.interrupt()


def test_a_twin_gets_back_what_it_lost(router, tmp_path):
    """The kernel takes IPv6 addresses when a twin is set down; somebody takes one away."""
    both = {"10.1.0.1/24", "2001:db8:1::1/64"}
    gateway = Gateway(router, tmp_path, text_of(['address = ["10.1.0.1/24", "2001:db8:1::1/64"]'], ["unnumbered = true"])).start()
    assert "nodad" in re.search("inet6 2001:db8:1::1/64 .*", router.ip("addr show dev sl-lan"))[0], "it serves at once"
    router.ip("link set sl-lan down")
    router.ip("link set sl-lan up")
    assert wait_until(lambda: addresses(router, "sl-lan") == both, 3)
    assert wait_until(lambda: "kernel: 1 address put back on sl-lan" in gateway.log(), 3)
    router.ip("addr del 2001:db8:1::1/64 dev sl-lan")
    assert wait_until(lambda: gateway.why_degraded() == "port lan: its twin sl-lan has lost 2001:db8:1::1/64 of the configuration "
                      "(sluice ctl reload puts it back)", 3), gateway.why_degraded()
    assert "1 address added on twins" in gateway.control("reload")
    assert addresses(router, "sl-lan") == both
    assert wait_until(lambda: gateway.why_degraded() == "", 3), gateway.why_degraded()
    gateway.interrupt()


def test_a_refused_reload_leaves_addresses_as_they_were(router, tmp_path):
    good = text_of(['address = ["10.1.0.1/24"]'], ["unnumbered = true"])
    gateway = Gateway(router, tmp_path, good).start()
    changed = text_of(['address = ["10.1.2.1/24"]'], ["unnumbered = true"])
    for bad, why in ((changed.replace("max_ipv4 = 10_000", "max_ipv4 = 10_001"), "max_ipv4 cannot change"),
                     (changed.replace("unnumbered = true", "unnumbered = false"), "unnumbered cannot change"),
                     (changed + '\n[[route.connected]]\nprefix = "10.50.0.0/24"\nport = "nowhere"\n', "nowhere")):
        gateway.config_path.write_text(bad, encoding="utf-8")
        assert why in gateway.control("reload", check=False)
        assert addresses(router, "sl-lan") == {"10.1.0.1/24"}
    router.sysctl(**{"net__ipv6__conf__sl-lan__disable_ipv6": 1})
    gateway.config_path.write_text(text_of(['address = ["10.1.0.1/24", "10.1.9.1/24", "2001:db8::1/64"]'], ["unnumbered = true"]), encoding="utf-8")
    answer = gateway.control("reload", check=False)
    line = [number for number, line in enumerate(gateway.config_path.read_text(encoding="utf-8").splitlines(), 1) if line.startswith("address")][0]
    assert f"{gateway.config_path}:{line}: [[port]] 'lan': address = \"2001:db8::1/64\": cannot be put on sl-lan: IPv6 is off on it: " in answer, answer
    assert addresses(router, "sl-lan") == {"10.1.0.1/24"}, "what came before the one that failed is gone again"
    gateway.interrupt()


def test_a_persistent_twin_stays_with_what_is_on_it(router, tmp_path):
    text = text_of(["persistent = true", 'address = ["10.1.0.1/24"]'], ["unnumbered = true"])
    gateway = Gateway(router, tmp_path, text).start()
    router.ip("route add 192.0.2.0/24 via 10.1.0.9")
    index = router.run(["cat", "/sys/class/net/sl-lan/ifindex"])
    for end in ("interrupt", "kill"):
        getattr(gateway, end)()
        shown = router.ip("addr show dev sl-lan")
        assert "NO-CARRIER" in shown and "10.1.0.1/24" in shown, shown
        assert "sl-wan" not in router.ip("link show")
        gateway.start()
        assert router.run(["cat", "/sys/class/net/sl-lan/ifindex"]) == index
        assert "192.0.2.0/24" in gateway.control("routes") and "NO-CARRIER" not in router.ip("addr show dev sl-lan")
    gateway.interrupt()
    router.ip("link del sl-lan")


class Manager:
    """A service manager's end of the notification protocol: datagrams as they come."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(0.05)
        self.received = []

    def heard(self, begin):
        """Whether a line that begins so has come."""
        try:
            while True:
                self.received.append(self.socket.recv(4096).decode().splitlines())
        except TimeoutError:
            return any(line.startswith(begin) for lines in self.received for line in lines)


def test_its_manager_is_notified_when_it_is_ready_reloads_and_ends(router, tmp_path):
    """READY when daemons find the twins as they need them; a watchdog's signs; the end."""
    manager = Manager(tmp_path / "notify")
    gateway = Gateway(router, tmp_path, text_of(['address = ["10.1.0.1/24"]'], ['address = ["10.2.0.1/24"]']),
                      ["env", f"NOTIFY_SOCKET={manager.path}", "WATCHDOG_USEC=1000000"])
    with open(gateway.log_path, "ab") as log:
        gateway.process = router.spawn([*gateway.under, os.environ.get("SLUICE", ROOT / "build" / "sluice"), "run", gateway.config_path], stdout=log, stderr=log)
    assert wait_until(lambda: manager.heard("READY=1"), 30), gateway.log()
    for twin, own in (("sl-lan", "10.1.0.1/24"), ("sl-wan", "10.2.0.1/24")):
        shown = router.ip(f"addr show dev {twin}")
        assert ",UP" in shown and own in shown, shown
    assert gateway.healthy(), "the API answers"
    assert wait_until(lambda: manager.heard("WATCHDOG=1"), 3)
    assert not any("RELOADING=1" in lines for lines in manager.received)
    for _ in range(2):
        manager.received.clear()
        gateway.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: manager.heard("RELOADING=1") and manager.heard("READY=1"), 5), manager.received
    reloading = next(lines for lines in manager.received if "RELOADING=1" in lines)
    assert any(re.fullmatch(r"MONOTONIC_USEC=\d+", line) for line in reloading)
    router.ip("link set sl-lan down")
    assert wait_until(lambda: manager.heard("STATUS=forwards, degraded: port lan: its twin sl-lan is down"), 8), manager.received
    assert not manager.heard("STOPPING=1")
    gateway.interrupt()
    assert manager.heard("STOPPING=1")


def test_a_process_that_stands_still_gives_no_signs(router, tmp_path):
    manager = Manager(tmp_path / "notify")
    gateway = Gateway(router, tmp_path, text_of(["unnumbered = true"], ["unnumbered = true"]),
                      ["env", f"NOTIFY_SOCKET={manager.path}", "WATCHDOG_USEC=400000"]).start()
    assert wait_until(lambda: manager.heard("WATCHDOG=1"), 3)
    gateway.process.send_signal(signal.SIGSTOP)
    manager.heard("")
    manager.received.clear()
    assert not wait_until(lambda: manager.heard("WATCHDOG=1"), 1)
    gateway.process.send_signal(signal.SIGCONT)
    assert wait_until(lambda: manager.heard("WATCHDOG=1"), 3)
    assert stop(gateway.process, signal.SIGTERM, 20) == 0
