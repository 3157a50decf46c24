// Package tracker brings reports into bug trackers: one issue for each cause, opened the first
// time, commented on when it fails again, reopened when it is back.
//
// An issue has a key that is made of the cause's signature and identifies it. docs/trackers.md says
// for each tracker how two hosts that run at the same time end up with one issue.
package tracker
