//go:build unix

package kerneltest

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

func (k *Kernel) send(fields map[string]any) {
	if k.def.Base64 {
		for _, name := range []string{"code", "text"} {
			if s, ok := fields[name].(string); ok {
				delete(fields, name)
				fields[name+"64"] = base64.StdEncoding.EncodeToString([]byte(s))
			}
		}
	}
	line, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to.Write(append(line, '\n')) // a driver that is gone is noticed by the reader
}

// next reads one event.
func (k *Kernel) next() (e Event) {
	k.t.Helper()
	type result struct {
		line []byte
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := k.from.ReadBytes('\n')
		got <- result{line, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			k.t.Fatalf("the driver is gone: %v\nstdout: %s\nstderr: %s", r.err, k.out[0].all(), k.out[1].all())
		}
		if err := json.Unmarshal(r.line, &e); err != nil {
			k.t.Fatalf("the driver sent %.300q: %v", r.line, err)
		}
		return e
	case <-time.After(patience):
		k.t.Fatalf("no event\nstdout: %s\nstderr: %s", k.out[0].all(), k.out[1].all())
		panic("unreachable")
	}
}
