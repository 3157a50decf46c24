// Package watchtrace logs the accesses to a recording's variables. It replays
// the recording once for every few words, with hardware watchpoints on them,
// and merges the hits of these passes into one log in the order of the replay.
//
// Replays are deterministic. So passes are independent processes that run in
// parallel, and an access that one of them saw can be found again by another:
// Trace logs accesses without stacks, and Details returns to the few that a
// report shows.
package watchtrace
