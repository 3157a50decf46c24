package driver

import (
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86/heights"
)

const (
	// guardFrames bounds the frames whose stack guards are checked.
	guardFrames = 64
	// maxFunction bounds the code that is read of one function, in bytes.
	maxFunction = 1 << 20
	// maxBuffers bounds the arrays of one frame that are checked.
	maxBuffers = 256
)

// guardReader reads the data that the stack guards of a stopped process are judged by.
type guardReader struct{ *stoppedProcess }

// stackGuards looks for overwritten stack guards in the frames of the thread under judgement: the
// guard of a smashed function, and those of callers that have not returned yet.
func (a *analysis) stackGuards() error {
	if a.thread == nil {
		return nil
	}
	found, err := canary.CheckStack(a.process, guardReader{&a.stoppedProcess}.guardedStack())
	a.result.Findings = append(a.result.Findings, said(found)...)
	if f := &a.result.Failure; f.Kind == evidence.StackSmashing && len(found) > 0 {
		f.Sentence, f.MessageInSentence = evidence.Say("stack smashing: "+found[0].Summary), false
	}
	return err
}

// auxRandom is AT_RANDOM (include/uapi/linux/auxvec.h).
const auxRandom = 25

// guardedStack is the stack of the thread under judgement.
func (r guardReader) guardedStack() canary.Stack {
	g := r.stacks[0]
	s := canary.Stack{FSBase: r.thread.Registers.FSBase, Thread: r.thread.Ref,
		Random: evidence.Addr(r.process.Auxv[auxRandom])}
	for i := range min(len(g.stack.Frames), guardFrames) {
		s.Frames = append(s.Frames, r.guardFrame(g, i))
	}
	return s
}

func (r guardReader) guardFrame(g *group, i int) canary.Frame {
	f := &g.stack.Frames[i]
	out := canary.Frame{Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup, Trust: f.Trust}
	if len(f.Calls) > 0 {
		site := f.Calls[len(f.Calls)-1].Site
		out.Function, out.Site = site.Function, &f.Calls[0].Site
	}
	module := r.process.ModuleAt(f.PC())
	if module == nil || f.Kind == evidence.SignalFrame {
		return out
	}
	out.Code = r.functionCode(module, f.LookupPC())
	if out.Code != nil {
		out.Buffers = r.buffers(g, i)
	}
	return out
}

// functionCode reads the function that covers pc: its ranges by DWARF, or the
// extent of its symbol.
func (r guardReader) functionCode(m *image.Module, pc evidence.Addr) []heights.Code {
	var ranges [][2]uint64
	if info, err := m.Debug(); err == nil && info != nil {
		if f, err := info.FunctionAt(m.LinkAddr(pc)); err == nil && f != nil {
			ranges = f.Ranges
		}
	}
	if ranges == nil {
		sym, ok := r.process.SymbolAt(pc)
		if !ok || sym.Size == 0 || pc >= sym.Addr+evidence.Addr(sym.Size) {
			return nil
		}
		start := m.LinkAddr(sym.Addr)
		ranges = [][2]uint64{{start, start + sym.Size}}
	}
	var list []heights.Code
	for _, extent := range ranges {
		if extent[1] <= extent[0] || extent[1]-extent[0] > maxFunction {
			return nil
		}
		code := make([]byte, extent[1]-extent[0])
		if _, err := r.process.ReadMemory(m.Addr(extent[0]), code); err != nil {
			return nil
		}
		list = append(list, heights.Code{Addr: m.Addr(extent[0]), Bytes: code})
	}
	return list
}

// buffers lists the arrays that live in a frame's memory.
func (r guardReader) buffers(g *group, i int) []canary.Buffer {
	frame := r.valueFrame(g, i)
	info, err := frame.Module.Debug()
	if err != nil || info == nil {
		return nil
	}
	pc := frame.Module.LinkAddr(g.stack.Frames[i].LookupPC())
	calls, err := info.CallsAt(pc)
	if err != nil {
		return nil
	}
	var list []canary.Buffer
	for _, call := range calls {
		variables, err := info.VariablesAt(call, pc)
		if err != nil {
			continue
		}
		for _, v := range variables {
			if b, ok := buffer(frame, v); ok && len(list) < maxBuffers {
				list = append(list, b)
			}
		}
	}
	return list
}

// buffer returns the memory of a variable that is an array or holds one.
func buffer(frame *value.Frame, v debuginfo.Variable) (canary.Buffer, bool) {
	if v.Type == nil || v.Type.Size() <= 0 {
		return canary.Buffer{}, false
	}
	switch v.Type.Kind() {
	case debuginfo.KindArray, debuginfo.KindStruct, debuginfo.KindUnion:
	default:
		return canary.Buffer{}, false
	}
	where, err := value.Lives(frame, v)
	if err != nil || !where.InMemory {
		return canary.Buffer{}, false
	}
	return canary.Buffer{Name: v.Name, Type: v.Type.Name(), Addr: where.Addr, Size: uint64(v.Type.Size())}, true
}

// said returns findings with the sentences of evidence.Say.
func said(list []evidence.Finding) []evidence.Finding {
	for i := range list {
		list[i].Summary = evidence.Say(list[i].Summary)
		for j := range list[i].Facts {
			list[i].Facts[j].Text = evidence.Say(list[i].Facts[j].Text)
		}
	}
	return list
}
