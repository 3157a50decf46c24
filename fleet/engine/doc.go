// Package engine is the store that the hosts of a fleet share: NATS JetStream, embedded or on a
// server. It connects, and keeps trees of files by content. Queues, leases and replication are
// JetStream's.
package engine
