package golang

import "github.com/llmsandbox/llmsandbox/internal/language"

var details = language.Details{
	UseCases:       []string{"concurrent programs", "command line tools", "servers and protocols"},
	PackageManager: "go",
	Version:        []string{"go", "version"},
	Examples: []language.Example{
		{
			Title: "Hello", Description: "Package main with a function main.",
			Code: `package main

import "fmt"

func main() {
	fmt.Println("Hello from Go!")
}
`,
		},
		{
			Title: "Goroutines", Description: "Adds up on several of them.",
			Code: `package main

import (
	"fmt"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	parts := make([]int, 4)
	for i := range parts {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for n := i; n <= 100; n += len(parts) {
				parts[i] += n
			}
		}(i)
	}
	wg.Wait()
	sum := 0
	for _, p := range parts {
		sum += p
	}
	fmt.Println(sum)
}
`,
		},
	},
}
