package driver

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

func frames(names ...string) []unwind.Frame {
	var list []unwind.Frame
	for _, n := range names {
		list = append(list, unwind.Frame{Calls: []image.SymbolizedCall{{Site: evidence.Site{Function: n}}}})
	}
	return list
}

func TestStartFunction(t *testing.T) {
	for _, x := range []struct {
		frames []string // innermost first; "" has no name
		want   string
	}{
		{[]string{"nanosleep", "run", "main", "__libc_start_call_main", "__libc_start_main", "_start"}, "main"},
		{[]string{"nanosleep", "", "", "__libc_start_call_main", "__libc_start_main", ""}, "main"},
		{[]string{"nanosleep", "pymain_main", "Py_BytesMain", "__libc_start_call_main", "__libc_start_main", "_start"}, "main"},
		{[]string{"poll", "loop(int)", "worker(void*)", "start_thread", "clone3"}, "worker"},
		{[]string{"poll", "", "start_thread", "clone3"}, ""},
		{[]string{"append", "std::thread::_State_impl<X>::_M_run()", "execute_native_thread_routine", "start_thread"}, "append"},
		{[]string{"", ""}, ""},
		{nil, ""},
		{[]string{"abort", "dg_check_all", "__run_exit_handlers", "__GI_exit", "__libc_start_call_main", "__libc_start_main_impl", "_start"}, "main"},
		{[]string{"exit", "worker", "start_thread", "clone3"}, "worker"},
	} {
		if got := startFunction(frames(x.frames...)); got != x.want {
			t.Errorf("startFunction(%q) = %q, want %q", x.frames, got, x.want)
		}
	}
}

// A stack that is cut does not show the function that the thread was started with.
func TestStartOfCutStack(t *testing.T) {
	for _, x := range []struct {
		frames []string
		want   string
	}{
		{[]string{"__pthread_kill_implementation"}, ""},
		{[]string{"poll", "worker", "start_thread"}, "worker"},
	} {
		if got := startOf(&unwind.Stack{Frames: frames(x.frames...), Stopped: "no memory"}); got != x.want {
			t.Errorf("startOf(%q) = %q, want %q", x.frames, got, x.want)
		}
	}
}

// The frame of libstdc++ between start_thread and the thread's own code has no
// name in a stripped library.
func TestStartFunctionThroughStrippedRuntime(t *testing.T) {
	list := frames("over_limit", "std::thread::_State_impl<X>::_M_run()", "", "start_thread", "clone3")
	list[2].Calls[0].Site.Module = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"
	if got := startFunction(list); got != "over_limit" {
		t.Errorf("startFunction = %q, want over_limit", got)
	}
	list[2].Calls[0].Site.Module = "/srv/lib/libwork.so"
	if got := startFunction(list); got != "" {
		t.Errorf("startFunction = %q, want none: the thread's own function has no name", got)
	}
}

func TestOwnFrame(t *testing.T) {
	list := frames("futex_wait", "__pthread_mutex_lock", "add", "main")
	for i, module := range []string{"/lib/libc.so.6", "/lib/libc.so.6", "/bin/p", "/bin/p"} {
		list[i].Calls[0].Site.Module = module
		list[i].Registers.Set(image.RIP, uint64(0x1000+i))
	}
	for _, x := range []struct {
		site *evidence.Site
		want int
	}{
		{nil, 0},
		{&evidence.Site{PC: 0x1003}, 3},
		{&evidence.Site{PC: 0x9999}, 2}, // in another thread
	} {
		if got := ownFrame(list, x.site); got != x.want {
			t.Errorf("ownFrame of the site %+v is %d, want %d", x.site, got, x.want)
		}
	}
}
