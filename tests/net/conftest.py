"""Every test here needs real hosts: without the privilege for them all are skipped, with one line that says why."""

import pathlib

import pytest
from hosts import why_not
from topology import Topology
from tunnels import Tunnels

HERE = pathlib.Path(__file__).parent
_reason = why_not()


def pytest_collection_modifyitems(items):
    for item in items:
        if _reason and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=_reason))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """client, router with Sluice, server: shared by the tests of a module, stopped cleanly at its end."""
    with Topology(tmp_path_factory.mktemp("sluice")) as topology:
        topology.start()
        yield topology


@pytest.fixture(scope="module")
def tunnels(tmp_path_factory):
    """The same with hosts behind tunnels."""
    with Tunnels(tmp_path_factory.mktemp("tunnels")) as topology:
        topology.start()
        yield topology


@pytest.fixture
def fresh(tmp_path):
    """The same with nothing started yet, for one test alone."""
    with Topology(tmp_path) as topology:
        yield topology
