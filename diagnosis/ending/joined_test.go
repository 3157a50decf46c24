package ending

import (
	"testing"

	"diagnose/evidence"
)

// A panic that unwraps the result of a thread passes on the panic of that thread, and of no other.
func TestJoinedPanic(t *testing.T) {
	told := func(thread uint32, position uint64, text string) *message {
		w := &call{moment: evidence.Moment{Thread: thread}, position: position, stream: evidence.StandardError}
		return &message{writes: []*call{w}, report: &report{panic: evidence.Panic{Language: evidence.Rust, Text: text, Message: int(position), Proof: evidence.Replayed}, writes: []*call{w}}}
	}
	const none = "called `Option::unwrap()` on a `None` value"
	const passes = "called `Result::unwrap()` on an `Err` value: Any { .. }"
	for name, x := range map[string]struct {
		messages []*message
		joins    []join
		want     int // the Message of the panic that is told
	}{
		"joined":             {[]*message{told(2, 10, none), told(1, 30, passes)}, []join{{1, 2, 20}}, 10},
		"expected":           {[]*message{told(2, 10, none), told(1, 30, "the worker: Any { .. }")}, []join{{1, 2, 20}}, 10},
		"a chain":            {[]*message{told(3, 5, none), told(2, 10, passes), told(1, 30, passes)}, []join{{2, 3, 7}, {1, 2, 20}}, 5},
		"another joined":     {[]*message{told(2, 10, none), told(1, 30, passes)}, []join{{1, 2, 20}, {1, 3, 25}}, 30},
		"not joined":         {[]*message{told(2, 10, none), told(1, 30, passes)}, nil, 30},
		"a panic of its own": {[]*message{told(2, 10, none), told(1, 30, none)}, []join{{1, 2, 20}}, 30},
		"caught":             {[]*message{told(2, 10, none), told(1, 25, none), told(1, 30, passes)}, []join{{1, 2, 20}}, 30},
		"joined later":       {[]*message{told(2, 10, none), told(1, 30, passes)}, []join{{1, 2, 40}}, 30},
	} {
		f := &found{joins: x.joins}
		e := &evidence.Ending{Panic: &x.messages[len(x.messages)-1].report.panic}
		f.follow(e, x.messages)
		if e.Panic.Message != x.want || (e.Panic.Joined != nil) != (x.want != 30) {
			t.Errorf("%s: the panic of message %d is told, joined %v", name, e.Panic.Message, e.Panic.Joined)
		}
	}
}
