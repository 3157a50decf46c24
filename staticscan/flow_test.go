package staticscan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(v value) string {
	s := ""
	switch v.kind {
	case unknown:
		return "?"
	case absolute:
		s = fmt.Sprintf("%#x", uint64(v.off))
	case stack:
		if v.base != 0 {
			return "stack@"
		}
		s = fmt.Sprintf("stack%+d", v.off)
	case loaded:
		s = fmt.Sprintf("*%s+%#x", text(v.cell.at), v.off)
	}
	if v.varies {
		s += "..."
	}
	return s
}

func TestFlow(t *testing.T) {
	for _, test := range flowTests {
		t.Run(test.name, func(t *testing.T) {
			a := analyseCode(assembled(t, test.code), 0x1000, fakeSurroundings())
			var got []string
			for _, x := range a.accesses {
				got = append(got, text(x.at))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: operands (-want +got):\n%s", test.asm, diff)
			}
		})
	}
}
