package cli

import (
	"fmt"

	"github.com/spf13/pflag"
)

// listFlags are the ways in which a command prints what it lists.
type listFlags struct{ quiet, json bool }

// register adds the flags; ids are what the quiet way prints.
func (f *listFlags) register(flags *pflag.FlagSet, ids string) {
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print "+ids+" only")
	flags.BoolVar(&f.json, "json", false, "print a JSON array")
}

// printList prints what there is as a JSON array, by its ids, or as a table.
func printList[T any](f listFlags, items []T, id func(T) string, table func([]T) error) error {
	switch {
	case f.json:
		if items == nil {
			items = []T{}
		}
		return printJSON(items)
	case f.quiet:
		for _, item := range items {
			fmt.Println(id(item))
		}
		return nil
	}
	return table(items)
}
