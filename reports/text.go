package reports

import (
	"bufio"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// ansi holds the SGR parameters of each style (ECMA-48, 8.3.117).
var ansi = map[style]string{
	strong: "1",
	alarm:  "1;31",
	name:   "33",
	place:  "36",
	faint:  "2",
	caveat: "35",
}

type textWriter struct {
	*bufio.Writer
	color bool
}

func writeText(w io.Writer, blocks []block, color bool) error {
	out := &textWriter{bufio.NewWriter(w), color}
	for i, b := range blocks {
		if err := out.block(b, i == 0); err != nil {
			return err
		}
	}
	return out.Flush()
}

func (w *textWriter) block(b block, first bool) error {
	switch b := b.(type) {
	case heading:
		w.WriteByte('\n')
		w.line(say(strong, b.text))
	case prose:
		if !first {
			w.WriteByte('\n')
		}
		w.line(b.line)
	case facts:
		w.facts(b)
	case verbatim:
		for _, l := range b {
			w.WriteString("  ")
			w.line(l)
		}
	case gap:
		w.WriteByte('\n')
	case grid:
		return w.grid(b)
	}
	return nil
}

func (w *textWriter) line(l line) {
	for _, s := range l {
		code := ansi[s.style]
		if !w.color || code == "" {
			w.WriteString(s.text)
			continue
		}
		w.WriteString("\x1b[" + code + "m" + s.text + "\x1b[0m")
	}
	w.WriteByte('\n')
}

func (w *textWriter) facts(list facts) {
	width := 0
	for _, f := range list {
		width = max(width, len(f.name))
	}
	for _, f := range list {
		w.WriteString("  " + f.name + strings.Repeat(" ", width-len(f.name)+2))
		w.line(f.text)
	}
}

func (w *textWriter) grid(g grid) error {
	var b strings.Builder
	table := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{
				Separators: tw.SeparatorsNone,
				Lines:      tw.LinesNone,
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
	)
	if err := fill(table, g); err != nil {
		return err
	}
	for _, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		w.WriteString(" " + strings.TrimRight(l, " ") + "\n")
	}
	return nil
}

func fill(table *tablewriter.Table, g grid) error {
	table.Header(g.header)
	if err := table.Bulk(g.rows); err != nil {
		return err
	}
	return table.Render()
}
