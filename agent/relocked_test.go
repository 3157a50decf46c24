package agent

import "testing"

func TestRelocked(t *testing.T) {
	for _, c := range []struct{ start, left, want uint64 }{
		{start: 4, left: 4, want: 0},
		{start: 4, left: 1, want: 3},
		{start: 0, left: ^uint64(0), want: 0}, // at the lock of a mutex, without a budget
		{start: 4, left: ^uint64(0), want: 4},
	} {
		if got := (&RawRThread{BudgetStart: c.start, Budget: c.left}).Relocked(); got != c.want {
			t.Errorf("from %d to %d: %d mutexes, not %d", c.start, int64(c.left), got, c.want)
		}
	}
}
