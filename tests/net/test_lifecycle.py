"""Starting, reloading, dying and refusing."""

import re
import signal
import subprocess
import time

from gateway import SLUICE, config
from hosts import stop, wait_until
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


def test_reload_of_a_bad_file_changes_nothing(fresh):
    gateway = fresh.start()
    good = gateway.config_path.read_text(encoding="utf-8")
    gateway.config_path.write_text(good.replace("kernel = true", 'kernel = "perhaps"'), encoding="utf-8")
    answer = gateway.control("reload", check=False)
    assert "kernel" in answer and "perhaps" in answer
    assert gateway.healthy() and fresh.reaches(SERVER4)


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


def test_a_terminated_gateway_gives_its_interfaces_back(fresh):
    """SIGTERM is as good as Ctrl-C, and the kernel forwards again by itself when asked to."""
    gateway = fresh.start()
    before = fresh.router.run("sysctl -n net.ipv6.conf.lan0.disable_ipv6").strip()
    assert stop(gateway.process, signal.SIGTERM, 20) == 0
    assert "sl-lan" not in fresh.router.ip("link show")
    assert before == "1"
    assert fresh.router.run("sysctl -n net.ipv6.conf.lan0.disable_ipv6").strip() == "0"
    fresh.router.ip("addr add 10.1.0.1/24 dev lan0")
    fresh.router.ip("addr add 10.2.0.1/24 dev wan0")
    assert wait_until(lambda: fresh.reaches(SERVER4), 5)


def refused(fresh, text):
    """Runs sluice on a configuration that it must refuse; its one line of output comes back."""
    path = fresh.folder / "bad.toml"
    path.write_text(text, encoding="utf-8")
    process = fresh.router.spawn([SLUICE, "run", path], stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2, output
    assert "sl-lan" not in fresh.router.ip("link show"), "half started"
    errors = [line for line in output.splitlines() if "error" in line.lower() or "bad.toml" in line]
    assert len(errors) == 1, output
    return errors[0]


def test_a_misspelt_key_is_named_with_its_line(fresh):
    line = refused(fresh, config(PORTS).replace("deadline", "dedline"))
    assert "bad.toml:3" in line and "dedline" in line and "deadline" in line


def test_a_port_that_does_not_exist_is_named(fresh):
    line = refused(fresh, config([("lan", "nosuch0", "sl-lan"), PORTS[1]]))
    assert "nosuch0" in line


def test_a_deadline_that_cannot_be_kept_is_refused(fresh):
    line = refused(fresh, config(PORTS, engine=['cycle = "40ms"']))
    assert "deadline" in line


def test_sighup_reloads(fresh):
    gateway = fresh.start()
    with gateway.config_path.open("a", encoding="utf-8") as file:
        file.write('\n[[route.connected]]\nprefix = "198.51.100.0/24"\nport = "wan"\n')
    gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: "198.51.100.0/24" in gateway.control("routes"), 5), gateway.log()
    assert fresh.reaches(SERVER4)
