package evidence

import (
	"strings"
	"testing"
)

// text is an identity of an expression written again.
func text(i Identity) string {
	var b strings.Builder
	b.WriteString(i.Name)
	for _, s := range i.Path {
		b.WriteString(s.String())
	}
	return b.String()
}

func TestExpression(t *testing.T) {
	for expr, steps := range map[string]int{
		"cfg.workers[3].state": 3, "*head": 0, "(*head).next->value": 2, "table+0x10": 1, "ns::rows[3][4]": 2,
		"accounts[...].balance": 2, "[rdi+0x8]": 1, "counter.0": 1, "a[-1]": 1, "": 0, ".": 0, "a->": 1, "main's total.x": 1,
	} {
		i := Expression(expr)
		if i.Kind != IdentityStatic || text(i) != expr || len(i.Path) != steps {
			t.Errorf("%q is %+v: %q with %d steps", expr, i, text(i), len(i.Path))
		}
	}
	for expr, want := range map[string]Identity{"0x404040": {Kind: IdentityMemory, Addr: 0x404040}, "0x7ffff7a00010:8": {Kind: IdentityMemory, Addr: 0x7ffff7a00010, Size: 8}} {
		if got := Expression(expr); got.Kind != want.Kind || got.Addr != want.Addr || got.Size != want.Size {
			t.Errorf("%q is %+v", expr, got)
		}
	}
	if s := Expression("a[12]").Path[0]; s.Element == nil || *s.Element != 12 {
		t.Errorf("%+v", s)
	}
}

func FuzzExpression(f *testing.F) {
	f.Add("a.b[3]->c+0x10")
	f.Add("[->+0x")
	f.Fuzz(func(t *testing.T, expr string) {
		if i := Expression(expr); i.Kind == IdentityStatic && len(text(i)) > 2*len(expr)+16 {
			t.Errorf("%q becomes %q", expr, text(i))
		}
	})
}
