package settings

var processOptions = []option{
	{
		KeyInfo: KeyInfo{Name: "environment", Type: "map", Example: "TZ=UTC", Meaning: "environment variables: NAME=VALUE; names that begin with LLMSANDBOX_ are refused"},
		codec:   table(nameValue, func(s *Settings) *map[string]string { return &s.Environment }, validVariable),
		secret:  true,
	},
	{
		KeyInfo: KeyInfo{Name: "labels", Type: "map", Example: "team=research", Meaning: "labels of the container: NAME[=VALUE]; names that begin with llmsandbox. are refused"},
		codec:   table(cutLabel, func(s *Settings) *map[string]string { return &s.Labels }, validLabel),
	},
	{
		KeyInfo: KeyInfo{Name: "working_dir", Type: "text", Example: "/data", Meaning: "where commands start that are told no folder"},
		codec:   text(func(s *Settings) *string { return &s.WorkingDir }, absolute),
	},
	{
		KeyInfo: KeyInfo{Name: "init", Type: "boolean", Example: "false", Meaning: "run the engine's init as process 1; the guest agent, which is that otherwise, reaps processes too"},
		codec:   pointer(toBool, func(s *Settings) **bool { return &s.Init }, anything),
	},
	{
		KeyInfo: KeyInfo{Name: "runtime", Type: "text", Example: "runsc", Meaning: "OCI runtime, by the name the engine knows it: runsc (gVisor), kata, ..."},
		codec:   text(func(s *Settings) *string { return &s.Runtime }, word),
	},
	{
		KeyInfo: KeyInfo{Name: "log_config", Type: "map", Example: "none", Meaning: "what the engine keeps of the container's output: a driver, or an object with Type and Config; default none"},
		codec:   logConfig,
	},
}
