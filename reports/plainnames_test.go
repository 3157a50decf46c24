package reports

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

const basicString = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

func TestPlainNames(t *testing.T) {
	for text, want := range map[string]string{
		basicString: "std::string",
		"std::vector<" + basicString + ", std::allocator<" + basicString + " > >::push_back":        "std::vector<std::string>::push_back",
		"std::map<int, std::less<int>, x, std::allocator<std::pair<int const, x> > > const&":        "std::map<int, x> const&",
		"std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int> > > &": "std::vector<std::vector<int>> &",
		"a > > b":                             "a > > b",
		"std::vector<int, std::allocator<int": "std::vector<int, std::allocator<int", // cut off
		"alloc::vec::Vec<u8>":                 "alloc::vec::Vec<u8>",
	} {
		if got := plainNames(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestShortArguments(t *testing.T) {
	long := "ns::Index<" + strings.Repeat("ns::Key, ", 20) + "ns::Value>::first"
	for name, want := range map[string]string{
		long: "ns::Index<...>::first", "ns::Index<int>::first": "ns::Index<int>::first", long + "<": long + "<",
		"operator<< " + long: "operator<< " + long,
	} {
		if got := shortArguments(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// People read plain names. Programs, and people who look at a value, get the full names.
func TestNamesOfTheFormats(t *testing.T) {
	c := diagnosed(overflowCause())
	c.Diagnosis.Causes[0].Summary = "put<" + basicString + "> writes past the end of names"
	c.Stacks[0].Stack.Frames[0].Locals = []evidence.Variable{{Name: "text", Type: basicString, Value: evidence.Value{Text: `"` + basicString + `"`}}}
	text := render(t, c, Options{Format: Text})
	for _, want := range []string{"put<std::string> writes", "text (std::string) = \"" + basicString + `"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if text := render(t, c, Options{Format: JSON}); !strings.Contains(text, `"put<`+basicString+`> writes`) || strings.Contains(text, "std::string") {
		t.Errorf("names are shortened in\n%s", text)
	}
}

func TestStoryFoldsALoop(t *testing.T) {
	cause := overflowCause()
	step := cause.Story[0]
	step.Source = nil
	cause.Story = nil
	for range 8 {
		cause.Story = append(cause.Story, step)
	}
	other := seen(1, evidence.Moment{Thread: 1, Ordinal: 4, PC: 0x401190}, evidence.Write, "1", "2", 14)
	cause.Story = append(cause.Story, evidence.CauseStep{Text: "the end", Access: &other, Proof: evidence.Replayed})
	text := render(t, diagnosed(cause), Options{Format: Text})
	for _, want := range []string{"  1. the bytes", "     ... 6 more by the same instruction ...\n  8. the bytes", "  9. the end"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "  4. the bytes") {
		t.Errorf("the loop is not folded:\n%s", text)
	}
}

func TestUntilStart(t *testing.T) {
	stack := func(names ...string) (s evidence.Stack) {
		for _, name := range names {
			s.Frames = append(s.Frames, evidence.Frame{Site: evidence.Site{Function: name}})
		}
		return s
	}
	c := []string{"start_thread", "clone3"}
	for _, x := range []struct {
		names []string
		want  int
	}{
		{append([]string{"f", "worker"}, c...), 2},
		{[]string{"f", "main", "__libc_start_call_main", "__libc_start_main_impl", "_start"}, 2},
		{[]string{"app::f", "app::main", "core::ops::function::FnOnce::call_once", "std::sys::backtrace::__rust_begin_short_backtrace",
			"std::panicking::catch_unwind::<i32>", "std::rt::lang_start_internal", "std::rt::lang_start", "main", "__libc_start_call_main", "_start"}, 2},
		{[]string{"app::f", "core::ops::function::FnOnce::call_once", "main"}, 3}, // C's main that calls Rust
		{[]string{"_start"}, 1},
	} {
		if got := len(untilStart(stack(x.names...)).Frames); got != x.want {
			t.Errorf("%q: %d frames are left, want %d", x.names, got, x.want)
		}
	}
}
