package agentproto

// SpareThreads is how many threads an agent has beyond those it needs when it starts: for 4
// goroutines that run, 4 that work on files, one that looks into /proc and one that waits
// for descriptors, which are all that can need one at once. Where the agent counts among
// a sandbox's processes, a backend adds them to the limit.
const SpareThreads = 10
