package llmsandbox_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

func Example() {
	// An error means that the sandbox failed. res.Status says how the program ended.
	res, err := llmsandbox.Run(context.Background(), `print("hello")`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output: hello
}

func ExampleSandbox_Run_status() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	for _, code := range []string{"import sys; sys.exit(3)", "while True: pass"} {
		res, err := sb.Run(ctx, code, &llmsandbox.RunOptions{Timeout: 2 * time.Second})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Status, res.ExitCode)
	}
	// Output:
	// error 3
	// timeout -1
}

func ExampleOpen() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	if err := sb.WriteFile(ctx, "name.txt", []byte("world")); err != nil {
		log.Fatal(err)
	}
	res, err := sb.Run(ctx, `print("hello", open("name.txt").read())`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output: hello world
}

func ExampleSandbox_Start() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	input, answer := io.Pipe()
	p, err := sb.Start(ctx, []string{"sort", "-n"}, &llmsandbox.ExecOptions{Stdin: input})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(answer, "10\n9")
	answer.Close()
	res, err := p.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output:
	// 9
	// 10
}

func ExampleSandbox_Stream() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "bash"})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	var out strings.Builder
	for event, err := range sb.Stream(ctx, "echo one; echo two", nil) {
		if err != nil {
			log.Fatal(err)
		}
		switch event.Kind {
		case llmsandbox.EventStdout:
			out.Write(event.Data) // as it is written
		case llmsandbox.EventDone:
			fmt.Printf("%q, then %s\n", out.String(), event.Result.Status)
		}
	}
	// Output: "one\ntwo\n", then ok
}

func ExampleSandbox_Shell() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	res, err := sb.Shell(ctx, "printf 'b\na\n' | sort", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output:
	// a
	// b
}

func ExampleSandbox_CopyOut() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	if err := sb.WriteFile(ctx, "in.txt", []byte("words")); err != nil {
		log.Fatal(err)
	}
	if _, err := sb.Run(ctx, `open("out.txt", "w").write(open("in.txt").read().upper())`, nil); err != nil {
		log.Fatal(err)
	}
	if _, err := sb.CopyOut(ctx, "out.txt", filepath.Join(dir, "out.txt")); err != nil {
		log.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "out.txt"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(data))
	// Output: WORDS
}

func ExampleAttach() {
	ctx := context.Background()
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	// Any process of the same user can do this while the sandbox lives.
	same, err := llmsandbox.Attach(ctx, sb.ID(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer same.Close() // leaves the sandbox alone
	res, err := same.Run(ctx, "print('from elsewhere')", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output: from elsewhere
}
