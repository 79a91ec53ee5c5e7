package language

import (
	"context"
	"errors"
	"testing"
)

// A reader that never ends by itself is ended by its steps, and soon by its context.
func TestMeterEndsWhatDoesNotEnd(t *testing.T) {
	const size = 100
	most := stepsForAny + stepsPerByte*size
	for name, step := range map[string]func(*Meter) int{
		"one step":    func(m *Meter) int { m.Step(); return 1 },
		"a few steps": func(m *Meter) int { m.Take(7); return 7 },
		"many steps":  func(m *Meter) int { m.Take(most / 3); return most / 3 },
		"nothing":     func(m *Meter) int { m.Take(0); m.Step(); return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			taken := 0
			err := Metered(t.Context(), size, func(m *Meter) {
				for {
					taken += step(m)
				}
			})
			if !errors.Is(err, ErrTooComplex) {
				t.Errorf("err = %v, want %v", err, ErrTooComplex)
			}
			if least := most - most/3 - stepsBetweenLooks; taken < least || taken > most+stepsBetweenLooks {
				t.Errorf("%d steps were taken, want about %d", taken, most)
			}
			ctx, cancel := context.WithCancel(t.Context())
			taken = 0
			err = Metered(ctx, size, func(m *Meter) {
				cancel()
				for {
					taken += step(m)
				}
			})
			if !errors.Is(err, context.Canceled) || taken > max(2*stepsBetweenLooks, most/3) {
				t.Errorf("err = %v after %d steps, want %v after at most %d", err, taken, context.Canceled, 2*stepsBetweenLooks)
			}
		})
	}
}

func TestMeterLeavesTheRestAlone(t *testing.T) {
	read := false
	if err := Metered(t.Context(), 0, func(m *Meter) { m.Step(); m.Take(stepsForAny - 2); m.Look(); read = true }); err != nil || !read {
		t.Errorf("err = %v, read = %v, want nil and true", err, read)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Metered(ended, 0, func(*Meter) { t.Error("the scanner reads on after its context has ended, want it stopped") }); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	fault := errors.New("a fault of the reader's own")
	defer func() {
		if r := recover(); r != fault {
			t.Errorf("recovered %v, want %v", r, fault)
		}
	}()
	_ = Metered(t.Context(), 0, func(*Meter) { panic(fault) })
}
