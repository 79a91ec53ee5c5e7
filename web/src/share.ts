// A run as a program: for a shell, for Go and for Python. The key is not in it: it comes from the environment.

export interface Shared { language: string; code: string; stdin: string }

// JSON's strings are also strings of Go and Python, but for halves of characters.
const quote = (s: string) => JSON.stringify(s.toWellFormed());

export function curl(origin: string, r: Shared): string {
  const body = JSON.stringify({ language: r.language, code: r.code, ...(r.stdin ? { stdin: r.stdin } : {}) }, null, 2).toWellFormed();
  return `curl ${origin}/v1/run \\\n  -H "Authorization: Bearer $LLMSANDBOX_KEY" \\\n  --json '${body.replaceAll("'", "'\\''")}'\n`;
}

export function go(origin: string, r: Shared): string {
  const opts = r.stdin ? `&llmsandbox.RunOptions{Stdin: strings.NewReader(${quote(r.stdin)})}` : "nil";
  return `package main

import (
	"context"
	"fmt"
	"log"
	"os"
${r.stdin ? '\t"strings"\n' : ""}
	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

func main() {
	ctx := context.Background()
	c, err := client.New(${quote(origin)}, os.Getenv("LLMSANDBOX_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	sb, err := c.Open(ctx, &llmsandbox.Options{Language: ${quote(r.language)}})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	res, err := sb.Run(ctx, ${quote(r.code)}, ${opts})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status)
	fmt.Print(res.Stdout)
}
`;
}

export function python(origin: string, r: Shared): string {
  return `import json, os, urllib.request

request = urllib.request.Request(
    ${quote(origin + "/v1/run")},
    data=json.dumps({
        "language": ${quote(r.language)},
        "code": ${quote(r.code)},${r.stdin ? `\n        "stdin": ${quote(r.stdin)},` : ""}
    }).encode(),
    headers={"Authorization": "Bearer " + os.environ["LLMSANDBOX_KEY"], "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    result = json.load(response)
print(result["status"])
print(result["stdout"], end="")
`;
}
