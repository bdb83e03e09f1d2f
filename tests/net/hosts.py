"""Hosts in network namespaces, joined by veth pairs.

A Lab owns the namespaces and the processes started in them; leaving it ends every process by its id and deletes every
namespace, whatever went wrong in between. Names carry the process id and the lab's number, so several labs may run side by side.
"""

import ctypes
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
LOSSY = pathlib.Path(__file__).with_name("lossy.py")
_libc = ctypes.CDLL(None, use_errno=True)


def why_not():
    """One sentence why this machine cannot run namespaces with real hosts, or None when it can."""
    if os.geteuid() != 0:
        return "needs root: network namespaces with real hosts"
    if not os.path.exists("/dev/net/tun"):
        return "needs /dev/net/tun (the router's TAP twins)"
    probe = f"sluice-probe-{os.getpid()}"
    try:
        subprocess.run(["ip", "netns", "add", probe], check=True, capture_output=True)
        subprocess.run(["ip", "-n", probe, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return "needs the privilege to make network namespaces and veth pairs"
    finally:
        subprocess.run(["ip", "netns", "del", probe], check=False, capture_output=True)
    return None


class Here:
    """This machine as it is, where namespaces are not needed or not allowed."""

    label = "here"
    # Of this worker: others run gateways here at the same time.
    api = f"127.0.0.1:{10_000 + os.getpid() % 20_000}"

    def __init__(self):
        self.processes = []

    def run(self, command, check=True, timeout=60):
        """Runs `command` (a string, split at spaces, or a list) to its end; stdout and stderr come back as one text."""
        done = subprocess.run(self._inside(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{self.label}: {command}: exit status {done.returncode}\n{done.stdout}")
        return done.stdout

    def spawn(self, command, **popen):
        """Starts `command` and keeps it until this closes. pid is the program's own."""
        popen.setdefault("stdout", subprocess.DEVNULL)
        popen.setdefault("stderr", subprocess.STDOUT)
        process = subprocess.Popen(self._inside(command), stdin=subprocess.DEVNULL, **popen)
        self.processes.append(process)
        return process

    def inside(self, function, *arguments):
        return function(*arguments)

    def close(self):
        for process in self.processes:
            stop(process)

    def _inside(self, command):
        return command.split() if isinstance(command, str) else list(command)


class Host(Here):
    """One network namespace."""

    def __init__(self, name, label):
        super().__init__()
        self.name = name
        self.label = label
        try:
            subprocess.run(["ip", "netns", "add", name], check=True)
            self.ip("link set lo up")
        except KeyboardInterrupt:
            # Whoever removes hosts does not know this one yet. Not by a program that a second Ctrl-C ends.
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, start_new_session=True)
            raise

    def ip(self, arguments):
        done = subprocess.run(["ip", "-n", self.name, *arguments.split()], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{self.label}: ip {arguments}: {done.stdout}")
        return done.stdout

    def batch(self, commands):
        """Many `ip` commands in one call."""
        subprocess.run(["ip", "-n", self.name, "-batch", "-"], input="\n".join(commands), text=True, check=True)

    def sysctl(self, **settings):
        """Keys with `__` for `.`: sysctl(net__ipv4__ip_forward=1)."""
        for key, value in settings.items():
            self.run(["sysctl", "-qw", f"{key.replace('__', '.')}={value}"])

    def inside(self, function, *arguments):
        """Calls a Python function with this thread's sockets in this namespace."""
        result = {}

        def body():
            with open(f"/run/netns/{self.name}", "rb") as namespace:
                if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    result["error"] = OSError(ctypes.get_errno(), "setns")
                    return
            try:
                result["value"] = function(*arguments)
            except Exception as error:  # handed to the caller's thread
                result["error"] = error

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if "error" in result:
            raise result["error"]
        return result["value"]

    def send_udp(self, address, port, payloads):
        """Datagrams of one socket, as fast as it can."""
        def send():
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as wire:
                for payload in payloads:
                    wire.sendto(payload, (address, port))

        self.inside(send)

    def blast(self, target, count, size=100):
        """Sends datagrams to nobody's port."""
        self.send_udp(target, 9, [bytes(size)] * count)

    def connects(self, server, port):
        """"open", or what the kernel says of a TCP connection to there; None: nothing, within a second."""
        def connect():
            try:
                socket.create_connection((server, port), timeout=1).close()
                return "open"
            except TimeoutError:
                return None
            except OSError as error:
                return error.strerror

        return self.inside(connect)

    def udp_error(self, server, port, payload=b"x"):
        """What the kernel has learned about a datagram to there; None: nothing, within two seconds."""
        def send():
            with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as wire:
                wire.settimeout(2)
                wire.connect((server, port))
                wire.send(payload)
                try:
                    wire.recv(1)
                    return "an answer"
                except TimeoutError:
                    return None
                except OSError as error:
                    return error.strerror

        return self.inside(send)

    def reaches(self, address, count=1, size=56, *more):
        """Whether each of so many pings is answered."""
        words = ["ping", "-n", "-c", str(count), "-i", "0.01", "-W", "1", "-s", str(size), *more, address]
        return ", 0% packet loss" in self.run(words, check=False)

    def pings(self, address, count, size=56, *more, patience=3):
        """How many of so many pings, which leave at once, were answered. For the last answer ping waits two round trips or the time
        between pings, whichever is longer, so that is `patience` seconds; `-W` holds for the first answer alone."""
        words = ["ping", "-n", "-c", str(count), "-l", str(count), "-i", str(patience), "-W", str(patience), "-s", str(size), *more, address]
        said = self.run(words, check=False)
        return int(said.split(" received")[0].split()[-1])

    def mac(self, interface="eth0"):
        """Its link address, as bytes."""
        return bytes.fromhex(self.run(["cat", f"/sys/class/net/{interface}/address"]).strip().replace(":", ""))

    def send_frames(self, frames, interface="eth0"):
        """Out of an interface as they are."""
        def send():
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
                wire.bind((interface, 0))
                for frame in frames:
                    wire.send(frame)

        self.inside(send)

    def udp(self, address, port):
        """A UDP socket at an own address, IPv4 or IPv6, that waits 5 s for a datagram. Its caller closes it."""
        def bound():
            one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            one.bind((address, port))
            one.settimeout(5)
            return one

        return self.inside(bound)

    def counter(self, interface, name):
        """A counter of an interface, such as rx_packets."""
        return int(self.run(["cat", f"/sys/class/net/{interface}/statistics/{name}"]))

    def close(self):
        super().close()
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)

    def _inside(self, command):
        """`ip netns exec` becomes the program."""
        return ["ip", "netns", "exec", self.name, *super()._inside(command)]


class Lab:
    """Several hosts; closes them all."""

    numbers = itertools.count()

    def __init__(self):
        self.hosts = []
        self.number = next(self.numbers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in reversed(self.hosts):
            host.close()

    def host(self, label):
        host = Host(f"sluice-{os.getpid()}-{self.number}-{label}", label)
        self.hosts.append(host)
        return host

    def join_lossy(self, left, left_interface, right, right_interface, mtu=1500, parts=()):
        """The same by a cable of lossy.py's, which is a host of its own."""
        cable = self.host(f"cable-{right_interface}")
        self.join(left, left_interface, cable, "near", mtu, offloads=False)
        self.join(cable, "far", right, right_interface, mtu, offloads=False)
        cable.spawn([sys.executable, "-B", str(LOSSY), "near", "far", *map(str, parts)])

    def join(self, left, left_interface, right, right_interface, mtu=1500, offloads=True):
        """A veth pair between two hosts, up. With its offloads, as it comes: hosts leave checksums and cutting up to a card that
        is not there. Without: frames are as on a real wire, for those who read them with a packet socket."""
        left.ip(f"link add {left_interface} mtu {mtu} type veth peer name {right_interface} mtu {mtu} netns {right.name}")
        for host, interface in ((left, left_interface), (right, right_interface)):
            if not offloads:
                host.run(f"ethtool -K {interface} tx off gso off tso off")
            host.ip(f"link set {interface} up")


def iperf3(client, server, address, *options, seconds=1):
    """Runs it from one host to an address of the other; the "end" of its report."""
    listener = server.spawn("iperf3 -s -1")
    assert wait_until(lambda: ":5201" in server.run("ss -Hltn"), 5)
    report = client.run(["iperf3", "-J", "-c", address, "-t", str(seconds), *options], timeout=30)
    stop(listener)
    return json.loads(report[report.index("{"):])["end"]  # behind its warnings


def stop(process, with_signal=signal.SIGKILL, timeout=10):
    """Ends a process by its id and returns its exit status."""
    if process.poll() is None:
        process.send_signal(with_signal)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"{process.args} did not end within {timeout} s of {signal.Signals(with_signal).name}") from None


def cpu_seconds(pid):
    """Processor time that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition, timeout=10.0, every=0.05):
    """True as soon as `condition()` is; False when it was not within `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        if condition():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(every)
