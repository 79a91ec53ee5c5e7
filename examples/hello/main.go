// Command hello is the first program with LLM Sandbox.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/llmsandbox/llmsandbox"
)

func main() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	res, err := sb.Run(ctx, `print("hello")`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
}
