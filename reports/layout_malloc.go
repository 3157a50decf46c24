package reports

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// mallocFacts are the lines on what the heap of the C library shows of a finding.
func mallocFacts(h *evidence.HeapFacts) facts {
	if h == nil {
		return nil
	}
	var list facts
	if o := h.Object; o != nil {
		list = append(list, chunkFacts("object", o)...)
	}
	if x := h.Header; x != nil {
		list = append(list, fact{"header", say(plain, headerText(x))})
	}
	if o := h.Next; o != nil {
		list = append(list, chunkFacts("next", o)...)
	}
	if l := h.Link; l != nil {
		list = append(list, fact{"link", say(plain, linkText(l))})
	}
	return list
}

// chunkFacts describe an object, its contents and the pointers to it.
func chunkFacts(what string, o *evidence.Chunk) facts {
	list := facts{{what, say(plain, chunkText(o))}}
	if b := o.First; b != nil && b.Hex != "" {
		list = append(list, fact{"its contents", say(plain, bytesText(b))})
	}
	for i := range o.Holders {
		list = append(list, fact{"pointer to it", say(plain, holderText(&o.Holders[i]))})
	}
	switch {
	case o.FurtherHolders > 0:
		list = append(list, fact{"pointer to it", say(plain, "and "+wording.Count(o.FurtherHolders, "other"))})
	case o.HoldersCut:
		list = append(list, fact{"pointer to it", say(caveat, "not all memory was searched for pointers")})
	}
	return list
}

func chunkText(o *evidence.Chunk) string {
	text := "at " + o.Addr.String()
	if o.Size > 0 {
		text = fmt.Sprintf("%s at %v", wording.Count(o.Size, "byte"), o.Addr)
	}
	switch {
	case o.Pages:
		text += fmt.Sprintf(", free pages of %s; the objects that were in them are not known", o.Allocator)
	case o.Allocator != "":
		text += fmt.Sprintf(" (the size is that of %s's size class)", o.Allocator)
	}
	switch o.State {
	case evidence.ChunkInUse:
		text += ", in use"
	case evidence.ChunkRest:
		return text + ", the unused rest of the heap"
	case evidence.ChunkUnknown:
		text += ", in use or free: not all lists of free objects could be read"
	case evidence.ChunkFree:
		if o.Allocator == "" {
			text += fmt.Sprintf(", free, in a list of malloc's (%s)", o.List)
		} else if !o.Pages {
			text += fmt.Sprintf(", free, in the %s", o.List)
		}
		if o.Thread != nil {
			text += " of " + o.Thread.Label()
		}
	}
	if o.Mapped {
		text += ", in a mapping of its own"
	}
	return text
}

func bytesText(b *evidence.Bytes) string {
	return fmt.Sprintf("%s %q", spaced(b.Hex), b.Text)
}

// spaced separates the words of eight bytes.
func spaced(hex string) string {
	const digits = 16
	var words []string
	for len(hex) > digits {
		words = append(words, hex[:digits])
		hex = hex[digits:]
	}
	return strings.Join(append(words, hex), " ")
}

func headerText(x *evidence.ChunkHeader) string {
	text := fmt.Sprintf("%s at %v: %s", bytesText(&x.Bytes), x.Addr, headerFaults[x.Fault])
	if x.Size > 0 {
		text += fmt.Sprintf("; by the next whole header it was %#x", x.Size)
	}
	return text
}

// headerFaults are the faults of headers in words.
var headerFaults = map[evidence.HeaderFault]string{
	evidence.HeaderSize:     "its second half is no size of a chunk",
	evidence.HeaderBeyond:   "its size reaches past the end of the heap",
	evidence.HeaderFlags:    "its size has flags that are not possible there",
	evidence.HeaderPrevFree: "it marks the object before as free, which is in no list",
	evidence.HeaderPrevUsed: "it marks the memory before as used, which is in a list of free memory",
	evidence.HeaderSkips:    "its size reaches over whole other chunks",
	evidence.HeaderTop:      "its size is not that of the rest of the heap",
}

func linkText(l *evidence.ListLink) string {
	where := "the head of the list"
	if l.Addr != 0 {
		where = "at " + l.Addr.String()
	}
	size := ""
	if l.Size > 0 {
		size = fmt.Sprintf(" of objects of %s", wording.Count(l.Size, "byte"))
	}
	return fmt.Sprintf("%s, of the %s list%s: %s leads to %v; %s", where, l.List, size, bytesText(&l.Word), l.To, linkFaults[l.Fault])
}

// linkFaults are the faults of links in words.
var linkFaults = map[evidence.LinkFault]string{
	evidence.LinkNowhere:   "no chunk can be there",
	evidence.LinkUnpaired:  "the chunk there does not link back",
	evidence.LinkCycle:     "the list has it already",
	evidence.LinkOtherSize: "the chunk there has another size",
}

func holderText(h *evidence.Holder) string {
	var text string
	switch h.Kind {
	case evidence.HolderObject:
		text = fmt.Sprintf("offset %d of the object of %s at %v", h.ObjectOffset, wording.Count(h.ObjectSize, "byte"), h.Object)
	case evidence.HolderGlobal:
		text = "the global " + h.Name
		if h.Name == "" {
			text = "a global at " + h.Address.String()
		}
	default:
		text = h.Name
		if h.Function != "" {
			text = h.Name + " of " + h.Function
		}
	}
	if h.Type != "" {
		text += " (" + h.Type + ")"
	}
	if h.Offset != 0 {
		text += fmt.Sprintf(", to offset %d", h.Offset)
	}
	return text
}
