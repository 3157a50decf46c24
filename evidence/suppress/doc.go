// Package suppress reads which failures a team knows and does not want to hear of for now, and finds
// them by typed fields: signatures, kinds, functions and modules. Each suppression has a reason and a
// last day.
package suppress
