package image

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"diagnose/internal/wording"
)

var mangledNames = []string{
	"main", "_start", "__libc_start_main",
	"_ZN3foo3barEv", "_ZN3foo3barEv.cold", "_Z3fooi.constprop.0", "_ZNSt6vectorIiSaIiEE9push_backERKi",
	"_ZNSt8ios_base4InitC1Ev", "_ZTV3foo", "_ZN3fooD0Ev", "_ZL5localv",
	"_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc",
	"_ZZ4mainENKUlvE_clEv",
	"_ZSt4moveIRNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEONSt16remove_referenceIT_E4typeEOS8_",
}

func TestDemangledAgreesWithCxxfilt(t *testing.T) {
	filter, err := exec.LookPath("c++filt")
	if err != nil {
		t.Skip("not supported here: c++filt is not installed")
	}
	cmd := exec.Command(filter)
	cmd.Stdin = strings.NewReader(strings.Join(mangledNames, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, name := range mangledNames {
		if got := demangled(name); got != want[i] {
			t.Errorf("%s is %q, c++filt has %q", name, got, want[i])
		}
		if got := demangled(name + "@@VERSION_1.2"); got != want[i] {
			t.Errorf("%s with a version is %q", name, got)
		}
	}
}

// TestDemangledRust: names have no hashes, unlike those of c++filt. They say
// nothing to a reader, and rustc's messages omit them.
func TestDemangledRust(t *testing.T) {
	for name, want := range rustNames {
		if got := demangled(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

var rustNames = map[string]string{
	"_ZN4core9panicking5panic17h0123456789abcdefE":                               "core::panicking::panic",
	"_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h4b5c6d7e8f901234E":        "alloc::raw_vec::RawVec<T,A>::grow_one",
	"_RNvCskwGfYPst2Cb_3foo16example_function":                                   "foo::example_function",
	"_RNvXs_CslDx0CHmLJc_4demoNtB4_5PointNtNtCsjNbdVZTV0T_4core3fmt7Display3fmt": "<demo::Point as core::fmt::Display>::fmt",
}

// bomb makes a name whose substitutions double in length with each step.
func bomb(steps int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := "_Z1fSt4pairIiiE"
	for i := range steps {
		s := "S" + string(digits[min(i, len(digits)-1)]) + "_"
		name += "St4pairI" + s + s + "E"
	}
	return name
}

func TestHostileNames(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for name, want := range map[string]string{
		"a\x1b[31mb\n": `a\x1b[31mb\x0a`,
		"bad\xff":      `bad\xff`,
		"r\u202el":     `r\u202el`,
		"größe":        "größe",
		long:           long[:wording.LongestName] + "…",
		"_Z" + long:    "_Z" + long[:wording.LongestName-2] + "…",
		"_Z5a\x1b[31v": `a\x1b[31()`,
		"é" + long[:wording.LongestName-3] + "é": "é" + long[:wording.LongestName-3] + "…",
	} {
		if got := demangled(name); got != want {
			t.Errorf("%.40q: %.60q, want %.60q", name, got, want)
		}
	}
	start := time.Now()
	for _, name := range []string{bomb(40), bomb(500), "_Z" + strings.Repeat("P", 30000) + "i", "_Z1f" + strings.Repeat("P", 30000) + "i",
		"_Z1f" + strings.Repeat("N1a", 9000), "_R" + strings.Repeat("NvC1a", 6000)} {
		if got := demangled(name); len(got) > 2*wording.LongestName {
			t.Errorf("%.40q gives %d bytes", name, len(got))
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("hostile names took %v", took)
	}
}

func FuzzDemangled(f *testing.F) {
	for _, name := range mangledNames {
		f.Add(name)
	}
	for name := range rustNames {
		f.Add(name)
	}
	f.Add(bomb(30))
	f.Fuzz(func(t *testing.T, name string) {
		got := demangled(name)
		if strings.ContainsAny(got, "\x00\x1b\n\r\x7f") || len(got) > 8*wording.LongestName {
			t.Errorf("%q gives %.200q", name, got)
		}
	})
}
