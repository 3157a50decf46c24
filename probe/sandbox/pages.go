package sandbox

import "diagnose/evidence"

const (
	// mostKept bounds the pages that are read again at the next stop: most code looks at the same few.
	mostKept = 64
	// mostRuns bounds the runs, each of which is one operation when it is unmapped.
	mostRuns = mostOps - 8
	// mostAhead bounds the pages that are read because the code reads pages in their order.
	mostAhead = 64
)

// run are pages of the program that are in the pool, one after the other.
type run struct {
	addr        uint64
	page, count uint32
}

func (r *run) end() uint64 { return r.addr + uint64(r.count)*pageSize }

// pages are those of the program that the process has.
type pages struct {
	pool    []byte
	program *neighbour
	runs    []run
	next    uint32 // the first free page of the pool
	// last is the end of the run that was read last, and ahead how many pages it had.
	last  uint64
	ahead uint32
	list  []operation
}

// read copies pages of the program into the pool.
func (p *pages) read(r *run, memory Memory) error {
	return memory(evidence.Addr(r.addr), p.pool[int(r.page)*pageSize:int(r.page+r.count)*pageSize])
}

// begin prepares a stop: the program may have changed since the last one.
func (p *pages) begin(memory Memory) []operation {
	p.list, p.last, p.ahead = p.list[:0], 0, 0
	if p.next < argumentPages {
		p.next = argumentPages
	}
	if p.next-argumentPages > mostKept {
		p.drop()
		return p.list
	}
	kept := p.runs[:0]
	for i := range p.runs {
		r := p.runs[i]
		if p.read(&r, memory) != nil {
			p.list = append(p.list, operation{r.addr, unmap, r.count}) // the program has no longer all of it
			continue
		}
		kept = append(kept, r)
	}
	p.runs = kept
	return p.list
}

// drop unmaps everything.
func (p *pages) drop() {
	for i := range p.runs {
		p.list = append(p.list, operation{p.runs[i].addr, unmap, p.runs[i].count})
	}
	p.runs, p.next = p.runs[:0], argumentPages
}

// want reads the page of an address. No operation means that the program has no memory there.
func (p *pages) want(addr uint64, memory Memory) []operation {
	p.list = p.list[:0]
	r := run{addr: addr &^ (pageSize - 1), count: 1}
	if p.program.isOwn(r.addr) || p.has(r.addr) || r.addr < pageSize {
		return nil
	}
	if p.ahead > 0 && r.addr == p.last {
		r.count = min(2*p.ahead, mostAhead)
	}
	if p.next+mostAhead > poolPages || len(p.runs) == mostRuns {
		p.drop()
	}
	for n := uint32(1); n < r.count; n++ {
		if at := r.addr + uint64(n)*pageSize; p.has(at) || p.program.isOwn(at) {
			r.count = n
		}
	}
	r.page = p.next
	if err := p.read(&r, memory); err != nil && r.count > 1 {
		r.count = 1
		err = p.read(&r, memory)
		if err != nil {
			return nil
		}
	} else if err != nil {
		return nil
	}
	p.next += r.count
	p.runs = append(p.runs, r)
	p.last, p.ahead = r.end(), r.count
	return append(p.list, operation{r.addr, r.page, r.count})
}

func (p *pages) has(addr uint64) bool {
	for i := range p.runs {
		if addr >= p.runs[i].addr && addr < p.runs[i].end() {
			return true
		}
	}
	return false
}
