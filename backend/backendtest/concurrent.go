package backendtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance12ConcurrentCompiles(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "cpp", Limits: llmsandbox.Limits{Memory: 1 << 30, CPUs: llmsandbox.Unlimited}}, "g++")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			res, err := sb.Run(testContext(t), fmt.Sprintf("#include <cstdio>\nint main() { puts(\"program %d\"); }", i), nil)
			if err != nil || res.Stdout != fmt.Sprintf("program %d\n", i) {
				t.Errorf("program %d: %v, stdout %q, stderr %q, want no error, res.Stdout = %q", i, err, res.Stdout, clip(res.Stderr), fmt.Sprintf("program %d\n", i))
			}
		})
	}
	wg.Wait()
}

func (s *suite) acceptance13FiftySandboxes(t *testing.T) {
	const sandboxes = 50
	starts := s.Starts
	if starts == 0 {
		starts = sandboxes
	}
	starting := make(chan struct{}, starts)
	var wg sync.WaitGroup
	for i := range sandboxes {
		wg.Go(func() {
			starting <- struct{}{}
			ctx := testContext(t)
			sb, err := llmsandbox.Open(ctx, new(s.options(llmsandbox.Options{})))
			<-starting
			if err != nil {
				t.Errorf("open %d: %v", i, err)
				return
			}
			defer sb.Close()
			res, err := sb.Run(ctx, fmt.Sprintf("import os; open('me','w').write('%d'); print(open('me').read(), sorted(os.listdir('.'))[-1:])", i), nil)
			if err != nil || res.Stdout != fmt.Sprintf("%d ['me']\n", i) {
				t.Errorf("sandbox %d: %v, status %s, stdout %q, stderr %q, want no error, res.Stdout = %q", i, err, res.Status, res.Stdout, clip(res.Stderr), fmt.Sprintf("%d ['me']\n", i))
			}
		})
	}
	wg.Wait()
}
