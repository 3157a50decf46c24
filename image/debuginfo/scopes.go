package debuginfo

import "sync"

// scopes are the functions of a unit and the blocks in them, read once each.
type scopes struct {
	unit *unit

	mu        sync.Mutex
	trees     map[uint64]*blockTree // by the function's DIE; guarded by mu
	functions map[uint64]*Function  // by the DIE of the subprogram or inlined call; guarded by mu
}

// tree returns the blocks of the function at die, cached.
func (s *scopes) tree(die uint64) (*blockTree, error) {
	s.mu.Lock()
	tree := s.trees[die]
	s.mu.Unlock()
	if tree != nil {
		return tree, nil
	}
	tree, err := buildBlocks(s.unit, die)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.trees[die] = tree
	s.mu.Unlock()
	return tree, nil
}

// function describes the subprogram or inlined call at a DIE, cached.
func (s *scopes) function(die uint64) (*Function, error) {
	s.mu.Lock()
	f := s.functions[die]
	s.mu.Unlock()
	if f != nil {
		return f, nil
	}
	e, err := s.unit.entryAt(die)
	if err != nil {
		return nil, err
	}
	if f, err = e.function(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.functions[die] = f
	s.mu.Unlock()
	return f, nil
}
