package record

// Turns is how the threads of a program took turns: one ran at a time, until an event or an
// instruction at which its turn ended. The recording has these, so races without an event are in it.
type Turns struct {
	// Seed is the seed of the turns' random lengths. Clocks and waits are real, so the same seed
	// does not give the same run.
	Seed uint64 `json:"seed,string"`
	// Ended counts the turns that ended, Placed those of them that ended at an instruction, which a replay
	// finds by the thread's registers and the program's memory.
	Ended  uint64 `json:"ended"`
	Placed uint64 `json:"placed"`
	// Unsure counts those of Placed where not all memory was compared: a replay may find an
	// earlier place that looks the same, and differ from there.
	Unsure uint64 `json:"unsure,omitempty"`
	// Processor is the number of the processor that the threads ran on from the second thread on; nil: there was
	// none, or it is not known. The instruction cpuid tells a program where it runs.
	Processor *int `json:"processor,omitempty"`
}
