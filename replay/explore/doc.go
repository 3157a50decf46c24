// Package explore searches for schedules: preemptions with which a replay of a racy recording
// reaches its recorded end, and schedules with which a program fails.
package explore
