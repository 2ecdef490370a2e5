"""The cells of a table: a share of them, or with `--whole` all."""

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module that has a table says with `cells(whole)` which of its cells are run."""
    if "cell" in metafunc.fixturenames:
        cells = metafunc.module.cells(whole=bool(metafunc.config.getoption("--whole")))
        metafunc.parametrize("cell", cells, ids=str)
