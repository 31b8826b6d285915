"""Settings of the pytest-benchmark files: run by ``python -m bench functions``, never with the tests."""

from __future__ import annotations

from typing import Any


def pytest_benchmark_update_machine_info(config: Any, machine_info: dict[str, Any]) -> None:
    """Leave out names: `bench.machine` describes the machine in neutral terms."""
    machine_info.clear()


def pytest_benchmark_update_commit_info(config: Any, commit_info: dict[str, Any]) -> None:
    commit_info.clear()
