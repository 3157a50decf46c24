package wording

import (
	"errors"
	"fmt"
	"testing"
)

type located struct{ what string }

func (e *located) Error() string { return "record: " + e.what }
func (e *located) Bare() string  { return e.what }

func TestBare(t *testing.T) {
	at := &located{"it is cut off"}
	for _, test := range []struct {
		err  error
		want string
	}{
		{at, "it is cut off"},
		{errors.New("record: words alone"), "record: words alone"},
		{fmt.Errorf("log: %w", at), "log: record: it is cut off"}, // the text of the outer error says more
	} {
		if got := Bare(test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
