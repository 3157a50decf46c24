// Package learn finds plain accesses whose order a recording of the order of atomic instructions lacks: where a replay does
// not reach the recorded end, it is traced, and the accesses to words that two threads used in an order that nothing
// recorded are kept in the cache of sites, so that the next recording orders them.
package learn
