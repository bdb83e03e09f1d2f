"""Every test here needs real hosts: without the privilege for them all are skipped, with one line that says why."""

import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from gateway import SLUICE  # noqa: E402
from hosts import why_not  # noqa: E402
from side_by_side import ByHosts, begins, turn  # noqa: E402
from topology import Topology  # noqa: E402

_reason = why_not()

# What a job in the background starts ignores Ctrl-C and so would everything under test; what pytest catches is the default again
# in the programs that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: measures times or shares of a core; runs while no other test does")


def pytest_xdist_make_scheduler(config, log):
    return ByHosts(config, log)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with turn(alone=item.get_closest_marker("alone") is not None):
        yield


def pytest_collection_modifyitems(items):
    items.sort(key=begins)
    if _reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=_reason))
    elif not SLUICE.exists():
        pytest.exit(f"{SLUICE} is not there: run make build", returncode=2)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """client, router with Sluice, server: shared by the tests of a module, stopped cleanly at its end."""
    with Topology(tmp_path_factory.mktemp("sluice")) as topology:
        topology.start()
        yield topology


@pytest.fixture
def fresh(tmp_path):
    """The same with nothing started yet, for one test alone."""
    with Topology(tmp_path) as topology:
        yield topology
