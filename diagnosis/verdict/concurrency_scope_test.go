package verdict

import (
	"slices"
	"testing"

	"diagnose/evidence"
)

// TestFunctions: the search is widened to the program's own functions that access a variable, not to the
// code of a runtime that hands the variable on.
func TestFunctions(t *testing.T) {
	log := &evidence.AccessLog{Contexts: []evidence.Context{
		{Site: evidence.Site{PC: 1, Function: "consume", File: "queue.c", Module: "/srv/queue"}},
		{Site: evidence.Site{PC: 2, Function: "consume", File: "queue.c", Module: "/srv/queue"}},
		{Site: evidence.Site{PC: 3, Function: "stop", File: "queue.c", Module: "/srv/queue"}, Caller: evidence.Site{PC: 3, Function: "main", File: "queue.c", Module: "/srv/queue"}},
		{Site: evidence.Site{Function: "start_thread", File: "./nptl/pthread_create.c", Module: "/lib/x86_64-linux-gnu/libc.so.6"}},
		{Site: evidence.Site{Function: "GOMP_parallel", File: "../libgomp/parallel.c", Module: "/lib/x86_64-linux-gnu/libgomp.so.1"}},
		{Site: evidence.Site{Function: "dg_mutex_lock", File: "engine/mutex.c", Module: "/opt/lib/libdiagnose-record.so"}},
		{Site: evidence.Site{PC: 7, Function: "take", File: "queue.c", Module: "/srv/queue"}, Caller: evidence.Site{PC: 7, Function: "produce", File: "queue.c", Module: "/srv/queue"}},
		{Site: evidence.Site{PC: 8, Function: "produce", File: "queue.c", Module: "/srv/queue"}},
		{Site: evidence.Site{Function: "unnamed", Module: "/srv/queue"}},
	}}
	r := &race{work: &work{}, failing: []traced{{log: log}}}
	if got, want := r.functions(), []evidence.Addr{1, 7}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
