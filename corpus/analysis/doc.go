// Package analysis analyses one failure by a process of its own, which runs "diagnose crash":
// with budgets of time and memory, and with nothing left of it afterwards. A recording may hang,
// eat memory or crash the analysis; the caller only gets a result that says so.
package analysis
