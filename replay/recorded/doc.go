// Package recorded has the recordings that a replay runs: the requested one, after its ancestors
// by fork. It checks that their files are still the recorded ones, prepares the images that the
// process maps, and answers how the recorded process started and ended.
package recorded
