"""Pools: containers that are opened before they are needed, and made clean again between two users."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from llm_sandbox._session import EngineSession
from llm_sandbox.const import SandboxBackend, SupportedLanguage
from llm_sandbox.pool.config import ExhaustionStrategy, PoolConfig
from llm_sandbox.pool.exceptions import PoolClosedError, PoolExhaustedError, PoolHealthCheckError

if TYPE_CHECKING:
    from typing_extensions import Self

PREWARMING_CHECK_INTERVAL = 10


class ContainerState(str, Enum):
    """What a container of a pool is doing."""

    INITIALIZING = "initializing"
    IDLE = "idle"
    BUSY = "busy"
    UNHEALTHY = "unhealthy"
    REMOVING = "removing"


@dataclass(eq=False)
class PooledContainer:
    """A container of a pool. `container` is what the session has as its own."""

    container_id: str
    container: Any
    state: ContainerState = ContainerState.INITIALIZING
    created_at: float = field(default_factory=time.time)
    last_used_at: float = field(default_factory=time.time)
    use_count: int = 0

    def mark_busy(self) -> None:
        """Note that somebody uses it from now on."""
        self.state = ContainerState.BUSY
        self.last_used_at = time.time()
        self.use_count += 1

    def mark_idle(self) -> None:
        """Note that nobody uses it any more."""
        self.state = ContainerState.IDLE
        self.last_used_at = time.time()

    def mark_unhealthy(self) -> None:
        """Note that it cannot be used any more."""
        self.state = ContainerState.UNHEALTHY

    def mark_removing(self) -> None:
        """Note that it is being removed."""
        self.state = ContainerState.REMOVING

    def is_available(self) -> bool:
        """Return whether somebody can have it."""
        return self.state is ContainerState.IDLE

    def is_expired(self, max_lifetime: float | None, max_uses: int | None) -> bool:
        """Return whether it is too old or was used often enough."""
        if max_lifetime is not None and time.time() - self.created_at > max_lifetime:
            return True
        return max_uses is not None and self.use_count >= max_uses

    def get_idle_time(self) -> float:
        """Return how many seconds ago it was last used."""
        return time.time() - self.last_used_at


class ContainerPoolManager(ABC):
    """A pool of containers, for any number of threads.

    Its threads open containers up to `min_pool_size`, and replace those that are old, unused or broken. A container that is released
    is made clean before somebody else gets it, and replaced if that fails.
    """

    def __init__(
        self, client: Any, config: PoolConfig, lang: SupportedLanguage | str, image: str | None = None, **session_kwargs: Any
    ) -> None:
        self.client = client
        self.config = config
        self.lang = lang
        self.image = image
        self.session_kwargs = session_kwargs
        self.logger = logging.getLogger(f"{__name__}.{type(self).__name__}")
        self._pool: list[PooledContainer] = []
        self._opening = 0  # containers that have a place in the pool and are not in it yet
        self._refill = threading.Event()
        self._sessions: dict[str, Any] = {}  # that have opened the containers, by container_id
        self._condition = threading.Condition()
        self._closed = False
        self._shutdown_event = threading.Event()
        self._threads = [self._start("pool-health-check", self._check_regularly)]
        if config.enable_prewarming and config.min_pool_size > 0:
            self._threads.append(self._start("pool-prewarming", self._prewarm_regularly))

    def _start(self, name: str, function: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=function, daemon=True, name=name)
        thread.start()
        return thread

    def acquire(self) -> PooledContainer:
        """Return a container that nobody else uses, or raise PoolExhaustedError or PoolClosedError."""
        found = self._idle_or_place()
        if isinstance(found, PooledContainer):
            return found
        return self._open_container(has_place=found, busy=True)

    def release(self, container: PooledContainer) -> None:
        """Give a container back. The next user finds nothing of what was done in it."""
        config = self.config
        with self._condition:
            if container.state not in (ContainerState.BUSY, ContainerState.UNHEALTHY):
                return  # it was released before
            keep = container.state is ContainerState.BUSY and container in self._pool and not self._closed
            keep = keep and not container.is_expired(config.max_container_lifetime, config.max_container_uses)
            container.state = ContainerState.INITIALIZING if keep else ContainerState.REMOVING
        if keep and self._cleaned(container):
            with self._condition:
                if not self._closed:
                    container.mark_idle()
                    self._condition.notify()
                    return
        self._remove(container)

    def close(self) -> None:
        """Remove all containers: those in use as soon as they are released."""
        with self._condition:
            if self._closed:
                return
            self._closed = True
            idle = [container for container in self._pool if container.is_available()]
            for container in idle:
                container.mark_removing()
            self._condition.notify_all()
        self._refill.set()
        self._shutdown_event.set()
        for container in idle:
            self._remove(container)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def get_stats(self) -> dict[str, Any]:
        """Return how many containers there are, and in which states."""
        with self._condition:
            states = [container.state.value for container in self._pool]
            states += [ContainerState.INITIALIZING.value] * self._opening
            return {
                "total_size": len(states),
                "max_size": self.config.max_pool_size,
                "min_size": self.config.min_pool_size,
                "state_counts": {state.value: states.count(state.value) for state in ContainerState},
                "closed": self._closed,
            }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None) -> None:
        self.close()

    # Opening and removing

    def _idle_or_place(self) -> PooledContainer | bool:
        """Return a container; True if there is a place for one, which is then taken; False if one without a place may be opened."""
        strategy, timeout = self.config.exhaustion_strategy, self.config.acquisition_timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while True:
                if self._closed:
                    raise PoolClosedError
                idle = next((container for container in self._pool if container.is_available()), None)
                if idle is not None:
                    idle.mark_busy()
                    return idle
                if len(self._pool) + self._opening < self.config.max_pool_size:
                    self._opening += 1
                    return True
                # One that is checked or made clean at the moment is not in use.
                soon = any(container.state is ContainerState.INITIALIZING for container in self._pool)
                if strategy is ExhaustionStrategy.FAIL_FAST and not soon:
                    raise PoolExhaustedError(self.config.max_pool_size)
                if strategy is ExhaustionStrategy.TEMPORARY and not soon:
                    return False
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise PoolExhaustedError(self.config.max_pool_size, timeout)
                self._condition.wait(left)

    def _open_container(self, *, has_place: bool, busy: bool) -> PooledContainer:
        try:
            session = self._create_session_for_container()
        except BaseException:
            with self._condition:
                self._opening -= has_place
                self._condition.notify()
            raise
        container = PooledContainer(self._get_container_id(session.container), session.container)
        if busy:
            container.mark_busy()
        else:
            container.mark_idle()
        with self._condition:
            self._opening -= has_place
            self._sessions[container.container_id] = session
            closed = self._closed
            if not closed and has_place:
                self._pool.append(container)
            self._condition.notify()
        if closed:
            container.mark_removing()
            self._remove(container)
            raise PoolClosedError
        self.logger.debug("Opened container %s", container.container_id)
        return container

    def _remove(self, container: PooledContainer) -> None:
        """Remove a container that nobody uses, and have it replaced."""
        container.mark_removing()
        try:
            self._destroy_container_impl(container.container)
        except Exception as e:
            self.logger.warning("Container %s could not be removed: %s", container.container_id, e)
        with self._condition:
            self._sessions.pop(container.container_id, None)
            if container in self._pool:
                self._pool.remove(container)
            self._condition.notify()
        self._refill.set()

    def _cleaned(self, container: PooledContainer) -> bool:
        try:
            self._reset_container(container.container)
        except Exception as e:
            self.logger.info("Container %s is replaced, as it could not be made clean: %s", container.container_id, e)
            return False
        return True

    # What the threads do

    def _prewarm_regularly(self) -> None:
        while not self._shutdown_event.is_set():
            self._refill.clear()
            self._ensure_min_pool_size()
            self._refill.wait(PREWARMING_CHECK_INTERVAL)

    def _ensure_min_pool_size(self) -> None:
        """Open containers up to the least number."""
        while True:
            with self._condition:
                if self._closed or len(self._pool) + self._opening >= self.config.min_pool_size:
                    return
                self._opening += 1
            try:
                self._open_container(has_place=True, busy=False)
            except PoolClosedError:
                return
            except Exception as e:
                self.logger.warning("No container could be opened ahead: %s", e)
                return

    def _check_regularly(self) -> None:
        while not self._shutdown_event.wait(self.config.health_check_interval):
            self._perform_health_checks()

    def _perform_health_checks(self) -> None:
        """Replace containers that nobody uses and that are old, were not used for long, or do not work."""
        with self._condition:
            idle = [container for container in self._pool if container.is_available()]
        for container in idle:
            with self._condition:
                if self._closed or not container.is_available():
                    continue
                container.state = ContainerState.INITIALIZING  # nobody gets it during the check
            try:
                self._check(container)
            except PoolHealthCheckError as e:
                self.logger.info("%s", e)
                self._remove(container)
                continue
            with self._condition:
                closed = self._closed
                container.state = ContainerState.IDLE
                self._condition.notify()
            if closed:
                self._remove(container)

    def _check(self, container: PooledContainer) -> None:
        config = self.config
        if container.is_expired(config.max_container_lifetime, config.max_container_uses):
            raise PoolHealthCheckError(container.container_id, "it is too old")
        if config.idle_timeout is not None and container.get_idle_time() > config.idle_timeout:
            raise PoolHealthCheckError(container.container_id, "it was not used for too long")
        try:
            healthy = self._health_check_impl(container.container)
        except Exception as e:
            raise PoolHealthCheckError(container.container_id, str(e)) from e
        if not healthy:
            raise PoolHealthCheckError(container.container_id, "a command does not run in it")

    # What a kind of pool implements

    @abstractmethod
    def _create_session_for_container(self) -> Any:
        """Return an open session, whose container is that of the pool."""

    @abstractmethod
    def _destroy_container_impl(self, container: Any) -> None:
        """Remove a container."""

    @abstractmethod
    def _get_container_id(self, container: Any) -> str:
        """Return the id by which sessions attach to a container."""

    @abstractmethod
    def _health_check_impl(self, container: Any) -> bool:
        """Return whether a container works."""

    def _reset_container(self, container: Any) -> None:
        """Remove what was done in a container, or fail."""
        raise NotImplementedError(f"{type(self).__name__} cannot make containers clean")


class EnginePoolManager(ContainerPoolManager):
    """A pool of sandboxes of ours."""

    backend: SandboxBackend
    _session_class: type[EngineSession]

    def attach(self, container_id: str, **kwargs: Any) -> EngineSession:
        """Return a session, which is not open yet, in a container of the pool."""
        return self._session_class(**self._common(), container_id=container_id, skip_environment_setup=True, **kwargs)

    def _common(self) -> dict[str, Any]:
        """Return the arguments of all sessions of the pool."""
        return {} if self.client is None else {"client": self.client}

    def _create_session_for_container(self) -> EngineSession:
        kwargs = {**self._common(), **self.session_kwargs}
        if self.image is not None:
            kwargs["image"] = self.image
        session = self._session_class(lang=self.lang, _resettable=True, **kwargs)
        session.open()
        return session

    def _destroy_container_impl(self, container: Any) -> None:
        session = self._sessions.get(self._get_container_id(container))
        if session is not None:
            session.close()

    def _get_container_id(self, container: Any) -> str:
        return container if isinstance(container, str) else str(container.id)

    def _health_check_impl(self, container: Any) -> bool:
        session: EngineSession = self._sessions[self._get_container_id(container)]
        return session.execute_command("echo health_check").stdout == "health_check\n"

    def _reset_container(self, container: Any) -> None:
        session: EngineSession = self._sessions[self._get_container_id(container)]
        session.reset()
