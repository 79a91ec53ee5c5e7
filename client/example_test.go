package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

// A program that has a server's address and a key for it uses its sandboxes as it would its own.
func Example() {
	c, err := client.New("https://sandboxes.example.org:8321", os.Getenv("SANDBOX_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	sb, err := c.Open(ctx, &llmsandbox.Options{Language: "python", Labels: map[string]string{"chat": "42"}})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	if err := sb.WriteFile(ctx, "data.csv", []byte("a,b\n1,2\n")); err != nil {
		log.Fatal(err)
	}
	res, err := sb.Run(ctx, `print(open("data.csv").read())`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
}

// Output is shown as the program writes it, and what became of the program comes last.
func ExampleSandbox_Stream() {
	var sb *client.Sandbox // of Client.Open
	for e, err := range sb.Stream(context.Background(), `print("hello")`, nil) {
		switch {
		case errors.Is(err, llmsandbox.ErrLost):
			log.Fatal("the outcome of the program is not known: ", err)
		case err != nil:
			log.Fatal(err)
		case e.Kind == llmsandbox.EventDone:
			fmt.Println(e.Result.Status)
		default:
			fmt.Print(string(e.Data))
		}
	}
}

// An error of the server has a code beside the library's errors.
func ExampleError() {
	var c *client.Client // of New
	_, err := c.Open(context.Background(), &llmsandbox.Options{Language: "python", Libraries: []string{"numpy"}})
	var refused *client.Error
	switch {
	case errors.Is(err, llmsandbox.ErrInstall):
		fmt.Println("numpy is not to be had:", err)
	case errors.As(err, &refused) && refused.Code == "quota":
		fmt.Println("close another sandbox first:", refused.Detail)
	}
}
