"""A running `sluice run` in a host's namespace, and what it says through its API."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

from hosts import cpu_seconds, stop

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLUICE = pathlib.Path(os.environ.get("SLUICE", ROOT / "build" / "sluice")).absolute()


NULL_PORTS = [("a", "net_null0,no-rx=1", ""), ("b", "net_null1,no-rx=1", "")]  # frames neither come nor go anywhere
DEFAULT_API = "127.0.0.1:9230"
SMALL_TABLES = ("max_ipv4 = 200_000", "max_ipv6 = 50_000")


def config(ports, engine=(), route=("kernel = true", *SMALL_TABLES), size="512M", memory=(), port=(),
           listen=DEFAULT_API, acl=None, inspect=None, srtp=None, last="route", chain=None, more=""):
    """A configuration. `ports`: (name, DPDK device or kernel interface, twin, its own lines) each; `acl`: the text of that section,
    which puts the element in front; `inspect`: lines of that section, which puts that element behind it; `srtp`: the text
    of that section, which puts that element behind these; `last`: what forwards; `chain`: all of them, in another order or with
    others; `more`: the text of further sections, at the end; the rest are lines of sections, those of [engine] in place of what is here."""
    last = chain[-1] if chain else last
    elements = ["acl"] * (acl is not None) + ["inspect"] * (inspect is not None) + ["srtp"] * (srtp is not None)
    chain = ", ".join(f'"{part}"' for part in chain or [*elements, last])
    given = [line.split("=")[0].strip() for line in engine]
    lines = ['device = "auto"', 'deadline = "50ms"', 'poll = "adaptive"', f"chain = [{chain}]"]
    lines = [line for line in lines if line.split("=")[0].strip() not in given] + list(engine)
    text = "[engine]\n" + "".join(f"{line}\n" for line in lines)
    text += f'\n[memory]\nhugepages = "off"\nsize = "{size}"\n' + "".join(f"{line}\n" for line in memory)
    for index, (name, device, twin, *own) in enumerate(ports):
        device = device if device.startswith("net_") or device == "vxlan" else f"net_af_packet{index},iface={device}"
        text += f'\n[[port]]\nname = "{name}"\ndevice = "{device}"\ntwin = "{twin}"\n' + "".join(f"{line}\n" for line in (*port, *own))
    text += f'\n[api]\nlisten = "{listen}"\n'
    if inspect is not None:
        text += "\n[inspect]\n" + "".join(f"{line}\n" for line in inspect)
    if srtp is not None:
        text += "\n" + srtp
    if last == "route":
        text += "\n[route]\n" + "".join(f"{line}\n" for line in route)
    return text + ("" if acl is None else with_acl("", acl)) + more


def with_acl(text, acl):
    """The configuration with this [acl] in place of its own."""
    return text.split("\n[acl]\n")[0] + "\n[acl]\n" + acl


class Gateway:
    """`sluice run FILE` inside `host`; its output is in `log_path`. `under`: the words of a command that runs it."""

    def __init__(self, host, folder, text, under=()):
        self.host = host
        self.config_path = pathlib.Path(folder) / "sluice.toml"
        self.log_path = pathlib.Path(folder) / "sluice.log"
        self.config_path.write_text(text, encoding="utf-8")
        self.api = re.search(r'^listen = "(.+)"$', text, re.M)[1]
        self.under = list(under)
        self.process = None

    def start(self, patience=30, limit=300, show=lambda line: None):
        """Starts it and returns once its API answers. Gives up when its log has not grown for `patience` seconds, and after
        `limit` seconds in any case. `show` is given each line of the log as it comes."""
        with open(self.log_path, "ab") as log:
            before = log.tell()
            self.process = self.host.spawn([*self.under, SLUICE, "run", self.config_path], stdout=log, stderr=subprocess.STDOUT)
        lines, began = [], time.monotonic()
        grew = began
        while True:
            ready = self.process.poll() is not None or self.healthy()
            known, lines, now = len(lines), self.lines(before), time.monotonic()
            for line in lines[known:]:
                show(line)
                grew = now
            if ready:
                break
            if now - grew > patience or now - began > limit:
                raise AssertionError(f"sluice is still loading after {now - began:.0f} s; its log last grew {now - grew:.0f} s ago,"
                                     f" and ends with: {lines[-1] if lines else '(nothing)'}")
            time.sleep(0.1)
        if self.process.poll() is not None:
            raise AssertionError(f"sluice did not start (exit status {self.process.poll()}):\n{self.log()}")
        return self

    def lines(self, offset):
        """The whole lines of the log from this offset on."""
        text = self.log_path.read_bytes()[offset:].decode(errors="replace")
        return text[:text.rfind("\n") + 1].splitlines()

    def healthy(self):
        try:
            self.get("/healthz")
            return True
        except OSError:
            return False

    def get(self, path):
        def fetch():
            with urllib.request.urlopen(f"http://{self.api}{path}", timeout=5) as answer:
                return answer.read().decode()

        return self.host.inside(fetch)

    def why_degraded(self):
        """As /healthz says it; empty: it is well."""
        return json.loads(self.get("/healthz")).get("why", "")

    def stats(self):
        return json.loads(self.get("/api/v1/stats"))

    def totals(self, *keys):
        """Sums of these of its lanes' counters."""
        lanes = self.stats()["lanes"]
        return [sum(lane[key] for lane in lanes) for key in keys]

    def drops(self):
        """Frames dropped so far, by reason."""
        return {drop["reason"]: drop["frames"] for drop in self.stats()["drops"] if drop["frames"]}

    def metrics(self):
        """What elements count, by name."""
        return {one["name"]: one["value"] for one in self.stats()["metrics"]}

    def control(self, *arguments, check=True):
        """`sluice ctl ...` as an administrator would type it."""
        where = () if self.api == DEFAULT_API else ("--api", self.api)
        return self.host.run([SLUICE, "ctl", *arguments, *where], check=check)

    def text(self):
        """Its configuration."""
        return self.config_path.read_text(encoding="utf-8")

    def reload(self, text):
        """Puts another text into the file and reloads; the answer, also of a refusal."""
        self.config_path.write_text(text, encoding="utf-8")
        return self.control("reload", check=False)

    def reload_acl(self, acl):
        """The same with other rules."""
        return self.reload(with_acl(self.text(), acl))

    def cpu_seconds(self):
        """User and system time of the whole process so far."""
        return cpu_seconds(self.process.pid)

    def cpu_share(self, seconds):
        """Of one core, over the next `seconds`."""
        before, began = self.cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        return (self.cpu_seconds() - before) / (time.monotonic() - began)

    def resident_bytes(self):
        """What the process has in memory now, less what is mapped and not used."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1])

    def lane_sleeps(self):
        """How often threads of lanes have gone to sleep so far."""
        sleeps = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text(encoding="ascii").strip() == "sluice-lane":
                sleeps += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.M)[1])
        return sleeps

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def interrupt(self):
        """Ctrl-C, if it still runs: ends cleanly, or this raises. Returns what it logged, the closing summary last."""
        status = stop(self.process, signal.SIGINT, 20)
        log = self.log()
        assert status == 0, f"exit status {status} after SIGINT:\n{log}"
        assert "counters add up" in log, f"no closing summary that the counters add up:\n{log}"
        return log

    def kill(self):
        stop(self.process)


def up_at_once(listen, api=()):
    """The configuration of a gateway that is; `api`: lines of [api]."""
    text = config(NULL_PORTS, last="echo", size="128M", memory=("frames = 4096",), listen=listen)
    return text.replace("[api]\n", "[api]\n" + "".join(f"{line}\n" for line in api))


def started(host, folder, text):
    """A gateway in a folder that need not be there."""
    folder.mkdir(exist_ok=True)
    return Gateway(host, folder, text).start()


def socket_of(gateway):
    """Where changes are made over its API."""
    return pathlib.Path(json.loads(gateway.get("/api/v1/socket"))["socket"])
