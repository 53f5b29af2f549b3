"""Fixtures of the streams' tests."""

import pytest

from sandbox import interpret, program


@pytest.fixture(scope="session")
def asynchronous(tmp_path_factory):
    """What a program saw of a device that runs behind it (whatever mode the other tests run in)."""
    trace = str(tmp_path_factory.mktemp("trace") / "trace.json")
    settings = {"GRAFT_HOST_MODE": "async", "GRAFT_HOST_DEVICES": "2", "TRACE": trace}
    return interpret(program("tests/python/streams/asynchronous.py"), **settings).value()
