package abuse

func denied(number int, name, language string, more ...string) Case {
	c := Case{Number: number, Name: name, Language: language, Want: Want{Status: "ok", Denied: true}}
	if len(more) > 0 {
		c.Want.Results = append(append(c.Want.Results, deniedByDefault...), more...)
	}
	return c
}

var kernelCases = []Case{
	denied(42, "other_processes", "c"),
	denied(43, "mounts", "c"),
	denied(44, "namespaces", "c"),
	denied(45, "keyrings", "c"),
	denied(46, "io_uring", "c"),
	denied(47, "administration", "c"),
	denied(48, "memfd_exec", "c"),
	denied(49, "other_tables", "c"),
	denied(50, "personality", "c"),
	denied(51, "sockets", "c", "EAFNOSUPPORT", "EPROTONOSUPPORT"),
	denied(51, "netlink_route", "c", "EAFNOSUPPORT"),
	denied(52, "unfilter", "c"),
	denied(53, "clock_and_name", "c"),
}
