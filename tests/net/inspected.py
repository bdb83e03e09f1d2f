"""A web server behind `inspect`, a browser in front of it: inline in a bridge between two hosts of one link, and in a router.

With examples/local.rules and a few rules of the test's own.
"""

import json

from gateway import ROOT, Gateway, config
from hosts import Lab
from topology import SERVER4, SERVER6, Topology
from web import Web

LOCAL_RULES = ROOT / "examples" / "local.rules"
OWN_RULES = """
reject http any any -> any any (msg:"TEST forbidden"; flow:established,to_server; http.uri; content:"/forbidden"; sid:1; rev:1;)
alert udp any any -> any 9 (msg:"TEST a marker"; content:"flooding"; sid:2; rev:1;)
"""
ADDED_RULE = 'drop http any any -> any any (msg:"TEST new"; flow:established,to_server; http.uri; content:"/new"; sid:3; rev:1;)\n'
ATTACK = "/show?file=../../etc/passwd"


class Inspected:
    """What the tests ask of a network behind `inspect`: its files, and its traffic by `self.client` and `self.web`."""

    def write_rules(self, more=""):
        self.rules.write_text(OWN_RULES + more, encoding="utf-8")

    def lines(self):
        """Of [inspect]."""
        return [f'rules = ["{LOCAL_RULES}", "{self.rules}"]', f'eve = "{self.eve}"', f'fast = "{self.fast}"',
                "alerts_per_second = 100", "flows = 4096", 'stream_memory = "16M"', 'http_memory = "16M"']

    def name_files(self, folder):
        self.rules, self.eve, self.fast = folder / "own.rules", folder / "eve.json", folder / "fast.log"
        self.write_rules()

    def events(self, kind):
        if not self.eve.exists():
            return []
        text = self.eve.read_text(encoding="utf-8")
        whole = text[:text.rfind("\n") + 1]  # the last line may be on its way
        return [event for event in map(json.loads, whole.splitlines())
                if event["event_type"] == kind]

    def alerts(self, sid):
        return [event for event in self.events("alert") if event["alert"]["signature_id"] == sid]

    def metrics(self):
        return self.gateway.metrics()


class Wire(Inspected):
    """client -- Sluice as a bridge -- server, all on one link; `lossy`: both cables lose and reorder frames."""

    servers = ("10.1.0.3", "2001:db8:1::3")

    def __init__(self, folder, inspect=(), engine=(), lossy=False, prepare=lambda router: None):
        self.lab = Lab()
        self.name_files(folder)
        try:
            self.client, router, self.server = (self.lab.host(label) for label in ("client", "router", "server"))
            for host, interface in ((self.client, "lan0"), (self.server, "wan0")):
                (self.lab.join_lossy if lossy else self.lab.join)(host, "eth0", router, interface)
            for number, host in ((2, self.client), (3, self.server)):
                host.ip(f"addr add 10.1.0.{number}/24 dev eth0")
                host.ip(f"addr add 2001:db8:1::{number}/64 dev eth0 nodad")
            prepare(router)
            given = [line.split("=")[0].strip() for line in inspect]
            lines = [line for line in self.lines() if line.split("=")[0].strip() not in given] + list(inspect)
            self.gateway = Gateway(router, folder, config([("lan", "lan0", ""), ("wan", "wan0", "")], engine=engine,
                                                          size="256M", inspect=lines, last="bridge")).start()
            self.web = Web(self.server, folder)
        except BaseException:
            self.lab.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            if not any(error):
                self.gateway.interrupt()
        finally:
            self.lab.__exit__()


class Routed(Topology, Inspected):
    """The same with a router, behind a packet filter."""

    servers = (SERVER4, SERVER6)

    def __init__(self, folder):
        self.name_files(folder)
        super().__init__(folder, inspect=self.lines(), acl="")

    def __enter__(self):
        super().__enter__()
        try:
            self.start()
            self.web = Web(self.server, self.folder)
        except BaseException:
            self.lab.__exit__()
            raise
        return self
