// Package probe asks a recording questions at places of its program: what were these expressions
// each time that a thread came here, was called with, returned. The recording is replayed once, and
// a row is made for each time. Nothing of the program is changed, so the replay stays as recorded.
package probe
