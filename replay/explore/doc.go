// Package explore looks for schedules: those with which a recording that has
// data races comes to its recorded end.
package explore
