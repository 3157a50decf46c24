// Package ways has programs fail and be diagnosed in the ways that a user has: by a core of
// the plain program, by one of a program that ran with the agent, and by a recording.
package ways
