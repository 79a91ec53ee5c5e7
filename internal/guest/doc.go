// Package guest is the agent inside a sandbox: it starts processes, streams their
// output and kills them with everything they started, for a client that speaks the
// protocol of package agentproto with it.
//
// # How a process is started
//
// For each start the agent forks, without exec, a subreaper: a copy of itself
// that runs a few raw system calls and nothing of the Go runtime. The subreaper is
// a child subreaper and the parent of the program, so that everything the program
// starts, however it detaches itself (setsid, double fork, nohup), stays below the
// subreaper. The subreaper reports what it waits for over a pipe. That is what
// makes "kill it with everything it started" hold without cgroups, and when the
// agent shares its uid with the code.
package guest
