// Package severity estimates how dangerous a failure may be, for triage.
//
// Its classes are those of casr (ispras/casr), and docs/severity.md has what each follows from and
// where this package differs. The class at the failure follows from the signal, the failing
// instruction and the address, and from what the code after it does with the value that could not be
// loaded. Findings and causes add their own classes. The most severe one counts.
package severity
