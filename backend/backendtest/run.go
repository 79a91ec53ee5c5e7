package backendtest

import (
	"slices"
	"testing"
)

// A tier is what a case is about. Each is a subtest that has its cases, so that
// -run 'TestConformance/Contract' runs one.
type tier string

const (
	// contractTier is what a backend itself must do: hold limits, isolate, carry streams, the network
	// and files, know its sandboxes, and leave nothing. The attacks on the machine are among it.
	contractTier tier = "Contract"
	// agentTier is what the agent and the library do with any backend that keeps the contract.
	agentTier tier = "Agent"
	// languageTier is what the languages and their tools do in there.
	languageTier tier = "Language"
)

// A testCase is one of the suite.
type testCase struct {
	name string
	tier tier
	run  func(*suite, *testing.T)
}

// cases are all there is, in the order they run within their tier. The numbers are those of the
// project's docs/acceptance.md and docs/abuse.md.
var cases = []testCase{
	{"Acceptance01to04Python", contractTier, (*suite).acceptance01to04Python},
	{"Acceptance05HelloInEveryLanguage", contractTier, (*suite).acceptance05HelloInEveryLanguage},
	{"Acceptance06to07CompileError", languageTier, (*suite).acceptance06to07CompileError},
	{"NamesInStderr", languageTier, (*suite).namesInStderr},
	{"Acceptance08ExitCodeWithLiveOutput", agentTier, (*suite).acceptance08ExitCodeWithLiveOutput},
	{"Acceptance09Commands", contractTier, (*suite).acceptance09Commands},
	{"WorkdirsOfCommands", contractTier, (*suite).workdirsOfCommands},
	{"WorkdirsOfLanguages", languageTier, (*suite).workdirsOfLanguages},
	{"HintsOfRuns", agentTier, (*suite).hintsOfRuns},
	{"HintsOfLanguages", languageTier, (*suite).hintsOfLanguages},
	{"HintsOfRefusals", agentTier, (*suite).hintsOfRefusals},
	{"Acceptance10Closed", contractTier, (*suite).acceptance10Closed},
	{"Acceptance11FilesPersistStateDoesNot", contractTier, (*suite).acceptance11FilesPersistStateDoesNot},
	{"Acceptance12ConcurrentCompiles", languageTier, (*suite).acceptance12ConcurrentCompiles},
	{"Acceptance13FiftySandboxes", contractTier, (*suite).acceptance13FiftySandboxes},
	{"Acceptance14LargeOutput", agentTier, (*suite).acceptance14LargeOutput},
	{"Acceptance15NoStdin", agentTier, (*suite).acceptance15NoStdin},
	{"Acceptance16to17Text", agentTier, (*suite).acceptance16to17Text},
	{"Acceptance18BackgroundChild", agentTier, (*suite).acceptance18BackgroundChild},
	{"Acceptance19to21Timeout", contractTier, (*suite).acceptance19to21Timeout},
	{"Acceptance22PerRunTimeoutWins", agentTier, waits((*suite).acceptance22PerRunTimeoutWins)},
	{"Acceptance23FractionalTimeout", agentTier, (*suite).acceptance23FractionalTimeout},
	{"Acceptance24Lifetime", contractTier, waits((*suite).acceptance24Lifetime)},
	{"DeadlineMovedLater", contractTier, waits((*suite).deadlineMovedLater)},
	{"DeadlineMovedEarlier", contractTier, waits((*suite).deadlineMovedEarlier)},
	{"DeadlineCleared", contractTier, waits((*suite).deadlineCleared)},
	{"DeadlineOfAttached", contractTier, waits((*suite).deadlineOfAttached)},
	{"DeadlineMovedAtOnce", contractTier, waits((*suite).deadlineMovedAtOnce)},
	{"TimersPaused", contractTier, waits((*suite).timersPaused)},
	{"Pause", contractTier, waits((*suite).pause)},
	{"PausedEnds", contractTier, (*suite).pausedEnds},
	{"IdleEnds", contractTier, waits((*suite).idleEnds)},
	{"IdleWaits", contractTier, waits((*suite).idleWaits)},
	{"Acceptance25NothingOutlivesATimeout", contractTier, (*suite).acceptance25NothingOutlivesATimeout},
	{"Acceptance26PartialOutput", agentTier, (*suite).acceptance26PartialOutput},
	{"Acceptance27InstallationTimesOut", languageTier, waits((*suite).acceptance27InstallationTimesOut)},
	{"Acceptance28LibrariesOfANewSandbox", languageTier, (*suite).acceptance28LibrariesOfANewSandbox},
	{"Acceptance28LibrariesOfRegistries", languageTier, waits((*suite).acceptance28LibrariesOfRegistries)},
	{"Acceptance28to29LibrariesOfAnOpenSandbox", languageTier, (*suite).acceptance28to29LibrariesOfAnOpenSandbox},
	{"LayersAreKept", contractTier, (*suite).layersAreKept},
	{"LibrariesAreInstalledOnce", contractTier, (*suite).librariesAreInstalledOnce},
	{"LibrariesByPip", languageTier, (*suite).librariesByPip},
	{"LibraryFonts", languageTier, (*suite).libraryFonts},
	{"Environments", languageTier, (*suite).environments},
	{"Acceptance31InstallationFails", languageTier, (*suite).acceptance31InstallationFails},
	{"Acceptance33Injection", languageTier, (*suite).acceptance33Injection},
	{"Acceptance35to39FileNamesAndContent", agentTier, (*suite).acceptance35to39FileNamesAndContent},
	{"Acceptance36Folders", agentTier, (*suite).acceptance36Dirs},
	{"Acceptance37Missing", agentTier, (*suite).acceptance37Missing},
	{"Acceptance40UnsafePaths", agentTier, (*suite).acceptance40UnsafePaths},
	{"Acceptance41HostileMembers", agentTier, (*suite).acceptance41HostileMembers},
	{"Acceptance42Modes", agentTier, (*suite).acceptance42Modes},
	{"Acceptance42SpecialFiles", agentTier, (*suite).acceptance42SpecialFiles},
	{"Acceptance42LinkAtDestination", agentTier, (*suite).acceptance42LinkAtDestination},
	{"Acceptance43Parents", agentTier, (*suite).acceptance43Parents},
	{"Acceptance44ReadOnlyRoot", contractTier, (*suite).acceptance44ReadOnlyRoot},
	{"LargeFile", agentTier, (*suite).largeFile},
	{"Acceptance45to46Live", agentTier, (*suite).acceptance45to46Live},
	{"Acceptance47MultiByte", agentTier, (*suite).acceptance47MultiByte},
	{"Acceptance48CallbackFails", agentTier, (*suite).acceptance48CallbackFails},
	{"Acceptance49TextErrors", agentTier, (*suite).acceptance49TextErrors},
	{"Acceptance50to58PlotsOfPython", languageTier, (*suite).acceptance50to58PlotsOfPython},
	{"ArtifactsBeforeATimeout", languageTier, waits((*suite).artifactsBeforeATimeout)},
	{"Acceptance51FilesOfEachRun", agentTier, (*suite).acceptance51FilesOfEachRun},
	{"Acceptance52PlotsOfR", languageTier, (*suite).acceptance52PlotsOfR},
	{"Acceptance58GGPlot", languageTier, (*suite).acceptance58GGPlot},
	{"Acceptance59FilesOfEveryLanguage", languageTier, (*suite).acceptance59FilesOfEveryLanguage},
	{"Acceptance60PrintOnly", languageTier, (*suite).acceptance60PrintOnly},
	{"Acceptance69PlotsOfKernelCells", languageTier, (*suite).acceptance69PlotsOfKernelCells},
	{"ArtifactsOfRCells", languageTier, (*suite).artifactsOfRCells},
	{"ArtifactsOfImportsAhead", languageTier, (*suite).artifactsOfImportsAhead},
	{"ArtifactsOfAKilledRun", agentTier, (*suite).artifactsOfAKilledRun},
	{"Acceptance61to65Cells", agentTier, (*suite).acceptance61to65Cells},
	{"Acceptance66Interrupt", agentTier, (*suite).acceptance66Interrupt},
	{"Acceptance67Crash", agentTier, (*suite).acceptance67Crash},
	{"Acceptance68KernelsOfNoLanguage", agentTier, (*suite).acceptance68KernelsOfNoLanguage},
	{"Acceptance69ChildrenAndInput", agentTier, (*suite).acceptance69ChildrenAndInput},
	{"Acceptance69PlotsOfCells", languageTier, (*suite).acceptance69PlotsOfCells},
	{"Acceptance70ManyKernels", agentTier, (*suite).acceptance70ManyKernels},
	{"KernelOfBash", languageTier, (*suite).kernelOfBash},
	{"KernelLosesItsStream", contractTier, (*suite).kernelLosesItsStream},
	{"KernelsOfAttached", contractTier, (*suite).kernelsOfAttached},
	{"KernelsAttached", contractTier, (*suite).kernelsAttached},
	{"KernelEndsBetweenCells", agentTier, (*suite).kernelEndsBetweenCells},
	{"KernelsOfLanguages", languageTier, (*suite).kernelsOfLanguages},
	{"Acceptance92PolicyRefuses", agentTier, (*suite).acceptance92PolicyRefuses},
	{"PolicyOfCells", agentTier, (*suite).policyOfCells},
	{"PolicyWarns", agentTier, (*suite).policyWarns},
	{"InterpreterAhead", agentTier, (*suite).interpreterAhead},
	{"AheadOfLanguages", languageTier, (*suite).aheadOfLanguages},
	{"ImportsAhead", agentTier, (*suite).importsAhead},
	{"FreshLayout", agentTier, (*suite).freshLayout},
	{"ForkedPrograms", agentTier, (*suite).forkedPrograms},
	{"ForkedEnds", agentTier, (*suite).forkedEnds},
	{"ForkedKernels", agentTier, (*suite).forkedKernels},
	{"AheadLosesItsStream", agentTier, (*suite).aheadLosesItsStream},
	{"AheadAttached", agentTier, (*suite).attachedAhead},
	{"SlowReaderIsNotLost", contractTier, waits((*suite).slowReaderIsNotLost)},
	{"Processes", agentTier, (*suite).processHandles},
	{"ProcessesAttached", agentTier, (*suite).processesAttached},
	{"Logs", agentTier, (*suite).logs},
	{"StartedRuns", agentTier, (*suite).startedRuns},
	{"StartedCompiles", languageTier, (*suite).startedCompiles},
	{"ArtifactsOfAttachedRuns", agentTier, (*suite).artifactsOfAttachedRuns},
	{"Watch", agentTier, (*suite).watch},
	{"StreamYieldsEventsInOrder", agentTier, (*suite).streamYieldsEventsInOrder},
	{"StreamLeftEarlyKillsTheRun", contractTier, (*suite).streamLeftEarlyKillsTheRun},
	{"CancelledContextKillsTheRun", contractTier, (*suite).cancelledContextKillsTheRun},
	{"StatusKilled", contractTier, (*suite).statusKilled},
	{"StatusOutOfMemory", contractTier, (*suite).statusOutOfMemory},
	{"LimitAskedForHoldsOrOpenFails", contractTier, (*suite).limitAskedForHoldsOrOpenFails},
	{"ResultCarriesCapabilities", contractTier, (*suite).resultCarriesCapabilities},
	{"Identity", contractTier, (*suite).identity},
	{"SafeByDefault", contractTier, (*suite).safeByDefault},
	{"NoNetwork", contractTier, (*suite).noNetwork},
	{"NetworkNone", contractTier, (*suite).networkNone},
	{"NetworkNonsense", agentTier, (*suite).networkNonsense},
	{"NetworkProtocols", contractTier, (*suite).networkProtocols},
	{"NetworkRefuses", contractTier, (*suite).networkRefuses},
	{"NetworkChanges", agentTier, (*suite).networkChanges},
	{"NetworkOfAttached", contractTier, (*suite).networkOfAttached},
	{"NetworkAtTheEnd", contractTier, waits((*suite).networkAtTheEnd)},
	{"NetworkAfterALostStream", contractTier, (*suite).networkAfterALostStream},
	{"NetworkOfKernels", agentTier, (*suite).networkOfKernels},
	{"NetworkOfKernelsWithoutVariables", agentTier, (*suite).networkOfKernelsWithoutVariables},
	{"NetworkFlood", agentTier, (*suite).networkFlood},
	{"NetworkLanguages", languageTier, (*suite).networkLanguages},
	{"BackgroundServer", contractTier, (*suite).backgroundServer},
	{"Acceptance80Reset", contractTier, (*suite).acceptance80Reset},
	{"Abuse99Reset", contractTier, (*suite).abuse99Reset},
	{"ResetNetwork", contractTier, (*suite).resetNetwork},
	{"Usage", contractTier, (*suite).usage},
	{"SameIDTwice", contractTier, (*suite).sameIDTwice},
	{"ListAndAttach", contractTier, (*suite).listAndAttach},
	{"AttachKnowsTheLimits", contractTier, (*suite).attachKnowsTheLimits},
	{"AttachRefuses", contractTier, (*suite).attachRefuses},
	{"LostStreamResumes", contractTier, (*suite).lostStreamResumes},
	{"SandboxKilledMidRunIsLost", contractTier, (*suite).sandboxKilledMidRunIsLost},
	{"OpenCancelledLeavesNothing", contractTier, (*suite).openCancelledLeavesNothing},
	{"CloseLeavesNothing", contractTier, (*suite).closeLeavesNothing},
	{"AbuseCatalogue", contractTier, (*suite).abuseCatalogue},
	{"AbuseNeighbours", contractTier, (*suite).abuseNeighbours},
	{"Abuse10to12CopyOut", agentTier, (*suite).abuse10to12CopyOut},
	{"Abuse10to31Artifacts", agentTier, (*suite).abuse10to31Artifacts},
	{"Abuse81to82Captures", agentTier, (*suite).abuse81to82Captures},
	{"Abuse18NothingIsLeftOfARun", contractTier, (*suite).abuse18NothingIsLeftOfARun},
	{"Abuse23SlowReader", agentTier, (*suite).abuse23SlowReader},
	{"Abuse24HostileLibraries", languageTier, (*suite).abuse24HostileLibraries},
	{"Abuse26CompileBombs", languageTier, (*suite).abuse26CompileBombs},
	{"Abuse27to31CopyOut", agentTier, (*suite).abuse27to31CopyOut},
	{"Abuse27CopyOutOverLinks", agentTier, (*suite).abuse27CopyOutOverLinks},
	{"Abuse27to29CopyIn", agentTier, (*suite).abuse27to29CopyIn},
	{"Abuse28SwapDuringCopy", agentTier, (*suite).abuse28SwapDuringCopy},
	{"Abuse39to41NothingIsShared", contractTier, (*suite).abuse39to41NothingIsShared},
	{"Abuse56to69Network", contractTier, (*suite).abuse56to69Network},
	{"Abuse66Inbound", contractTier, (*suite).abuse66Inbound},
	{"Abuse71Secrets", contractTier, (*suite).abuse71Secrets},
	{"Abuse78to79And84Forgery", contractTier, (*suite).abuse78to79And84Forgery},
	{"Abuse80OddBytes", agentTier, (*suite).abuse80OddBytes},
	{"Abuse84ReachTheAgent", contractTier, (*suite).abuse84ReachTheAgent},
	{"Abuse84EndTheAgent", contractTier, (*suite).abuse84EndTheAgent},
	{"Abuse84EndTheSubreaper", contractTier, (*suite).abuse84EndTheSubreaper},
	{"Abuse84WriteToAnotherRun", contractTier, (*suite).abuse84WriteToAnotherRun},
	{"Abuse84KernelForgery", agentTier, (*suite).abuse84KernelForgery},
	{"Abuse85Terminal", agentTier, (*suite).abuse85Terminal},
	{"Abuse86Ids", contractTier, (*suite).abuse86Ids},
	{"Abuse89OwnerKilled", contractTier, (*suite).abuse89OwnerKilled},
	{"Abuse90KilledInTheMiddle", contractTier, (*suite).abuse90KilledInTheMiddle},
	{"Abuse91ClientGone", contractTier, waits((*suite).abuse91ClientGone)},
	{"Abuse96Lost", contractTier, (*suite).abuse96Lost},
	{"Abuse96LostIsNeverSuccess", contractTier, (*suite).abuse96LostIsNeverSuccess},
	{"MountReadOnly", contractTier, (*suite).mountReadOnly},
	{"MountCopyOnWrite", contractTier, (*suite).mountCopyOnWrite},
	{"Volumes", contractTier, (*suite).volumes},
	{"MountInvalid", contractTier, (*suite).mountInvalid},
	{"ProgramPython", languageTier, (*suite).programPython},
	{"ProgramNumpyPandasMatplotlib", languageTier, (*suite).programNumpyPandasMatplotlib},
	{"ProgramJava", languageTier, (*suite).programJava},
	{"ProgramNode", languageTier, (*suite).programNode},
	{"ProgramGo", languageTier, (*suite).programGo},
	{"ProgramC", languageTier, (*suite).programC},
	{"ProgramCPP", languageTier, (*suite).programCPP},
	{"ProgramR", languageTier, (*suite).programR},
	{"ProgramRuby", languageTier, (*suite).programRuby},
	{"ProgramBash", languageTier, (*suite).programBash},
	{"ProgramGarbage", languageTier, (*suite).programGarbage},
	{"ProgramGoCacheIsPrivate", contractTier, (*suite).programGoCacheIsPrivate},
}

// waits is a case that mostly waits and measures nothing: it runs beside others of its kind, when
// those that want the machine to themselves have ended. It has sandboxes of its own.
func waits(run func(*suite, *testing.T)) func(*suite, *testing.T) {
	return func(s *suite, t *testing.T) {
		t.Parallel()
		run(s, t)
	}
}

// Run runs every case on a backend, as a subtest of its tier. What the cases of a tier leave is
// looked for when they have ended.
func Run(t *testing.T, c Config) {
	t.Helper()
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	for _, tier := range []tier{contractTier, agentTier, languageTier} {
		t.Run(string(tier), func(t *testing.T) {
			s := &suite{Config: c}
			// A cleanup comes after the cases that run together, and when a case ends all others.
			t.Cleanup(func() {
				s.closeIdle(t)
				s.nothingIsLeft(t)
			})
			for _, k := range cases {
				if k.tier != tier || len(c.Only) > 0 && !slices.Contains(c.Only, k.name) {
					continue
				}
				t.Run(k.name, func(t *testing.T) {
					if why := c.Without[k.name]; why != "" {
						t.Skipf("declared not to hold: %s", why)
					}
					k.run(s, t)
				})
			}
		})
	}
}
