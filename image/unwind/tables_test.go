package unwind

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/object"
	"diagnose/internal/crashtest"
)

// readelfRow is a row of a table as readelf interprets it.
type readelfRow struct {
	pc    uint64
	cells map[string]string
}

// readelfRows returns the rows of every nth FDE.
func readelfRows(t *testing.T, path string, nth int) []readelfRow {
	t.Helper()
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip((&crashtest.UnsupportedError{What: "readelf is not installed"}).Error())
	}
	out, err := exec.Command("readelf", "--wide", "--debug-dump=frames-interp", path).Output()
	if len(out) == 0 {
		// The exit status is not 0 even for warnings.
		t.Fatalf("readelf %s: %v", path, err)
	}
	var rows []readelfRow
	var columns []string
	fdes, wanted := 0, false
	scanner := bufio.NewScanner(bytes.NewReader(out))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		switch {
		case strings.Contains(scanner.Text(), " FDE "):
			fdes++
			wanted = fdes%nth == 0
		case strings.Contains(scanner.Text(), " CIE "):
			wanted = false
		case len(fields) > 1 && fields[0] == "LOC":
			columns = fields
		case wanted && len(fields) == len(columns) && len(fields[0]) == 16:
			row := readelfRow{cells: map[string]string{}}
			if row.pc, err = strconv.ParseUint(fields[0], 16, 64); err != nil {
				t.Fatal(err)
			}
			for i, cell := range fields[1:] {
				row.cells[columns[i+1]] = cell
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// cell formats a rule as readelf does; "" for one that it does not show.
func (c *rule) cell() string {
	switch c.kind {
	case ruleOffset:
		return fmt.Sprintf("c%+d", c.offset)
	case ruleExpression:
		return "exp"
	case ruleValExpression:
		return "vexp"
	}
	return "u"
}

// TestAgainstReadelf compares the rows of libraries' tables with readelf's
// reading of them.
func TestAgainstReadelf(t *testing.T) {
	fixture := crashtest.Named(t, "cxx_thread_string")
	v, _ := fixture.Variant("O2")
	exe := fixture.Build(t, crashtest.BuildOptions{Variant: v})
	libraries, err := exec.Command("ldd", exe).Output()
	if err != nil {
		t.Skip((&crashtest.UnsupportedError{What: "ldd is not installed"}).Error())
	}
	compared := compareTables(t, exe, 1)
	for _, field := range strings.Fields(string(libraries)) {
		if strings.HasPrefix(field, "/") {
			compared += compareTables(t, field, 16)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d rows were compared", compared)
	}
}

func compareTables(t *testing.T, path string, nth int) (compared int) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var cache moduleCache
	m := cache.of(ramp{}, &image.Module{Path: path, Object: o})
	for _, want := range readelfRows(t, path, nth) {
		r, ok, err := m.row(evidence.Addr(want.pc))
		if err != nil || !ok {
			t.Errorf("%s: row(%#x): ok %v, %v", path, want.pc, ok, err)
			continue
		}
		if d := rowDifference(&r, want.cells); d != "" {
			t.Errorf("%s at %#x: %s", path, want.pc, d)
		}
		compared++
	}
	return compared
}

func rowDifference(r *row, cells map[string]string) string {
	cfa := "exp"
	if r.cfa.kind == ruleRegister {
		cfa = fmt.Sprintf("%v%+d", r.cfa.reg, r.cfa.offset)
	}
	if cfa != cells["CFA"] {
		return fmt.Sprintf("CFA %s, readelf has %s", cfa, cells["CFA"])
	}
	for n := image.RAX; n <= image.RIP; n++ {
		name := n.String()
		if n == image.RIP {
			name = "ra"
		}
		want, shown := cells[name]
		if want == "s" {
			want = "u"
		}
		c := r.ruleOf(n)
		if got := c.cell(); shown && got != want || !shown && got != "u" {
			return fmt.Sprintf("%s is %s, readelf has %q", name, got, want)
		}
	}
	return ""
}
