// Package llmsandbox runs code that a language model wrote, without trusting it.
//
// [Run] runs a program in a sandbox of its own:
//
//	res, err := llmsandbox.Run(ctx, `print("hello")`, nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Print(res.Stdout)
//
// [Open] starts a sandbox that lives longer: an isolated place with its own files and processes, no
// network, no privileges, and limits that the kernel enforces. [Sandbox.Run]
// executes code in it as a fresh process and returns a [Result] that says what
// became of the program. [Sandbox.Close] removes all of it.
//
//	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "python"})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer sb.Close()
//	res, err := sb.Run(ctx, `print("hello")`, nil)
//
// An error means that we failed; Result.Status says what became of the program.
// A program that exits with 1, runs into its timeout or eats its memory is no
// error of Run.
//
// Every method takes a context first: cancelling it kills what the call started.
// A Sandbox is safe for concurrent use, and concurrent runs in it do not see each
// other's code or compiled programs; they share its files.
package llmsandbox
