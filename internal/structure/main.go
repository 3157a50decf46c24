// Command structure prints measures of the structure of Go trees, side by side: sizes of files
// and functions, methods of types, files of packages, and folders that import each other.
// scripts/structure runs it on this tree and on the trees it is compared with.
//
//	structure NAME=DIRECTORY [NAME=DIRECTORY ...]
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: structure NAME=DIRECTORY [NAME=DIRECTORY ...]")
	}
	header := []string{"Measure"}
	var columns []column
	for _, arg := range args {
		name, dir, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=DIRECTORY", arg)
		}
		t, err := readTree(dir)
		if err != nil {
			return err
		}
		header = append(header, name)
		columns = append(columns, t.column())
	}
	table := tablewriter.NewTable(os.Stdout,
		tablewriter.WithRenderer(renderer.NewMarkdown()),
		tablewriter.WithHeaderAutoFormat(tw.Off))
	table.Header(header)
	for i, m := range columns[0] {
		row := []string{m.name}
		for _, c := range columns {
			row = append(row, c[i].value)
		}
		if err := table.Append(row); err != nil {
			return err
		}
	}
	return table.Render()
}
