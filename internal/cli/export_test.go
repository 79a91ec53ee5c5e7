package cli

import (
	"os"
	"time"
)

// Deaf is a command that heeds no signal. Its argument is its grace time.
func Deaf() {
	grace, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	notifySignals(grace)
	println("on")
	select {}
}
