package settings

import "github.com/moby/moby/api/types/mount"

var fileOptions = []option{
	{
		KeyInfo: KeyInfo{Name: "volumes", Type: "map", Example: "/srv/data:/data:ro", Meaning: "folders of the engine's host and named volumes: SOURCE:TARGET[:MODE], or a map of SOURCE to {bind: TARGET, mode: MODE}; default mode rw; one at /sandbox or /tmp takes the place of the private folder there"},
		codec:   list(toVolumes, func(s *Settings) *[]Volume { return &s.Volumes }, validVolume),
	},
	{
		KeyInfo: KeyInfo{Name: "mounts", Type: "list", Example: "type=bind,source=/srv/data,target=/data,readonly", Meaning: "the same with more detail: fields as of docker run --mount (type, source, target, readonly, bind-propagation, volume-subpath, tmpfs-size, ...), or objects as in the engine's API (Type, Source, Target, ReadOnly, ...)"},
		codec:   list(one(toMount), func(s *Settings) *[]mount.Mount { return &s.Mounts }, validMount),
	},
	{
		KeyInfo: KeyInfo{Name: "tmpfs", Type: "map", Example: "/scratch:size=64m", Meaning: "folders in memory: TARGET[:OPTIONS], or a map of TARGET to OPTIONS; at /sandbox and /tmp the options that are not named stay as they are"},
		codec:   table(cutTmpfs, func(s *Settings) *map[string]string { return &s.Tmpfs }, validTmpfs),
	},
	{
		KeyInfo: KeyInfo{Name: "volumes_from", Type: "list", Example: "other:ro", Meaning: "all volumes of another container: ID[:ro]"},
		codec:   list(one(toText), func(s *Settings) *[]string { return &s.VolumesFrom }, matching(`[A-Za-z0-9][A-Za-z0-9_.-]*(:(ro|rw|z|Z))?`, "ID or ID:ro")),
	},
	{
		KeyInfo: KeyInfo{Name: "volume_driver", Type: "text", Example: "local", Meaning: "driver of the named volumes in volumes"},
		codec:   text(func(s *Settings) *string { return &s.VolumeDriver }, word),
	},
	{
		KeyInfo: KeyInfo{Name: "storage_opt", Type: "map", Example: "size=2g", Meaning: "options of the engine's storage driver, such as the size of a writable root: NAME=VALUE"},
		codec:   table(nameValue, func(s *Settings) *map[string]string { return &s.StorageOpt }, wordLine),
	},
}
