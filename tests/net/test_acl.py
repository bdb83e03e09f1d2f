"""chain = ["acl", "route"] between two hosts: rules decide, are changed while it runs, and hold a rate."""

import json
import socket

import pytest

from hosts import wait_until
from topology import CLIENT4, SERVER4, SERVER6, Topology

WEB, SSH = 8080, 2222
DENY_SSH = f"""
[[acl.rule]]
protocol = "tcp"
destination_port = "{SSH}"
action = "deny"
"""
POLICE_UDP = """
[[acl.rule]]
protocol = "udp"
destination = "10.2.0.0/24"
action = "police"
rate = 4_000_000
burst = "32K"
"""


def with_rules(text, rules):
    """The configuration with these rules, in place of those that it has."""
    return text.split("\n[acl]\n")[0] + "\n[acl]\n" + rules


class AclTopology(Topology):
    def start(self, before_addresses=None):
        raise NotImplementedError


@pytest.fixture(scope="module")
def filtered(tmp_path_factory):
    """client, router with rules, server."""
    with Topology(tmp_path_factory.mktemp("acl"), engine=('chain = ["acl", "route"]',)) as topology:
        topology.start()
        listen(topology.server, WEB)
        listen(topology.server, SSH)
        yield topology
