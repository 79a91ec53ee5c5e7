package backendtest

import "testing"

// cases are all there is, in the order they run. The numbers are those of the project's
// docs/acceptance.md and docs/abuse.md.
var cases = []struct {
	name string
	run  func(*suite, *testing.T)
}{
	{"Acceptance01to04Python", (*suite).acceptance01to04Python},
	{"Acceptance05HelloInEveryLanguage", (*suite).acceptance05HelloInEveryLanguage},
	{"Acceptance06to07CompileError", (*suite).acceptance06to07CompileError},
	{"Acceptance08ExitCodeWithLiveOutput", (*suite).acceptance08ExitCodeWithLiveOutput},
	{"Acceptance09Commands", (*suite).acceptance09Commands},
	{"Acceptance10Closed", (*suite).acceptance10Closed},
	{"Acceptance11FilesPersistStateDoesNot", (*suite).acceptance11FilesPersistStateDoesNot},
	{"Acceptance12ConcurrentCompiles", (*suite).acceptance12ConcurrentCompiles},
	{"Acceptance13FiftySandboxes", (*suite).acceptance13FiftySandboxes},
	{"Acceptance14LargeOutput", (*suite).acceptance14LargeOutput},
	{"Acceptance15NoStdin", (*suite).acceptance15NoStdin},
	{"Acceptance16to17Text", (*suite).acceptance16to17Text},
	{"Acceptance18BackgroundChild", (*suite).acceptance18BackgroundChild},
	{"Acceptance19to21Timeout", (*suite).acceptance19to21Timeout},
	{"Acceptance22PerRunTimeoutWins", (*suite).acceptance22PerRunTimeoutWins},
	{"Acceptance23FractionalTimeout", (*suite).acceptance23FractionalTimeout},
	{"Acceptance24Lifetime", (*suite).acceptance24Lifetime},
	{"Acceptance25NothingOutlivesATimeout", (*suite).acceptance25NothingOutlivesATimeout},
	{"Acceptance26PartialOutput", (*suite).acceptance26PartialOutput},
	{"Acceptance35to39FileNamesAndContent", (*suite).acceptance35to39FileNamesAndContent},
	{"Acceptance36Folders", (*suite).acceptance36Folders},
	{"Acceptance37Missing", (*suite).acceptance37Missing},
	{"Acceptance40UnsafePaths", (*suite).acceptance40UnsafePaths},
	{"Acceptance41HostileMembers", (*suite).acceptance41HostileMembers},
	{"Acceptance42Modes", (*suite).acceptance42Modes},
	{"Acceptance42SpecialFiles", (*suite).acceptance42SpecialFiles},
	{"Acceptance42LinkAtDestination", (*suite).acceptance42LinkAtDestination},
	{"Acceptance43Parents", (*suite).acceptance43Parents},
	{"Acceptance44ReadOnlyRoot", (*suite).acceptance44ReadOnlyRoot},
	{"LargeFile", (*suite).largeFile},
	{"Acceptance45to46Live", (*suite).acceptance45to46Live},
	{"Acceptance47MultiByte", (*suite).acceptance47MultiByte},
	{"Acceptance48CallbackFails", (*suite).acceptance48CallbackFails},
	{"Acceptance49TextErrors", (*suite).acceptance49TextErrors},
	{"SlowReaderIsNotLost", (*suite).slowReaderIsNotLost},
	{"StreamYieldsEventsInOrder", (*suite).streamYieldsEventsInOrder},
	{"StreamLeftEarlyKillsTheRun", (*suite).streamLeftEarlyKillsTheRun},
	{"CancelledContextKillsTheRun", (*suite).cancelledContextKillsTheRun},
	{"StatusKilled", (*suite).statusKilled},
	{"StatusOutOfMemory", (*suite).statusOutOfMemory},
	{"LimitAskedForHoldsOrOpenFails", (*suite).limitAskedForHoldsOrOpenFails},
	{"ResultCarriesCapabilities", (*suite).resultCarriesCapabilities},
	{"Identity", (*suite).identity},
	{"SafeByDefault", (*suite).safeByDefault},
	{"NoNetwork", (*suite).noNetwork},
	{"Usage", (*suite).usage},
	{"SameIDTwice", (*suite).sameIDTwice},
	{"ListAndAttach", (*suite).listAndAttach},
	{"AttachKnowsTheLimits", (*suite).attachKnowsTheLimits},
	{"AttachRefuses", (*suite).attachRefuses},
	{"LostStreamResumes", (*suite).lostStreamResumes},
	{"SandboxKilledMidRunIsLost", (*suite).sandboxKilledMidRunIsLost},
	{"OpenCancelledLeavesNothing", (*suite).openCancelledLeavesNothing},
	{"CloseLeavesNothing", (*suite).closeLeavesNothing},
	{"AbuseCatalogue", (*suite).abuseCatalogue},
	{"AbuseNeighbours", (*suite).abuseNeighbours},
	{"Abuse10to12CopyOut", (*suite).abuse10to12CopyOut},
	{"Abuse18NothingIsLeftOfARun", (*suite).abuse18NothingIsLeftOfARun},
	{"Abuse23SlowReader", (*suite).abuse23SlowReader},
	{"Abuse26CompileBombs", (*suite).abuse26CompileBombs},
	{"Abuse27to31CopyOut", (*suite).abuse27to31CopyOut},
	{"Abuse27CopyOutOverLinks", (*suite).abuse27CopyOutOverLinks},
	{"Abuse27to29CopyIn", (*suite).abuse27to29CopyIn},
	{"Abuse28SwapDuringCopy", (*suite).abuse28SwapDuringCopy},
	{"Abuse39to41NothingIsShared", (*suite).abuse39to41NothingIsShared},
	{"Abuse78to79And84Forgery", (*suite).abuse78to79And84Forgery},
	{"Abuse80OddBytes", (*suite).abuse80OddBytes},
	{"Abuse84ReachTheAgent", (*suite).abuse84ReachTheAgent},
	{"Abuse84EndTheSupervisor", (*suite).abuse84EndTheSupervisor},
	{"Abuse84WriteToAnotherRun", (*suite).abuse84WriteToAnotherRun},
	{"Abuse85Terminal", (*suite).abuse85Terminal},
	{"Abuse86Ids", (*suite).abuse86Ids},
	{"Abuse89OwnerKilled", (*suite).abuse89OwnerKilled},
	{"Abuse90KilledInTheMiddle", (*suite).abuse90KilledInTheMiddle},
	{"Abuse91ClientGone", (*suite).abuse91ClientGone},
	{"Abuse96Lost", (*suite).abuse96Lost},
	{"Abuse96LostIsNeverSuccess", (*suite).abuse96LostIsNeverSuccess},
	{"ProgramPython", (*suite).programPython},
	{"ProgramNumpyPandasMatplotlib", (*suite).programNumpyPandasMatplotlib},
	{"ProgramJava", (*suite).programJava},
	{"ProgramNode", (*suite).programNode},
	{"ProgramGo", (*suite).programGo},
	{"ProgramCPP", (*suite).programCPP},
	{"ProgramR", (*suite).programR},
	{"ProgramRuby", (*suite).programRuby},
	{"ProgramBash", (*suite).programBash},
	{"ProgramGarbage", (*suite).programGarbage},
	{"ProgramGoCacheIsPrivate", (*suite).programGoCacheIsPrivate},
}

// Run runs every case on a backend, each as a subtest of its own. The cases run one after
// the other, and what they leave is looked for at the end.
func Run(t *testing.T, c Config) {
	t.Helper()
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	s := &suite{Config: c}
	t.Cleanup(func() { s.closeShared(t) }) // also when a case ends all others
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) { k.run(s, t) })
	}
	s.closeShared(t)
	t.Run("NothingIsLeft", s.nothingIsLeft)
}
