package tracker

import (
	"testing"
)

func TestCommandless(t *testing.T) {
	in := "/close\n  /assign @x\na /b\n````\n/label ~x\n```\n/y\n````\n> /close\n"
	want := "&#47;close\n  &#47;assign @x\na /b\n````\n| /label ~x\n```\n| /y\n````\n> &#47;close\n"
	if got := commandless(in); got != want {
		t.Errorf("%q", got)
	}
}
