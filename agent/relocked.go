package agent

// Relocked returns how many mutexes the thread has taken without an event since its last one. A thread
// that found no budget left has borrowed one, until it is in the engine (dg_skipped in
// engine/log.c): that mutex is not taken.
func (t *RawRThread) Relocked() uint64 {
	if int64(t.Budget) < 0 {
		return t.BudgetStart
	}
	return t.BudgetStart - t.Budget
}
