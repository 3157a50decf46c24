// Package debug moves through a recording, forwards and backwards. The program is replayed up to a position and stops there.
// Forwards that replay continues; backwards another one is made, up to an earlier position.
package debug
