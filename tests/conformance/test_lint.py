# tests/conformance/test_lint.py: the lint of torch-conformance finds nothing in the tests of this repository.
from __future__ import annotations

import pytest

from sandbox import ROOT
from torch_conformance.lint import command as lint


@pytest.mark.every_run
def test_tests_of_this_repository_are_tied_to_no_device(capsys):
    folders = [str(ROOT / name) for name in ("tests", "conformance/tests")]
    assert lint.main(folders) == 0, capsys.readouterr().out
