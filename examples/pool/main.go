// Command pool serves several requests at once from a few warm sandboxes.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/pool"
)

func main() {
	ctx := context.Background()
	p, err := pool.New(&pool.Config{
		Options: llmsandbox.Options{Language: "python"},
		Max:     3, Min: 2,
	})
	if err != nil {
		log.Fatal(err)
	}
	answers := make([]string, 6)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			res, err := p.Run(ctx, fmt.Sprintf("print(%d ** 2)", i), nil)
			if err != nil {
				log.Fatal(err)
			}
			answers[i] = res.Stdout
		})
	}
	all.Wait()
	for _, a := range answers {
		fmt.Print(a)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		log.Fatal(err)
	}
}
