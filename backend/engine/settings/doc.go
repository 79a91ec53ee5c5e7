// Package settings holds what the user of a container engine sets beyond the limits
// every backend knows: the engine's own runtime options.
//
// [Settings] is typed; [Settings.Set] reads one KEY=VALUE, [FromMap] a whole map as
// JSON and Python clients send it. The keys are the keyword names of docker-py's
// containers.create, in its shapes, so a runtime_configs dictionary written for that
// works here. A key that is unknown, that does nothing on Linux or that a sandbox
// decides by itself is an error that says what to do instead, never ignored.
//
// [Settings.Apply] lays the settings over a sandbox's safe defaults: only what was
// named changes, and [Settings.Loosened] tells which controls no longer hold for it.
package settings
