package testengine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// messages reads what an engine reports of its progress, to the end, where an error may be.
func messages(r io.Reader) error {
	d := json.NewDecoder(r)
	for {
		var m struct {
			Error string `json:"error"`
		}
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the engine's answer: %w", err)
		}
		if m.Error != "" {
			return fmt.Errorf("the engine says: %s", m.Error)
		}
	}
}
