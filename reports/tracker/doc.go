// Package tracker brings reports into bug trackers: one issue for each cause, opened
// the first time, commented on when it fails again, reopened when it is back.
//
// An issue bears a key that is made of the cause's signature, by which it is known
// again. docs/trackers.md says for each tracker how two hosts at once come to one issue.
package tracker
