// Command stream shows a program's output while it runs, and what became of it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/llmsandbox/llmsandbox"
)

const code = `
import time
for i in range(3):
    print("step", i, flush=True)
    time.sleep(0.1)
raise SystemExit(4)
`

func main() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{
		Language: "python",
		Limits:   llmsandbox.Limits{Memory: 128 << 20, PIDs: 32},

		BestEffort: true,
	})

	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	for event, err := range sb.Stream(ctx, code, nil) {
		if err != nil {
			log.Fatal(err)
		}
		switch event.Kind {
		case llmsandbox.EventStdout:
			os.Stdout.Write(event.Data)
		case llmsandbox.EventDone:
			fmt.Println("status:", event.Result.Status)
		}
	}
}
