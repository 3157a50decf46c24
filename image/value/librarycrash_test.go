package value_test

import (
	"regexp"
	"testing"

	"diagnose/internal/crashtest"
)

// The library types are compared with the values that the programs store,
// because gdb shows their members.
func TestLibraryValuesOfCrashes(t *testing.T) {
	for _, test := range []struct {
		crashtest.Program
		want map[string]string // patterns by variable of inspect
	}{
		{crashtest.Program{Source: "testdata/values.cc", Flags: []string{"-O0"}}, map[string]string{
			"title":   `@0x[0-9a-f]+: "a title"`,
			"brief":   `"short"`,
			"longer":  `"a title and a good deal more than fits into fifteen bytes"`,
			"view":    `"a title a"`,
			"words":   `std::vector of size 3 {"one", "two", "a title and a good deal more than fits into fifteen bytes"}`,
			"numbers": `std::vector of size 100 {1\.5 <repeats 100 times>}`,
			"none":    `std::vector of size 0 {}`,
			"owned":   `0x[0-9a-f]+`,
			"shared":  `0x[0-9a-f]+ \(2 owners, 1 weak\)`,
			"weak":    `0x[0-9a-f]+ \(2 owners, 1 weak\)`,
			"some":    `5`,
			"nothing": `std::nullopt`,
			"tree":    `{size 2}`,
			"table":   `{size 1}`,
			"pair":    `{first = 5, second = -5}`,
		}},
		{crashtest.Program{Source: "testdata/values.rs"}, map[string]string{
			"text":      `"héllo"`,
			"numbers":   `Vec of length 3 {1, 2, 3}`,
			"slice":     `slice of length 2 {2, 3}`,
			"array":     `{5 <repeats 6 times>}`,
			"tuple":     `\(1, -2\)`,
			"letter":    `8364 '€'`,
			"some":      `Some\(42\)`,
			"none":      `None`,
			"reference": `Some\(0x[0-9a-f]+\)`,
			"nothing":   `None`,
			"empty":     `Empty`,
			"circle":    `Circle\(1\.5\)`,
			"unit":      `\(\)`,
		}},
	} {
		t.Run(test.Source, func(t *testing.T) {
			t.Parallel()
			_, _, scopes := crashed(t, test.Program)
			got := map[string]string{}
			for _, s := range scopes {
				if last(s.function) != "inspect" {
					continue
				}
				for _, v := range s.variables {
					got[v.Name] = v.Value.Text + v.Value.Why()
				}
			}
			for name, pattern := range test.want {
				if !regexp.MustCompile("^" + pattern + "$").MatchString(got[name]) {
					t.Errorf("%s: got %q, want %s", name, got[name], pattern)
				}
			}
		})
	}
}
