package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/edits"
)

// decided are keys of docker-py that a sandbox decides by itself, and those that do
// nothing, with what to do instead.
var decided = byWord([][2]string{
	{"image", "the image is an option of the sandbox itself: give it there"},
	{"command entrypoint", "the container's first process is the guest agent: give commands to the sandbox once it is open"},
	{"name", "a container is named after its sandbox: give the sandbox an id, or labels=NAME=VALUE to find it by"},
	{"detach", "a sandbox always runs beside the caller: leave it out"},
	{"stdin_open stdout stderr", "input and output of the container carry the guest agent's stream: leave it out"},
	{"stream", "output is streamed by the run's own options: leave it out"},
	{"tty", "the guest agent makes terminals for the commands that ask for one: leave it out"},
	{"auto_remove remove", "a sandbox is always removed when it ends: leave it out, and attach to a sandbox that shall live on"},
	{"restart_policy", "a sandbox is removed when it ends, and engines refuse to restart what they remove: open a new sandbox"},
	{"stop_signal stop_timeout", "a sandbox is ended at once, its files go with it: leave it out"},
	{"healthcheck", "the guest agent's stream tells whether a sandbox lives: leave it out"},
	{"platform", "a sandbox runs on the architecture of its image: name an image of the one you need"},
	{"version", "the API's version is agreed upon with the engine: leave it out"},
	{"use_config_proxy", "nothing of the caller's configuration is passed on: name the variables in environment"},
	{"networking_config", "a sandbox joins one network: use network_mode"},
	{"mac_address", "a sandbox's network address is chosen by the engine: leave it out"},
	{"links", "engines have given links up: let both containers join a network and use their names"},
	{"init_path", "the engine's own init is used: init=true"},
	{"lxc_conf", "engines no longer have LXC: leave it out"},
	{"kernel_memory", "engines no longer limit kernel memory by itself: use mem_limit"},
	{"isolation", "it is for Windows containers only: for stronger isolation use runtime=runsc"},
	{"cpu_count cpu_percent", "it is for Windows containers only: use nano_cpus, or the sandbox's CPU limit"},
})

// other are words that people use for a key or for an option of the sandbox.
var other = byWord([][2]string{
	{"memory mem memory_limit", "use mem_limit, or the sandbox's memory limit"},
	{"memory_swap", "use memswap_limit"},
	{"cpus cpu cpu_limit", "use the sandbox's CPU limit (2 for two CPUs), or nano_cpus (2000000000)"},
	{"pids", "use pids_limit, or the sandbox's limit of processes"},
	{"timeout", "use the sandbox's timeout, which ends a run and not the container"},
	{"disk disk_limit", "use the sandbox's disk limit, or storage_opt for a writable root"},
	{"runtime_config runtime_configs host_config", "give the keys in it by themselves"},
	{"env env_vars", "use environment"},
	{"env_file", "use environment, a variable at a time"},
	{"gpus gpu", "use device_requests"},
	{"net", "use network_mode"},
	{"networks", "a sandbox joins one network: use network_mode"},
	{"publish expose port_bindings", "use ports"},
	{"hosts add_host", "use extra_hosts"},
	{"dns_options", "use dns_opt"},
	{"workdir cwd", "use working_dir"},
	{"read_only_root readonly_rootfs", "use read_only"},
	{"capabilities", "use cap_add"},
	{"seccomp", "use security_opt=seccomp=FILE"},
	{"apparmor", "use security_opt=apparmor=PROFILE"},
	{"no_new_privileges", "use security_opt=no-new-privileges=false; true is the default"},
	{"binds", "use volumes"},
	{"log_driver log_opt logging", "use log_config"},
	{"userns", "use userns_mode"},
	{"ipc", "use ipc_mode"},
	{"pid", "use pid_mode"},
	{"uts", "use uts_mode"},
	{"cgroupns_mode", "use cgroupns"},
	{"restart", "a sandbox is removed when it ends, and engines refuse to restart what they remove: open a new sandbox"},
	{"cpuset", "use cpuset_cpus"},
})

// byWord has the second text of each row for every word of the first.
func byWord(table [][2]string) map[string]string {
	all := map[string]string{}
	for _, row := range table {
		for word := range strings.FieldsSeq(row[0]) {
			all[word] = row[1]
		}
	}
	return all
}

// lookUp returns the option of a key, or an error that says what to use instead.
func lookUp(key string) (*option, error) {
	if o, ok := optionByName[key]; ok {
		return o, nil
	}
	if reason, ok := decided[key]; ok {
		return nil, fault(key, "%s", reason)
	}
	names := slices.Collect(maps.Keys(optionByName))
	words := slices.Concat(names, slices.Collect(maps.Keys(decided)), slices.Collect(maps.Keys(other)))
	slices.Sort(words)
	like := closest(key, words) // the key itself, where it is one of other
	switch {
	case other[like] != "":
		return nil, fault(key, "there is no such key: %s", other[like])
	case decided[like] != "":
		return nil, fault(key, "there is no such key, and as for %s: %s", like, decided[like])
	case like != "":
		return nil, fault(key, "there is no such key: did you mean %s?", like)
	}
	var known []string
	for _, o := range options {
		known = append(known, o.Name)
	}
	return nil, fault(key, "there is no such key: use one of %s", strings.Join(known, ", "))
}

// closest returns the word most like s, "" when none is like it. Case, hyphens and
// underscores do not count, so the engine's own names and flags find their key.
func closest(s string, words []string) string {
	const longest = 40
	if len(s) > longest {
		return ""
	}
	s = squash(s)
	best, found := 3, "" // more differences than two make another word
	for _, w := range words {
		plain := squash(w)
		if d := edits.Distance(s, plain); d < best && d*3 <= len(plain) {
			best, found = d, w
		}
	}
	return found
}

func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}
