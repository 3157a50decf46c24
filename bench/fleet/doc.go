// Command fleet measures nights whose failures are diagnosed by workers, and breaks what can break.
//
//	go run ./bench/fleet speed     throughput with 1, 2, 4 and 8 workers
//	go run ./bench/fleet faults    10,000 failures; workers and the server are killed, the network is cut
//
// The failures are synthetic: cores of one small file each, whose diagnosis is a C program that
// waits or computes for as long as the core says, and copies a report. All else is real: the
// corpus, the night, a NATS server, and workers as processes. The server and each worker have
// a network namespace of their own, connected by veth pairs to a bridge; that needs root.
package main
