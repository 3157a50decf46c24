package reports

import (
	"fmt"
	"io"
)

// Listing is what a command tells: named lines, sentences and tables. All text is cleaned of what
// could control a terminal.
type Listing struct{ blocks []block }

// Column is a column of a table. Numbers are aligned to the right.
type Column struct {
	Name   string
	Number bool
}

// Named adds a line under a name. A line without a name continues the one before.
func (l *Listing) Named(name, format string, args ...any) {
	f := fact{Clean(name), say(plain, fmt.Sprintf(format, args...))}
	if n := len(l.blocks); n > 0 {
		if list, ok := l.blocks[n-1].(facts); ok {
			l.blocks[n-1] = append(list, f)
			return
		}
	}
	l.blocks = append(l.blocks, facts{f})
}

// Line adds a line.
func (l *Listing) Line(format string, args ...any) {
	l.blocks = append(l.blocks, verbatim{say(plain, fmt.Sprintf(format, args...))})
}

// Gap adds an empty line.
func (l *Listing) Gap() { l.blocks = append(l.blocks, gap{}) }

// Table adds a table. A row has a cell for each column.
func (l *Listing) Table(columns []Column, rows [][]string) {
	g := grid{rows: make([][]string, len(rows))}
	for _, c := range columns {
		g.header, g.numbers = append(g.header, c.Name), append(g.numbers, c.Number)
	}
	for i, row := range rows {
		for _, cell := range row {
			g.rows[i] = append(g.rows[i], Clean(cell))
		}
	}
	l.blocks = append(l.blocks, g)
}

// WriteText writes the listing for a terminal.
func (l *Listing) WriteText(w io.Writer) error {
	return writeMargin(w, l.blocks, "", Options{})
}
