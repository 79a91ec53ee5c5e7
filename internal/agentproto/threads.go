package agentproto

// SpareThreads is how many threads an agent has beyond those it needs when it starts: it was
// seen to have 9 in all while twenty programs ran, and starts with 5 or more. Where the
// agent counts among a sandbox's processes, a backend adds them to the limit.
const SpareThreads = 12
