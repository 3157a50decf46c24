// Package watchtrace logs who accesses a recording's variables: it replays the
// recording once for every few words, with hardware watchpoints on them, and
// merges what the passes saw into one log in the order of the replay.
//
// Replays are deterministic, so passes are independent processes that run side
// by side, and an access that one of them saw can be found again by another:
// Trace logs accesses without stacks, Details goes back to the few that a
// report shows.
package watchtrace
