package siginfo

import "testing"

func TestCodeNames(t *testing.T) {
	for _, x := range []struct {
		signal, code int
		want         string
	}{
		{11, 1, "SEGV_MAPERR"}, {11, 99, ""}, {11, Kernel, "SI_KERNEL"}, {7, 2, "BUS_ADRERR"}, {6, -6, "SI_TKILL"}, {40, 1, ""},
	} {
		if got := CodeName(x.signal, x.code); got != x.want {
			t.Errorf("code %d of signal %d is %q, want %q", x.code, x.signal, got, x.want)
		}
	}
}
