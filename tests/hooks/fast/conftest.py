"""One store of repositories for each run of these tests: making one costs half a second, copying it 10 ms."""

from __future__ import annotations

import pytest

from tests.hooks.fast.boring_world import Worlds


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("boring"))
