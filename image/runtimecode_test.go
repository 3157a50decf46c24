package image

import (
	"testing"

	"diagnose/evidence"
)

func TestRuntimeCode(t *testing.T) {
	for _, x := range []struct {
		site               evidence.Site
		machinery, library bool
	}{
		{evidence.Site{Module: "/lib/x86_64-linux-gnu/libc.so.6", Function: "strlen"}, true, true},
		{evidence.Site{Module: "/usr/lib/libstdc++.so.6", Function: "f"}, true, true},
		{evidence.Site{Module: "/x/libdiagnose-record.so", Function: "dg_blocking"}, true, true},
		{evidence.Site{Module: "/opt/libcache.so", Function: "f"}, false, false},
		{evidence.Site{Module: "/bin/p", Function: "main"}, false, false},
		{evidence.Site{Module: "/bin/p", Function: "std::vector<int>::at(unsigned long)"}, false, true},
		{evidence.Site{Module: "/bin/p", Function: "_ZNSt6vectorIiSaIiEE2atEm"}, false, true},
		{evidence.Site{Module: "/bin/p", Function: "core::panicking::panic_fmt"}, true, true},
		{evidence.Site{Module: "/bin/p", Function: "<alloc::string::String as core::fmt::Display>::fmt"}, false, true},
		{evidence.Site{Module: "/bin/p", Function: "<p::Shape as core::fmt::Display>::fmt"}, false, false},
		{evidence.Site{Module: "/bin/p", Function: "inner", File: "/rustc/abc/library/core/src/option.rs"}, false, true},
		{evidence.Site{Module: "/bin/p", Function: "__GI_abort"}, true, true},
		{evidence.Site{Module: "/bin/p", Function: "__tsan_real_atomic32_load", File: "/diagnose/agent/atomic.c"}, true, true},
		{evidence.Site{Module: "/bin/p", Function: "abort_transfer"}, false, false},
		{evidence.Site{Module: "/bin/p", Function: "standard::f"}, false, false},
	} {
		if got := Machinery(&x.site); got != x.machinery {
			t.Errorf("Machinery(%+v) = %v", x.site, got)
		}
		if got := LibraryCode(&x.site); got != x.library {
			t.Errorf("LibraryCode(%+v) = %v", x.site, got)
		}
	}
}
