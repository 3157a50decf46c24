// Package launch starts programs under ptrace(2) so that each start has the same mappings, the
// same stack and the same random bytes. The recorder and replays start programs with it.
package launch
