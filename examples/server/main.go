// Command server keeps data in a sandbox of an HTTP server, and works with it in a kernel. Start llmsandbox serve, and set SANDBOX_URL and
// SANDBOX_KEY to the address and the key that it prints.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

func main() {
	if err := analyse(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func analyse(ctx context.Context) error {
	c, err := client.New(os.Getenv("SANDBOX_URL"), os.Getenv("SANDBOX_KEY"))
	if err != nil {
		return err
	}
	sb, err := c.Open(ctx, &llmsandbox.Options{Language: "python", Lifetime: 10 * time.Minute})
	if err != nil {
		return err
	}
	defer sb.Close() // it would live on for ten minutes
	if err := sb.WriteFile(ctx, "sales.csv", []byte("month,total\nmay,20\njune,22\n")); err != nil {
		return err
	}
	k, err := sb.Kernel(ctx, "", nil)
	if err != nil {
		return err
	}
	for _, code := range []string{
		"import csv\nrows = list(csv.DictReader(open('sales.csv')))",
		"sum(int(row['total']) for row in rows)",
	} {
		cell, err := k.Run(ctx, code, nil)
		if err != nil {
			return err
		}
		if cell.Status != llmsandbox.StatusOK {
			return fmt.Errorf("%s: %s", cell.Status, cell.Stderr)
		}
		fmt.Printf("[%d] %s\n", cell.Count, cell.Value["text/plain"])
	}
	return nil
}
