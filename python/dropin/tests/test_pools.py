"""Pools of sandboxes on this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from llm_sandbox import ArtifactSandboxSession, SandboxSession, ValidationError
from llm_sandbox.exceptions import LibraryInstallationNotSupportedError, UnsupportedBackendError
from llm_sandbox.pool import (
    ContainerPoolManager,
    ContainerState,
    ExhaustionStrategy,
    PoolClosedError,
    PoolConfig,
    PooledSandboxSession,
    PoolExhaustedError,
    create_pool_manager,
)
from llm_sandbox.pool.exceptions import DuplicateClientError, SessionNotOpenError


@contextmanager
def pool_of(most: int = 2, **config: Any) -> Generator[Any]:
    with create_pool_manager(config=PoolConfig(max_pool_size=most, **config), skip_environment_setup=True) as pool:
        yield pool


def wait_for(pool: ContainerPoolManager, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until the statistics are so, of which the pool's condition is notified."""
    deadline = time.monotonic() + 60
    while not condition(stats := pool.get_stats()):
        assert time.monotonic() < deadline, stats
        with pool._condition:
            pool._condition.wait(1)
    return stats


def test_containers_are_opened_ahead() -> None:
    with pool_of(3, min_pool_size=2) as pool:
        stats = wait_for(pool, lambda stats: stats["state_counts"]["idle"] == 2)
        assert stats == {
            "total_size": 2,
            "max_size": 3,
            "min_size": 2,
            "state_counts": {"initializing": 0, "idle": 2, "busy": 0, "unhealthy": 0, "removing": 0},
            "closed": False,
        }
        container = pool.acquire()
        assert (container.state, container.use_count) == (ContainerState.BUSY, 1)
        assert pool.get_stats()["state_counts"]["busy"] == 1
        pool.release(container)
        pool.release(container)  # which does nothing


def test_nothing_is_left_for_the_next_user() -> None:
    with pool_of(1) as pool:
        first: Any = SandboxSession(pool=pool)
        with first:
            first.run("open('/sandbox/secret', 'w').write('x'); open('/tmp/secret', 'w').write('x')")
            first.execute_command("sleep 600 >/dev/null 2>&1 &")
            container = first._backend_session.container.id
        second: Any = SandboxSession(pool=pool)
        with second:
            assert second._backend_session.container.id == container  # the same one, made clean
            found = second.run("import os; print(os.path.exists('/sandbox/secret'), os.path.exists('/tmp/secret'))")
            assert found.stdout == "False False\n"
            assert "sleep 600" not in second.execute_command("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout


def test_strategies() -> None:
    with pool_of(1, exhaustion_strategy=ExhaustionStrategy.FAIL_FAST) as pool:
        pool.acquire()
        with pytest.raises(PoolExhaustedError, match="All 1 containers in pool are busy$"):
            pool.acquire()
    with pool_of(1, acquisition_timeout=0.2) as pool:
        pool.acquire()
        with pytest.raises(PoolExhaustedError, match=r"busy and timeout of 0\.2s exceeded") as caught:
            pool.acquire()
        assert (caught.value.pool_size, caught.value.timeout) == (1, 0.2)
    with pool_of(1, exhaustion_strategy="temporary") as pool:
        first, second = pool.acquire(), pool.acquire()
        assert first.container_id != second.container_id and pool.get_stats()["total_size"] == 1
        pool.release(second)
        assert second.container.status == "exited" and first.container.status == "running"


def test_waiting() -> None:
    with pool_of(1) as pool:
        container = pool.acquire()
        threading.Timer(0.2, pool.release, (container,)).start()
        assert pool.acquire().container_id == container.container_id


def test_containers_are_replaced() -> None:
    with pool_of(1, max_container_uses=1) as pool:
        first = pool.acquire()
        pool.release(first)
        assert pool.acquire().container_id != first.container_id
    with pool_of(1, min_pool_size=1, health_check_interval=0.05) as pool:
        container = pool.acquire()
        pool.release(container)
        container.container.sandbox.destroy()  # behind the pool's back
        wait_for(pool, lambda stats: container not in pool._pool and stats["state_counts"]["idle"] == 1)
    with pool_of(1, idle_timeout=0.05, health_check_interval=0.05) as pool:
        pool.release(pool.acquire())
        wait_for(pool, lambda stats: stats["total_size"] == 0)


def test_close() -> None:
    pool = create_pool_manager(config=PoolConfig(max_pool_size=2), skip_environment_setup=True)
    busy, idle = pool.acquire(), pool.acquire()
    pool.release(idle)
    pool.close()
    pool.close()
    assert idle.container.status == "exited" and busy.container.status == "running"
    with pytest.raises(PoolClosedError):
        pool.acquire()
    pool.release(busy)
    assert busy.container.status == "exited" and pool.get_stats()["total_size"] == 0 and pool.get_stats()["closed"]


def test_close_wakes_those_who_wait() -> None:
    pool = create_pool_manager(config=PoolConfig(max_pool_size=1, acquisition_timeout=None), skip_environment_setup=True)
    busy = pool.acquire()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.acquire)
        pool.close()
        with pytest.raises(PoolClosedError):
            waiting.result(60)
    pool.release(busy)


def test_many_threads() -> None:
    with pool_of(3) as pool:

        def use(number: int) -> str:
            with PooledSandboxSession(pool_manager=pool) as session:
                return session.run(f"import os; print({number}, os.listdir('/sandbox').count('mine')); open('mine', 'w')").stdout

        with ThreadPoolExecutor(8) as threads:
            found = [future.result() for future in [threads.submit(use, number) for number in range(16)]]
        assert found == [f"{number} 0\n" for number in range(16)]
        assert pool.get_stats()["total_size"] <= 3


def test_sessions() -> None:
    with create_pool_manager(config=PoolConfig(max_pool_size=1), libraries=["six"], workdir="/srv/work") as pool:
        session: Any = SandboxSession(pool=pool)
        for use in ("run", "execute_command", "container", "config", "backend_session", "anything"):
            with pytest.raises(SessionNotOpenError):
                result = getattr(session, use)
                result("1")
        with session:
            assert session.run("import os, six; print(os.getcwd())").stdout == "/srv/work\n"
            assert session.backend_session.container.id == session.container.id
            with pytest.raises(LibraryInstallationNotSupportedError):
                session.run("1", libraries=["tomli"])
            with pytest.raises(AttributeError):
                _ = session.no_such_attribute
        with pytest.raises(SessionNotOpenError, match="Session not open - call open"):
            session.run("1")
        with pytest.raises(DuplicateClientError):
            SandboxSession(pool=pool, client=object()).open()
        assert pool.get_stats()["state_counts"]["busy"] == 0


def test_artifact_sessions() -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    with create_pool_manager(config=PoolConfig(max_pool_size=1)) as pool:
        with ArtifactSandboxSession(pool=pool) as session:
            assert len(session.run(plot).plots) == 1
            assert len(session.run(plot).plots) == 2
            assert len(session.run("1", clear_plots=True).plots) == 0
        with ArtifactSandboxSession(pool=pool) as session:
            assert session.run("1").plots == []


def test_backends_without_pools() -> None:
    with pytest.raises(UnsupportedBackendError):
        create_pool_manager(backend="micromamba")
    with pool_of() as pool, pytest.raises(ValidationError, match="Backend 'bubblewrap' does not support container pooling"):
        SandboxSession(backend="bubblewrap", pool=pool)
