"""Compiled models wrapped for several ranks, and wrapped models compiled."""

from __future__ import annotations

import pytest

import compiled_ranks as compiling
from rank_processes import run_ranks, values

pytestmark = pytest.mark.one_mode


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str | None]]:
    folder = str(tmp_path_factory.mktemp("compiling"))
    return values(run_ranks(2, compiling.compile_all, 2, folder, timeout=280))


@pytest.mark.parametrize("name", compiling.NAMES)
def test_losses_are_those_of_one_process(ranks: list[dict[str, str | None]], name: str) -> None:
    texts = {rank: results[name] for rank, results in enumerate(ranks) if results[name]}
    assert not texts, "\n".join(f"rank {rank}: {text}" for rank, text in texts.items())
