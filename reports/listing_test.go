package reports

import (
	"strings"
	"testing"
)

func TestListing(t *testing.T) {
	var l Listing
	l.Named("recording", "%s", "a\x1b[31m")
	l.Named("", "of %d events", 3)
	l.Gap()
	l.Table([]Column{{"Call", false}, {"Bytes", true}}, [][]string{{"read\n", "12345"}, {"open", "7"}})
	l.Line("%d rows", 2)
	var b strings.Builder
	if err := l.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `recording  a\x1b[31m
           of 3 events

  Call    Bytes
  read\n  12345
  open        7
2 rows
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
