// Package backendtest is the conformance suite: what every backend of LLM Sandbox must
// do, as tests of whole sandboxes. A backend that passes it can take the place of any
// other; the project's own ones pass it too.
//
// # Testing a backend of your own
//
// Write a test in your module, and a TestMain, since some cases start the test program a
// second time to kill it:
//
//	func config(address string) (backendtest.Config, error) {
//		b, err := mybackend.New(&mybackend.Options{Endpoint: address})
//		return backendtest.Config{
//			Backend: b,
//			Address: address,
//			Image:   func(language string) string { return "my-" + language + ":1" },
//			Outside: myOutside{address},
//			Lacks:   map[backendtest.Feature]string{"r": "there is no image with R"},
//		}, err
//	}
//
//	func TestMain(m *testing.M) {
//		backendtest.Child(config)
//		os.Exit(m.Run())
//	}
//
//	func TestConformance(t *testing.T) {
//		c, err := config(startEngine(t))
//		if err != nil {
//			t.Fatal(err)
//		}
//		backendtest.Run(t, c)
//	}
//
// The cases have three tiers. Contract is what a backend itself must do; Agent and Language are
// what the agent and the languages do on any backend that keeps it, and need to be run less often.
// A tier, or a case, is run by its name:
//
//	go test -run 'TestConformance/Contract' ./...
//	go test -run 'TestConformance/./AbuseCatalogue/72' ./...
//
// # What it takes
//
// The suite starts programs that fill memory and disk, fork without end and fight the
// machine: run it where a backend that holds nothing does no harm. It needs some minutes,
// gcc on this machine (the attacks in C are compiled here, statically, for the machine's
// own architecture) and Python in the default image. What else is missing is skipped
// with the reason; with LLMSANDBOX_REQUIRE=1 in the environment only what
// [Config.Lacks] or Capabilities declares may be skipped, and all else fails.
//
// # What it asks
//
// What the kernel must hold a sandbox to is asked of Capabilities, so that a control that is
// declared as not enforced is not tested, and one that is declared is tested hard. No
// case measures how fast a backend is. The time limits in the cases only separate what
// hangs.
package backendtest
