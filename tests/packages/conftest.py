"""Tests of the Debian package: they install systems of their own, which takes minutes and the network, so `make test-deb` runs them
and `make test` does not."""
