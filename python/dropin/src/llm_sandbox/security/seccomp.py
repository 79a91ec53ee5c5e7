"""Which system calls code may not make."""

from __future__ import annotations

import re
import sys
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

DEFAULT_BLOCKED_SYSCALLS: Final[tuple[str, ...]] = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("open_tree", "move_mount", "mount_setattr", "unshare", "setns", "bpf", "perf_event_open", "keyctl", "add_key", "request_key"),
    *("init_module", "finit_module", "delete_module", "reboot", "kexec_load", "kexec_file_load", "open_by_handle_at", "userfaultfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
)
"""Calls that no sandbox may make. The filter of sandboxes lists the calls that are allowed instead, and has none of these."""


class SeccompPolicy(BaseModel):
    """System calls that fail with EPERM. Sandboxes fail these and many more, whatever a policy names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocked_syscalls: tuple[str, ...] = Field(default=DEFAULT_BLOCKED_SYSCALLS, min_length=1)

    @field_validator("blocked_syscalls")
    @classmethod
    def _check_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
                raise ValueError(f"Invalid seccomp syscall name: {name!r}")
        return tuple(dict.fromkeys(value))

    def unenforced(self) -> list[str]:
        """Return the calls that are not among those that every sandbox fails. A session with one of them cannot be opened."""
        return [name for name in self.blocked_syscalls if name not in DEFAULT_BLOCKED_SYSCALLS]


def seccomp_available() -> bool:
    """Return whether sandboxes on this machine filter system calls: the filter is built in and needs no library."""
    return sys.platform == "linux"
