package abuse

var fileCases = []Case{
	denied(32, "proc_handles", "python", "ENOENT", "ESRCH"),
	// EINVAL: a directory below /sys that is only there to be mounted on.
	denied(33, "kernel_settings", "python", "EINVAL", "ENOENT", "EROFS"),
	denied(34, "memory_devices", "python", "ENOENT", "ENXIO"),
	denied(35, "read_only_root", "python", "ENOENT", "EROFS", "EBUSY"),
	// EINVAL: a uid that is not mapped.
	denied(36, "privileges", "python", "EINVAL", "ENOENT"),
	denied(37, "core_dump", "c"),
	denied(38, "devices", "python", "ENOENT", "ENXIO", "ENODEV"),
}
