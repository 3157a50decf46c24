package object

// Sections returns all sections in the order of the section table.
func (f *File) Sections() []*Section {
	list := make([]*Section, len(f.sections))
	for i := range f.sections {
		list[i] = &f.sections[i]
	}
	return list
}

// ThreadLocalAt returns the thread-local symbol that covers an offset in the
// object's thread-local block. Tables are scanned in full, because lookups are
// rare.
func (f *File) ThreadLocalAt(offset uint64) (s Symbol, ok bool) {
	if f.guard("", func() { s, ok = f.threadLocalAt(offset) }) != nil {
		return Symbol{}, false
	}
	return s, ok
}

func (f *File) threadLocalAt(offset uint64) (Symbol, bool) {
	own := f.own()
	for _, t := range append([]*symbolTable{own.static, own.dynamic}, f.attachedTables()...) {
		if t == nil {
			continue
		}
		for i := range t.count() {
			raw := t.symbolAt(i)
			if raw.symbolKind() == SymbolTLS && raw.defined() && offset >= raw.value && offset-raw.value < max(raw.size, 1) {
				return t.symbol(&raw), true
			}
		}
	}
	return Symbol{}, false
}
