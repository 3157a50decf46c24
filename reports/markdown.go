package reports

import (
	"bufio"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

func writeMarkdown(w io.Writer, blocks []block) error {
	out := bufio.NewWriter(w)
	for i, b := range blocks {
		if _, ok := b.(gap); ok {
			continue
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		if err := markdownBlock(out, b, i == 0); err != nil {
			return err
		}
	}
	return out.Flush()
}

func markdownBlock(w *bufio.Writer, b block, first bool) error {
	switch b := b.(type) {
	case heading:
		w.WriteString("## " + markdownText(b.String()) + "\n")
	case prose:
		if first {
			w.WriteString("# " + markdownText(b.line.String()) + "\n")
			return nil
		}
		w.WriteString(markdownLine(b.line) + "\n")
	case facts:
		for _, f := range b {
			w.WriteString("- **" + markdownText(f.name) + "**: " + markdownLine(f.text) + "\n")
		}
	case verbatim:
		markdownFence(w, b)
	case grid:
		return markdownTable(w, b)
	}
	return nil
}

// markdownFence writes lines as a code block. The fence must be longer than any run of backticks
// inside (CommonMark 0.31, 4.5).
func markdownFence(w *bufio.Writer, lines verbatim) {
	fence := "```"
	for _, l := range lines {
		for strings.Contains(l.String(), fence) {
			fence += "`"
		}
	}
	w.WriteString(fence + "\n")
	for _, l := range lines {
		w.WriteString(l.String() + "\n")
	}
	w.WriteString(fence + "\n")
}

func markdownTable(w io.Writer, g grid) error {
	table := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewMarkdown()),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
	)
	rows := make([][]string, len(g.rows))
	for i, row := range g.rows {
		rows[i] = make([]string, len(row))
		for j, cell := range row {
			rows[i][j] = markdownText(cell)
		}
	}
	return fill(table, grid{header: g.header, rows: rows})
}

func markdownLine(l line) string {
	var b strings.Builder
	for _, s := range l {
		text := markdownText(s.text)
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || s.style != alarm && s.style != strong {
			b.WriteString(text)
			continue
		}
		b.WriteString(strings.Replace(text, trimmed, "**"+trimmed+"**", 1))
	}
	return b.String()
}

// markdownText escapes what Markdown would take for markup (CommonMark 0.31,
// 2.4). The table renderer does not escape the pipe by itself.
var markdownEscaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `|`, `\|`, `#`, `\#`, `~`, `\~`, `!`, `\!`,
)

func markdownText(text string) string { return markdownEscaper.Replace(text) }
