package reports

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"

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

// usualWidth is the width of a line if that of the terminal is not known.
const usualWidth = 100

type textWriter struct {
	*bufio.Writer
	color bool
	// width is the terminal's in characters; 0: there is none.
	width int
	// margin is before facts and verbatim lines.
	margin string
}

func writeText(w io.Writer, blocks []block, opts Options) error {
	return writeMargin(w, blocks, "  ", opts)
}

func writeMargin(w io.Writer, blocks []block, margin string, opts Options) error {
	out := &textWriter{bufio.NewWriter(w), opts.Color, opts.Width, margin}
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
		w.line(say(strong, b.String()))
	case prose:
		if !first {
			w.WriteByte('\n')
		}
		w.line(b.line)
	case facts:
		w.facts(b)
	case verbatim:
		for _, l := range b {
			w.WriteString(w.margin)
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
		w.WriteString(w.margin + f.name + strings.Repeat(" ", width-len(f.name)+2))
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
		tablewriter.WithHeaderAlignmentConfig(g.alignment()),
		tablewriter.WithRowAlignmentConfig(g.alignment()),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
	)
	switch {
	case w.width > 0:
		g = g.fitted(w.width)
	case g.fit:
		g = g.fitted(usualWidth)
	}
	if err := fill(table, g); err != nil {
		return err
	}
	for _, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		w.WriteString(" " + strings.TrimRight(l, " ") + "\n")
	}
	return nil
}

func (g *grid) alignment() tw.CellAlignment {
	list := make([]tw.Align, len(g.header))
	for i := range list {
		list[i] = tw.AlignLeft
		if i < len(g.numbers) && g.numbers[i] {
			list[i] = tw.AlignRight
		}
	}
	return tw.CellAlignment{PerColumn: list}
}

func fill(table *tablewriter.Table, g grid) error {
	table.Header(g.header)
	if err := table.Bulk(g.rows); err != nil {
		return err
	}
	return table.Render()
}

// fitted breaks cells into several rows so that no row is longer than width characters, if the
// columns can be made that narrow. The widest columns shrink first, but short words, such as an
// address, stay whole.
func (g grid) fitted(width int) grid {
	const shortWord, between = 20, 2
	widths, least := make([]int, len(g.header)), make([]int, len(g.header))
	for _, row := range append([][]string{g.header}, g.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			for word := range strings.FieldsSeq(cell) {
				least[i] = max(least[i], min(utf8.RuneCountInString(word), shortWord))
			}
		}
	}
	total := 0
	for _, n := range widths {
		total += n + between
	}
	for ; total > width; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	out := grid{header: g.header, numbers: g.numbers}
	for _, row := range g.rows {
		out.rows = append(out.rows, broken(row, widths)...)
	}
	return out
}

// broken splits a row into several, none of whose cells is longer than its width.
func broken(row []string, widths []int) [][]string {
	var rows [][]string
	for i, cell := range row {
		for n, part := range wrapped(cell, widths[i]) {
			if n == len(rows) {
				rows = append(rows, make([]string, len(row)))
			}
			rows[n][i] = part
		}
	}
	return rows
}

// wrapped breaks text at spaces, and within words that are longer than a line.
func wrapped(text string, width int) []string {
	var lines []string
	var line []rune
	for _, field := range strings.Fields(text) {
		word := []rune(field)
		if len(line) > 0 && len(line)+1+len(word) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		for len(line)+len(word) > width { // then the line is empty
			lines, word = append(lines, string(word[:width])), word[width:]
		}
		line = append(line, word...)
	}
	if len(line) > 0 || lines == nil {
		lines = append(lines, string(line))
	}
	return lines
}
