package driver

import (
	"context"
	"fmt"

	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay"
)

// mainCode is the code of main, as far as the line of its return depends on it.
type mainCode struct {
	// begins are the addresses at which the code of a line begins, other than that of the closing
	// brace; returns are its return instructions.
	begins, returns []evidence.Addr
}

// nameReturn names the last line of main that ran before main returned, for an optimiser may leave the
// return statement without code of its own. A replay stops at each beginning of a line.
func (r *replayStage) nameReturn(ctx context.Context) error {
	f := &r.result.Failure
	main, found := r.process.SymbolNamed("main")
	if r.exit == nil || !found || f.Site == nil || f.Site.PC != main.Addr || f.Site.Line != 0 {
		return nil
	}
	code := readMain(r.process, main)
	if len(code.begins) == 0 || len(code.returns) == 0 {
		return nil
	}
	var last, returned evidence.Addr
	arrivals := 0
	stop := func(pc evidence.Addr, note func()) replay.Break {
		return replay.Break{PC: pc, Do: func(*replay.Stopped) error {
			if arrivals++; arrivals > mostArrivals {
				return replay.ErrEnough
			}
			note()
			return nil
		}}
	}
	var breaks []replay.Break
	for _, pc := range code.begins {
		breaks = append(breaks, stop(pc, func() { last = pc }))
	}
	for _, pc := range code.returns {
		breaks = append(breaks, stop(pc, func() { returned = last }))
	}
	r.say("replaying to find where main returned")
	_, err := replay.Run(ctx, r.failing[0], replay.FreeRequest{Common: replay.Common{Image: r.req.imageOptions()}, Breaks: breaks})
	if err != nil && arrivals <= mostArrivals {
		return fmt.Errorf("the line at which main returned: %w", err)
	}
	if returned == 0 || arrivals > mostArrivals {
		return nil
	}
	calls := r.process.Symbolize(returned, image.AtInstruction)
	site := calls[len(calls)-1].Site
	f.Site, f.SiteProof, f.Source = &site, evidence.Inferred, r.sources.around(&site, sourceContext)
	failure.Describe(f, failure.Names{Threads: len(r.process.Threads)})
	return nil
}

// readMain decodes main. Its closing line is that of the return instructions.
func readMain(p *image.Process, main image.Symbol) (code mainCode) {
	const most = 1 << 16
	b := make([]byte, min(main.Size, most))
	if n, err := p.ReadMemory(main.Addr, b); err != nil || n != len(b) || main.Size > most {
		return mainCode{}
	}
	closing := map[int]bool{}
	type beginning struct {
		pc   evidence.Addr
		line int
	}
	var begins []beginning
	insts, undecodable := x86.Function(b, uint64(main.Addr))
	if undecodable > 0 {
		return mainCode{}
	}
	line := 0
	for i := range insts {
		pc := evidence.Addr(insts[i].PC)
		calls := p.Symbolize(pc, image.AtInstruction)
		if now := calls[len(calls)-1].Site.Line; now != line && now != 0 {
			line = now
			begins = append(begins, beginning{pc, now})
		}
		if insts[i].Flow == x86.FlowReturn {
			closing[line] = true
			code.returns = append(code.returns, pc)
		}
	}
	for _, x := range begins {
		if !closing[x.line] {
			code.begins = append(code.begins, x.pc)
		}
	}
	return code
}
