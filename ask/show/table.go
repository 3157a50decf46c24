package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/ask"
	"diagnose/evidence"
	"diagnose/reports"
)

// table is the rows of an answer as text.
type table struct {
	columns []reports.Column
	rows    [][]string
}

func (t *table) column(name string) { t.columns = append(t.columns, reports.Column{Name: name}) }
func (t *table) numbers(name string) {
	t.columns = append(t.columns, reports.Column{Name: name, Number: true})
}

// tableOf makes the table of an answer.
func tableOf(a *ask.Answer) *table {
	t := &table{}
	switch a.Form {
	case ask.FormWrites, ask.FormLastWrite:
		t.writes(a)
	case ask.FormValues:
		t.values(a)
	case ask.FormCalls:
		t.calls(a)
	case ask.FormExecuted:
		t.executed(a)
	case ask.FormDid:
		t.did(a)
	case ask.FormHolders:
		t.holds(a)
	}
	return t
}

// when are the columns that most tables begin with.
func (t *table) when() {
	t.column("Moment")
	t.numbers("Position")
	t.numbers("Thread")
}

func whenCells(i *ask.Instant, thread uint32) []string {
	return []string{i.At, fmt.Sprint(i.Position), fmt.Sprint(thread)}
}

func (t *table) writes(a *ask.Answer) {
	t.when()
	parts := slices.ContainsFunc(a.Writes, func(w ask.Write) bool { return w.Part != "" })
	if parts {
		t.column("Part")
	}
	t.column("Value")
	t.column("Where")
	t.column("Locks")
	for i := range a.Writes {
		w := &a.Writes[i]
		row := whenCells(&w.Instant, w.Thread)
		if parts {
			row = append(row, w.Part)
		}
		t.rows = append(t.rows, append(row, changeText(w), writerText(w), locksText(w.Locks)))
	}
}

func changeText(w *ask.Write) string { return w.Old + " -> " + w.New }

func writerText(w *ask.Write) string {
	text := siteText(&w.Site) + authorText(w.By, w.Call)
	if w.Signal != 0 {
		text += " in the handler of " + unix.SignalName(unix.Signal(w.Signal))
	}
	if w.Late {
		text += ", or before"
	}
	if w.Freed {
		text += ", after the object was freed"
	}
	return text
}

func locksText(locks []evidence.Lock) string {
	var list []string
	for i := range locks {
		name := locks[i].Name
		if name == "" {
			name = locks[i].Address.String()
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

func (t *table) values(a *ask.Answer) {
	t.when()
	t.column("Value")
	t.column("Since")
	for i := range a.Values {
		v := &a.Values[i]
		row := whenCells(&v.Instant, v.Thread)
		since := siteText(&v.Site) + authorText(v.By, v.Call)
		if v.Thread == 0 {
			row, since = []string{"", "", ""}, "the start"
			if a.Span.From != nil {
				row[0], row[1], since = v.At, fmt.Sprint(v.Position), "before"
			}
		}
		t.rows = append(t.rows, append(row, valueText(&v.Value), since))
	}
}

func (t *table) calls(a *ask.Answer) {
	t.when()
	t.column("Where")
	var names []string
	for i := range a.Calls {
		for _, v := range a.Calls[i].Arguments {
			if !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
				t.column(v.Name)
			}
		}
	}
	t.column("Result")
	t.column("Returned")
	for i := range a.Calls {
		c := &a.Calls[i]
		row := append(whenCells(&c.Instant, c.Thread), siteText(&a.Places[c.Place].Site))
		for _, name := range names {
			n := slices.IndexFunc(c.Arguments, func(v evidence.Variable) bool { return v.Name == name })
			if n < 0 {
				row = append(row, "")
			} else {
				row = append(row, valueText(&c.Arguments[n].Value))
			}
		}
		t.rows = append(t.rows, append(row, resultText(c), returnedText(c)))
	}
}

func resultText(c *ask.Call) string {
	if c.Result == nil {
		return ""
	}
	return valueText(c.Result)
}

func returnedText(c *ask.Call) string {
	if c.Returned == nil {
		return ""
	}
	return c.Returned.At
}

func (t *table) executed(a *ask.Answer) {
	t.when()
	t.column("Where")
	for i := range a.Executed {
		x := &a.Executed[i]
		t.rows = append(t.rows, append(whenCells(&x.Instant, x.Thread), siteText(&a.Places[x.Place].Site)))
	}
}

func (t *table) did(a *ask.Answer) {
	t.column("Moment")
	t.numbers("Position")
	t.column("What")
	t.column("Result")
	t.column("Where")
	for i := range a.Did {
		d := &a.Did[i]
		t.rows = append(t.rows, []string{d.At, fmt.Sprint(d.Position), deedText(d), deedResult(d), siteText(&d.Site)})
	}
}

func deedText(d *ask.Deed) string {
	text := strings.TrimSpace(d.Name + " " + d.Object)
	if d.Waited {
		text += ", waited"
	}
	if d.Again > 0 {
		text += fmt.Sprintf(" (after %d locks taken again)", d.Again)
	}
	return text
}

func deedResult(d *ask.Deed) string {
	if d.Result == nil {
		return ""
	}
	const lastErrno = 4095
	if r := *d.Result; r < 0 && r >= -lastErrno && d.Kind == ask.DeedSyscall {
		if name := unix.ErrnoName(unix.Errno(-r)); name != "" {
			return name
		}
	}
	return fmt.Sprint(*d.Result)
}

func (t *table) holds(a *ask.Answer) {
	t.column("Taken")
	t.numbers("Position")
	t.numbers("Thread")
	t.column("Where")
	t.column("Released")
	t.numbers("Position")
	t.column("Where")
	for i := range a.Holds {
		h := &a.Holds[i]
		where := siteText(&h.Site)
		if h.Shared {
			where += ", for reading"
		}
		row := append(whenCells(&h.Instant, h.Thread), where)
		if h.Released == nil {
			row = append(row, "not", "", "")
		} else {
			by := siteText(h.By)
			if h.Releaser != 0 {
				by += fmt.Sprintf(" by thread %d", h.Releaser)
			}
			row = append(row, h.Released.At, fmt.Sprint(h.Released.Position), by)
		}
		t.rows = append(t.rows, row)
	}
}

// Text writes the answer for a terminal.
func Text(w io.Writer, a *ask.Answer) error {
	out := &reports.Listing{}
	for _, text := range warnings(a) {
		out.Line("%s", text)
		out.Gap()
	}
	if t := tableOf(a); len(t.rows) > 0 {
		out.Table(t.columns, t.rows)
		out.Gap()
	}
	if a.Form == ask.FormLastWrite && len(a.Writes) > 0 && a.Writes[0].Stack != nil {
		for _, f := range a.Writes[0].Stack.Frames {
			out.Line("  #%d %s", f.Index, siteText(&f.Site))
		}
		out.Gap()
	}
	out.Line("%s", Headline(a))
	for _, text := range append(notes(a), coverage(a)...) {
		out.Line("%s", text)
	}
	return out.WriteText(w)
}
