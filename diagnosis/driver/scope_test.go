package driver_test

import (
	"slices"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// A function may be named in the short form that people use.
func TestScanOfANamedFunction(t *testing.T) {
	const text = `
#include <vector>
namespace shop {
struct Cart {
	std::vector<int> items;
	int total(int tax) const;
	template <class T> int count(const T &x);
};
int sum;
__attribute__((noinline)) int Cart::total(int tax) const { for (int i : items) sum += i; return sum + tax; }
template <class T> __attribute__((noinline)) int Cart::count(const T &x) { return sum += x; }
}
int main() { shop::Cart c; c.total(1); c.count(2L); return *(volatile int *)8; }
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "cart.cc", Text: text, Flags: []string{"-O1"}})
	core := crashtest.Core(t, exe, crashtest.Run{})
	for name, want := range map[string]string{
		"total": "shop::Cart::total(int) const", "Cart::total": "shop::Cart::total(int) const", "shop::Cart::total": "shop::Cart::total(int) const",
		"count": "int shop::Cart::count<long>(long const&)", "Cart::count": "int shop::Cart::count<long>(long const&)", "main": "main",
	} {
		c := crash(t, driver.Request{Core: core, Functions: []string{name}})
		if c.Scan == nil || !slices.Equal(c.Scan.Functions, []string{want}) {
			t.Errorf("%s: scanned %+v, want %s; %+v", name, c.Scan, want, c.Limits)
		}
	}
	for name, want := range map[string]string{
		"totals":                    "--function totals: no function has this name; like it are shop::Cart::total",
		"art::total":                "--function art::total: no function has this name; like it are shop::Cart::total",
		"no_such_function_anywhere": "--function no_such_function_anywhere: no function has this name",
	} {
		c := crash(t, driver.Request{Core: core, Functions: []string{name}})
		if !slices.ContainsFunc(c.Limits, func(l evidence.Limit) bool { return l.Severe && l.Text == want }) {
			t.Errorf("%s: limits %+v, want %q", name, c.Limits, want)
		}
	}
}

// A failure inside a template of the standard library is scanned up to the
// program's own function that called it.
func TestScanReachesThroughTemplates(t *testing.T) {
	x := crashtest.Named(t, "cxx_vector_at").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	c := crash(t, driver.Request{Core: x.Core})
	if c.Scan == nil || !slices.Contains(c.Scan.Functions, "element") {
		t.Errorf("scanned %+v, want element among them", c.Scan)
	}
}
